"""The opened parts of a service, and the order in which they start and stop."""

from __future__ import annotations

import logging
from typing import Final

import attrs
import trio

from ..protocol.event_types import EventTypes
from ..protocol.limits import SearchLimits
from ..storage.spill import SPILL_FOLDER, SpillStore
from ..storage.store import StoreSettings, open_store
from .aliases import Aliases
from .config import ServiceConfig
from .corpus import Corpus
from .exact import Exact
from .freshness import Freshness
from .live import LiveStore
from .logs import LogReading
from .mounted import Mounted
from .parsed import ParsedCache
from .policies.retention import keep_swept
from .pool import Pool
from .publishing import Publishing
from .quick_reads import QuickReads
from .reconcile import Reconciler
from .search import SearchActor
from .searching import Searching
from .storage import StorageActor, open_storage
from .titles import Titles
from .tracing import Tracing
from .visibility import Visibility

logger = logging.getLogger(__name__)

CLEANUP_S: Final = 10.0
READ_READERS: Final = 2


@attrs.frozen(kw_only=True)
class House:
    """Everything a request may need. Each part is owned by ``run_house``."""

    storage: StorageActor
    live: LiveStore
    corpus: Corpus
    exact: Exact
    quick_reads: QuickReads
    searching: Searching
    publishing: Publishing
    freshness: Freshness
    search: SearchActor
    cache: ParsedCache
    aliases: Aliases


async def run_house(
    config: ServiceConfig,
    mounted: Mounted,
    stop: trio.Event,
    closed: trio.Event,
    *,
    task_status: trio.TaskStatus[House],
) -> None:
    """Open the store and its actors, report the house, and take it down when ``stop`` is set.

    Raises (before it reports): QueryError INDEX_FAILED, PERSISTENCE_FAILED.
    """
    in_memory_index = config.open_at == "never"
    settings = StoreSettings(
        data_dir=config.data_dir,
        index_path=":memory:" if in_memory_index else config.path,
        journal_mode=config.journal_mode,
    )
    async with open_storage(
        lambda: open_store(settings), search_readers=config.search_concurrency + 1, read_readers=READ_READERS
    ) as storage:
        try:
            async with trio.open_nursery() as nursery:
                house = _build(config, mounted, storage)
                await nursery.start(house.search.run)
                await nursery.start(house.freshness.run)
                if config.data_dir is not None and config.max_inline_bytes is not None:
                    spill = SpillStore(root=config.data_dir / SPILL_FOLDER)
                    nursery.start_soon(keep_swept, spill, config.spill_retention)
                task_status.started(house)
                await stop.wait()
                await _take_down(house)
                nursery.cancel_scope.cancel()
        finally:
            closed.set()


def _build(config: ServiceConfig, mounted: Mounted, storage: StorageActor) -> House:
    live, types = LiveStore(), EventTypes()
    types.register(config.event_types)
    cache = ParsedCache(config.cache_bytes)
    mounted.is_forgotten = storage.is_forgotten
    visibility = Visibility(storage, mounted)
    corpus = Corpus(storage, live, mounted, visibility, LogReading(storage, cache))
    workers = config.persisted_inspect_concurrency
    freshness = Freshness(
        storage,
        Reconciler(storage, live, mounted, visibility, workers),
        sources=tuple(attrs.evolve(one, retain=one.retain or config.retain) for one in config.sources),
        watch=config.watch,
        retain=config.retain,
    )
    search = SearchActor(
        concurrency=config.search_concurrency,
        max_queued=config.max_queued_searches,
        exact_reasons=config.exact_abort_reasons,
    )
    searching = Searching(
        corpus,
        search,
        freshness,
        SearchLimits(default_limit=config.default_limit, max_limit=config.max_limit),
        config.snippet_chars,
    )
    pool = Pool(config.max_parallel_reads)
    return House(
        storage=storage,
        live=live,
        corpus=corpus,
        exact=Exact(corpus, pool, Titles(corpus, workers), Tracing(corpus, pool), config.read_window_max),
        quick_reads=QuickReads(corpus, pool, config.read_window_max),
        searching=searching,
        publishing=Publishing(storage, live, journal=config.journal, types=types),
        freshness=freshness,
        search=search,
        cache=cache,
        aliases=Aliases(storage),
    )


async def _take_down(house: House) -> None:
    """From the edge inwards; each stage bounded, so that one stuck part cannot hold the rest for ever."""
    with trio.move_on_after(CLEANUP_S) as scope:
        house.search.close()
        await house.search.wait_idle()
        await house.publishing.end_all()
    if scope.cancelled_caught:
        logger.warning("stopping took longer than %s s and was cut short", CLEANUP_S)
