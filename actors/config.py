"""Settings of a service, checked before anything becomes visible (SPEC 4.9, 6.13, 10.2)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from ..protocol.errors import Code, QueryError
from ..protocol.event_types import EventTypes
from ..protocol.json_value import SAFE_INTEGER_MAX
from ..storage.spill import SpillRetention

OpenAt: TypeAlias = Literal["startup", "first-search", "never"]
JournalMode: TypeAlias = Literal["wal", "delete", "truncate", "persist"]
OPEN_MODES: tuple[OpenAt, ...] = ("startup", "first-search", "never")
JOURNAL_MODES: tuple[JournalMode, ...] = ("wal", "delete", "truncate", "persist")
TIMER_MAX_MS = 2_147_483_647


@attrs.frozen(kw_only=True)
class Source:
    """One place with logs: a reader's format name and a root (folder or single log)."""

    format: str
    root: Path
    retain: bool = False


def _default_concurrency() -> int:
    return max(1, os.cpu_count() or 1)


@attrs.frozen(kw_only=True)
class ServiceConfig:
    """Everything a service can be told. Defaults are the product's (SPEC 15.3).

    ``data_dir`` None keeps journal and index in memory: nothing survives the service.
    ``sources`` are the logs to read; the embedded service reads none unless told.
    ``retain``: copies of all of them are kept, history outlives its source; else of those that say so.
    ``path`` names the index file; by default ``index.db`` in ``data_dir``.
    ``spill_retention``: how long and how much of the results above ``max_inline_bytes`` is kept.
    ``canonical_workspaces``: spellings of one folder (links, trailing slash, drive letter's case, a git
    worktree and its repository) are one workspace; off: exact text alone (SPEC 0).
    ``max_queued_searches`` bounds the waiting line; above it searches are answered BUSY.
    ``event_types``: types of the host's own extensions, taken in seeds as the known ones are (14 L28).
    ``exact_abort_reasons``: an aborted search raises its signal's reason, as exact operations do (14 L37).
    """

    data_dir: Path | None = None
    path: str | None = None
    sources: tuple[Source, ...] = ()
    retain: bool = False
    journal: bool = True
    watch: bool = True
    strict_conflicts: bool = False
    canonical_workspaces: bool = False
    exact_abort_reasons: bool = False
    event_types: tuple[str, ...] = ()
    open_at: OpenAt = "startup"
    journal_mode: JournalMode = "wal"
    default_limit: int = 20
    max_limit: int = 100
    snippet_chars: int = 240
    read_window_max: int = 50
    persisted_inspect_concurrency: int = 4
    max_search_results: int = 100
    search_timeout_ms: int = 30_000
    search_concurrency: int = attrs.field(factory=_default_concurrency)
    max_queued_searches: int = 256
    max_parallel_reads: int = 8
    max_inline_bytes: int | None = None
    spill_retention: SpillRetention = attrs.field(factory=SpillRetention)
    cache_bytes: int = 64 * 1024 * 1024

    def __attrs_post_init__(self) -> None:
        """Raise ``QueryError`` INVALID_CONFIG for the first setting out of its range."""
        if self.path is not None and (not isinstance(self.path, str) or not self.path.strip()):
            _refuse("path", "a non-blank string")
        try:
            EventTypes().register(self.event_types)
        except (TypeError, ValueError):
            _refuse("event_types", "texts, none of them a core or retired type")
        if self.open_at not in OPEN_MODES:
            _refuse("open_at", f"one of {', '.join(OPEN_MODES)}")
        if self.journal_mode not in JOURNAL_MODES:
            _refuse("journal_mode", f"one of {', '.join(JOURNAL_MODES)}")
        limit_max = SAFE_INTEGER_MAX - 1
        _integer("default_limit", self.default_limit, 1, limit_max)
        _integer("max_limit", self.max_limit, 1, limit_max)
        if self.default_limit > self.max_limit:
            _refuse("default_limit", "at most max_limit")
        _integer("snippet_chars", self.snippet_chars, 1, SAFE_INTEGER_MAX)
        _integer("read_window_max", self.read_window_max, 0, SAFE_INTEGER_MAX)
        _integer("persisted_inspect_concurrency", self.persisted_inspect_concurrency, 1, SAFE_INTEGER_MAX)
        _integer("max_search_results", self.max_search_results, 1, SAFE_INTEGER_MAX)
        _integer("search_timeout_ms", self.search_timeout_ms, 1, TIMER_MAX_MS)
        _integer("search_concurrency", self.search_concurrency, 1, 1024)
        _integer("max_queued_searches", self.max_queued_searches, 1, SAFE_INTEGER_MAX)
        _integer("max_parallel_reads", self.max_parallel_reads, 1, 1024)
        _integer("cache_bytes", self.cache_bytes, 0, SAFE_INTEGER_MAX)
        if self.max_inline_bytes is not None:
            _integer("max_inline_bytes", self.max_inline_bytes, 0, SAFE_INTEGER_MAX)


def _integer(name: str, value: object, low: int, high: int) -> None:
    if type(value) is not int or not low <= value <= high:
        _refuse(name, f"an integer in {low}..{high}")


def _refuse(name: str, wanted: str) -> None:
    raise QueryError(Code.INVALID_CONFIG, f"{name} must be {wanted}")
