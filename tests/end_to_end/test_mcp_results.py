"""What an MCP client receives for typical calls, whole; and a deadline that strikes while SQLite runs.

The searches are exact ones: what else counts as a match may change without any change to what is sent.
``UPDATE_GOLDEN=1`` rewrites the files; read the difference.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trio
from mcp import types

from session_query.actors.hosts.mcp.results import CODE_KEY
from session_query.actors.storage import StorageActor
from session_query.storage.index.door import IndexReader
from session_query.storage.store_reader import StoreReader
from support.mcp_in_process import hosting
from support.mcp_process import WEBSHOP

pytestmark = pytest.mark.slow
T = TypeVar("T")
GOLDEN = Path(__file__).parent / "mcp_golden"
CHECKOUT = "5b6c1f0e-3a52-4c0a-9d53-0c9a4e1f7a01"
LOCATOR = re.compile(r"spill:[0-9a-f]{32}:[0-9a-f]{32}")
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "search": ("session_search", {"query": "ERR_POOL_EXHAUSTED", "match": "exact"}),
    "search_none": ("session_search", {"query": "no such words anywhere", "match": "exact"}),
    "search_filtered": ("session_search", {"query": "checkout", "created_at_from": "2031-01-01T00:00Z"}),
    "events": ("session_event_search", {"session_id": CHECKOUT, "query": "compute_total", "match": "exact"}),
    "trace": ("session_trace", {"session_id": CHECKOUT}),
    "event_trace": ("session_event_trace", {"session_id": CHECKOUT, "seq": 0}),
    "read": ("session_event_read", {"session_id": CHECKOUT, "seq": 3, "before": 1, "after": 1}),
    "no_session_of_its_own": ("session_trace", {}),
    "not_found": ("session_trace", {"session_id": "nobody"}),
    "invalid_arguments": ("session_event_read", {"session_id": CHECKOUT}),
    "invalid_time": ("session_search", {"query": "x", "event_time_from": "yesterday"}),
}


async def test_typical_results_are_what_they_were(tmp_path: Path) -> None:
    differences: list[str] = []
    async with hosting(tmp_path) as served, served.client(WEBSHOP) as client:
        catalogue = [
            tool.model_dump(by_alias=True, exclude_none=True) for tool in (await client.list_tools()).tools
        ]
        _compare("catalogue.json", json.dumps(catalogue, indent=2, ensure_ascii=False) + "\n", differences)
        for name, (tool, arguments) in CASES.items():
            answer = await client.call_tool(tool, arguments)
            _compare(f"{name}.txt", _shown(tool, arguments, answer), differences)
    assert differences == []


async def test_a_spilled_result_is_what_it_was(tmp_path: Path) -> None:
    differences: list[str] = []
    async with hosting(tmp_path, max_inline_bytes=700) as served, served.client(WEBSHOP) as client:
        arguments = {"session_id": CHECKOUT, "seq": 3}
        answer = await client.call_tool("session_event_read", arguments)
        shown = re.sub(
            r"spill:[0-9a-f]{32}:[0-9a-f]{32}",
            "spill:OWNER:RESULT",
            _shown("session_event_read", arguments, answer),
        )
        _compare("spilled.txt", shown, differences)
    assert differences == []


def test_every_golden_file_has_its_case() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == {*CASES, "catalogue", "spilled"}


def _shown(tool: str, arguments: dict[str, Any], answer: types.CallToolResult) -> str:
    """A call and all of its answer: its blocks as the model sees them, then what is beside them."""
    meta = {key: value for key, value in (answer.meta or {}).items() if key.startswith("session-query/")}
    parts = [f"→ {tool} {json.dumps(arguments, ensure_ascii=False)}", f"← isError: {answer.is_error}"]
    for block in answer.content:
        if isinstance(block, types.TextContent):
            parts.append(block.text)
        else:
            parts.append(json.dumps(block.model_dump(by_alias=True, exclude_none=True), indent=1))
    parts.append(f"_meta: {json.dumps(meta, indent=1, ensure_ascii=False)}")
    return "\n----\n".join(parts) + "\n"


def _compare(name: str, shown: str, differences: list[str]) -> None:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(shown, encoding="utf-8")
    if shown != path.read_text(encoding="utf-8"):
        differences.append(name)


async def test_12_2_a_deadline_that_strikes_while_sqlite_runs_says_so_and_the_next_call_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    armed, search = [True], StorageActor.search

    async def slow(self: StorageActor, query: Callable[[IndexReader], T]) -> T:
        """The same search, on the same connection, behind a statement that only an interrupt ends."""
        if armed:

            def endless(reader: StoreReader) -> T:
                reader.connection.execute(ENDLESS).fetchall()
                raise AssertionError("it was not interrupted")

            return await self._search_readers.run_store(endless)
        return await search(self, query)

    monkeypatch.setattr(StorageActor, "search", slow)
    async with (
        hosting(tmp_path, search_concurrency=1) as served,
        served.client(WEBSHOP, search_timeout_ms=150) as hasty,
        served.client(WEBSHOP) as patient,
    ):
        timed_out = await hasty.call_tool("session_search", {"query": "checkout"})
        assert timed_out.is_error is True
        (block,) = timed_out.content
        assert isinstance(block, types.TextContent)
        assert "150 ms" in block.text
        assert block.text.endswith("[TOOL_TIMEOUT]")
        assert (timed_out.meta or {})[CODE_KEY] == "TOOL_TIMEOUT"
        read = await hasty.call_tool("session_trace", {"session_id": CHECKOUT})
        assert read.is_error is False
        armed.clear()  # the one search connection there is has been interrupted, and serves again
        found = await patient.call_tool("session_search", {"query": "checkout"})
        assert found.is_error is False
        assert CHECKOUT in str(found.content)


async def test_the_configured_search_timeout_is_the_services(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(self: StorageActor, query: Callable[[IndexReader], T]) -> T:
        await trio.sleep_forever()
        raise AssertionError("unreachable")

    monkeypatch.setattr(StorageActor, "search", never)
    async with hosting(tmp_path, search_timeout_ms=50) as served, served.client(WEBSHOP) as client:
        answer = await client.call_tool("session_event_search", {"session_id": CHECKOUT, "query": "x"})
    assert "50 ms" in str(answer.content)
