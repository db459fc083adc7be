"""SPEC 15.3: the product's numbers, where nobody says otherwise."""

from __future__ import annotations

from pathlib import Path

from session_query import ServerConfig, ServiceConfig
from session_query.actors import reconcile
from session_query.actors.hosts.assembly import INLINE_BYTES


def test_15_3_defaults() -> None:
    service, edge = ServiceConfig(), ServerConfig(token_file=Path("tokens.json"))
    assert (service.default_limit, service.max_limit, service.max_search_results) == (20, 100, 100)
    assert (service.search_timeout_ms, service.read_window_max) == (30_000, 50)
    assert (service.persisted_inspect_concurrency, service.snippet_chars) == (4, 240)
    assert service.max_inline_bytes is None, "an embedding host chooses (12.1.1)"
    assert INLINE_BYTES == 50_000
    assert reconcile.ATTEMPTS == 2
    assert (edge.frame_bytes, edge.part_bytes, edge.in_flight) == (16 * 2**20, 128 * 2**10, 64)
