"""The service: the nursery tree, and the door a host embeds (SPEC 4-11, 16).

``open_service`` owns everything under it. Start: store, search actor, sources. Stop, from the edge
inwards: live sessions detach, the search actor refuses what waits and lets the running search end, the
sources stop reading, the store closes. Nothing global is touched; everything stops when the block ends.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Hashable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Final

import attrs
import trio

from ..protocol.collected import (
    Caller,
    CollectedEvents,
    CollectedSessions,
    EventSearch,
    SessionSearch,
)
from ..protocol.errors import Code, QueryError
from ..protocol.filters import SessionClause
from ..protocol.header import header_from_json
from ..protocol.json_codec import deep_copy, lossless_defect
from ..protocol.json_value import JSON
from ..protocol.records import (
    EventPage,
    EventSearchRequest,
    EventTrace,
    EventWindow,
    Lineage,
    Receipt,
    SessionPage,
    SessionRecord,
    SessionSearchRequest,
    TitleItem,
)
from ..protocol.signal import Signal
from ..protocol.steps import search_cut
from ..protocol.wire.identity import EVERYTHING, Owner, Reach
from ..storage.journal import PUBLISHED
from ..storage.spill import SPILL_FOLDER, SpillStore
from .config import ServiceConfig
from .exact import Exact
from .house import House, run_house
from .mounted import LIVE, Mounted
from .policies.compose import compose
from .policies.spill import SpillPolicy
from .policies.stage import Stage, ToolCall
from .providers import PersistenceProvider
from .scoping import alone
from .statistics import house_statistics, memory
from .tools.registry import ToolRegistry, ToolResult, ToolSettings
from .wire_service import Attached

logger = logging.getLogger(__name__)

OPERATOR: Final = Caller(kind="operator")
"""The embedding host itself: it sees every session (SPEC 16.11)."""

HOST: Final = Owner(token_id="host", connection_id="host", role="operator", reach=EVERYTHING)
"""Who attaches sessions through the embedded door; each handle is a connection of its own."""


@attrs.define(eq=False)
class LiveHandle:
    """A live session attached by the embedding host. Ends with ``detach`` or with the service.

    Attaching the session again takes it over: appends through the older handle raise NOT_ATTACHED then.
    ``caller``: the agent whose session this is, for its tool calls.
    """

    _service: Service
    _owner: Owner
    caller: Caller
    session_id: str
    next_seq: int

    async def append(self, events: Sequence[JSON], *, signal: Signal | None = None) -> int:
        """Store events at the end of the log; returns the last seq, durable. ``events`` are copied.

        Raises: WireError INVALID_EVENT, NOT_ATTACHED; QueryError PERSISTENCE_FAILED (disk full, say: append
            them again); the signal's exact reason before it began.
        """
        copied = [_detached(event) for event in events]
        house = await self._service.house()
        through = await house.publishing.append(
            self.session_id, self.next_seq, copied, self._owner, signal or Signal()
        )
        self.next_seq = through + 1
        return through

    async def detach(self) -> None:
        """End the live session; what is journaled stays stored. Idempotent."""
        house = await self._service.house()
        await house.publishing.detach(self.session_id, self._owner)


@attrs.define(eq=False)
class Service:
    """One query service. Made by ``open_service``; fills ``ToolService`` for the five tools."""

    config: ServiceConfig
    mounted: Mounted
    _nursery: trio.Nursery
    _opening: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _house: House | None = attrs.field(default=None, init=False)
    _search_closed: bool = attrs.field(default=False, init=False)
    _handles: Iterator[int] = attrs.field(factory=count, init=False)
    _stop: trio.Event = attrs.field(factory=trio.Event, init=False)
    _closed: trio.Event = attrs.field(factory=trio.Event, init=False)
    _made_s: float = attrs.field(factory=time.monotonic, init=False)
    registry: ToolRegistry = attrs.field(init=False)
    call_stage: Stage = attrs.field(init=False)
    spill: SpillPolicy | None = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        settings = ToolSettings(
            max_search_results=self.config.max_search_results,
            search_timeout_ms=self.config.search_timeout_ms,
        )
        self.registry = ToolRegistry(service=self, settings=settings)
        self.spill = _spill_policy(self.config)
        self.call_stage = compose(self.registry, self.spill)

    # -- life ------------------------------------------------------------------------------------

    async def house(self) -> House:
        """The opened parts; opens them first if nobody has. Concurrent callers share one opening.

        Raises: QueryError INDEX_FAILED when they cannot be opened (the next call tries again, SPEC 14
        L24) or the service has ended.
        """
        if self._house is None:
            async with self._opening:
                self._require_running()
                if self._house is None:
                    try:
                        self._house = await self._nursery.start(
                            run_house, self.config, self.mounted, self._stop, self._closed
                        )
                    except BaseExceptionGroup as group:
                        raise alone(group) from group
        self._require_running()
        return self._house

    def _require_running(self) -> None:
        if self._stop.is_set():
            raise QueryError(Code.INDEX_FAILED, "the service has ended")

    @property
    def open_house(self) -> House | None:
        """The opened parts, if they are open and the service has not ended."""
        return None if self._stop.is_set() else self._house

    @property
    def is_open(self) -> bool:
        """Whether the store has been opened (SPEC 6.11)."""
        return self._house is not None

    async def close(self) -> None:
        """End searching; idempotent, every caller waits for the same end (SPEC 6.14.6).

        Running searches finish, queued and later ones raise INDEX_FAILED. Exact reads and publishing go on
        until the service's block ends, which closes the files.
        """
        self._search_closed = True
        async with self._opening:  # a pending opening is waited for
            house = self._house
        if house is not None:
            house.search.close()
            await house.search.wait_idle()

    async def end(self) -> None:
        """End everything: searches, live sessions, files. ``open_service`` does this when its block ends."""
        self._stop.set()
        if self._house is not None:
            await self._closed.wait()

    # -- publishing and mounting -----------------------------------------------------------------

    async def attach(
        self, header: JSON, events: Sequence[JSON] | None = None, *, signal: Signal | None = None
    ) -> LiveHandle:
        """Make a session live. ``header`` and ``events`` as on disk (camelCase); they are copied.

        ``events`` None: no seed; a list, even an empty one, is a seed (SPEC 1.3.3), or a stored prefix when
        the session is stored already. Raises: WireError INVALID_HEADER, INVALID_EVENT, SEQ_CONFLICT, BUSY.
        """
        header, seed = _detached(header), None if events is None else [_detached(event) for event in events]
        owner = attrs.evolve(HOST, connection_id=f"host-{next(self._handles)}")
        house = await self.house()
        attached: Attached = await house.publishing.attach(header, seed, owner, signal or Signal())
        source = PUBLISHED if self.config.journal else LIVE
        caller = Caller(kind="agent", header=header_from_json(header), source=source)
        return LiveHandle(self, owner, caller, attached.session_id, attached.next_seq)

    def mount(self, name: str, provider: PersistenceProvider) -> None:
        """Mount a store of the host's own under a name, replacing one of the same name (SPEC 4.1).

        Raises: QueryError INVALID_CONFIG: the name is empty, has a colon or slash, or is a source of ours.
        """
        self.mounted.mount(name, provider)

    def unmount(self, name: str) -> bool:
        """Unmount a provider; what was indexed of it is kept, invisible. False if there was none."""
        return self.mounted.unmount(name)

    # -- the tools -------------------------------------------------------------------------------

    async def call_tool(
        self,
        tool: str,
        arguments: object,
        caller: Caller,
        *,
        signal: Signal | None = None,
        call_id: str | None = None,
        deadline_ms: int | None = None,
        owner: str | None = None,
        within: Reach = EVERYTHING,
    ) -> ToolResult:
        """Run one of the five tools with its deadline and spill stages. Failures are results with a code.

        Args: owner: who keeps what spills. within: what the asker's token may see, whoever it speaks for.

        Raises: KeyError: no such tool; the signal's exact reason; Busy.
        """
        return await self.call_stage(
            ToolCall(
                tool=tool,
                arguments=arguments,
                caller=await self.widened(caller, within),
                signal=signal or Signal(),
                call_id=call_id,
                deadline_ms=deadline_ms,
                owner=owner,
            )
        )

    def read_nowait(self, caller: Caller, arguments: object) -> str | None:
        """What ``session_event_read`` would show, if it can be had at once; None: call the tool."""
        house = self.open_house
        if house is None or self.config.canonical_workspaces:
            return None
        text = house.quick_reads.text(caller, arguments)
        return None if text is None or (self.spill and not self.spill.fits(text)) else text

    async def widened(self, caller: Caller, within: Reach = EVERYTHING) -> Caller:
        """The caller with all spellings of its workspaces, if the service accepts them; else itself."""
        if not self.config.canonical_workspaces:
            return caller
        return await (await self.house()).aliases.of(caller, within)

    # -- service operations ----------------------------------------------------------------------

    async def search_sessions(
        self,
        request: SessionSearchRequest,
        *,
        caller: Caller = OPERATOR,
        lane: Hashable = None,
        signal: Signal | None = None,
    ) -> SessionPage:
        """One page of sessions (SPEC 6). Searches with the same ``lane`` never overlap."""
        self._require_search()
        house = await self.house()
        return await house.searching.sessions_page(
            caller, request, lane=_lane(caller, lane), signal=signal or Signal()
        )

    async def search_events(
        self,
        request: EventSearchRequest,
        *,
        caller: Caller = OPERATOR,
        lane: Hashable = None,
        signal: Signal | None = None,
    ) -> EventPage:
        """One page of one session's events (SPEC 6)."""
        self._require_search()
        house = await self.house()
        return await house.searching.events_page(
            caller, request, lane=_lane(caller, lane), signal=signal or Signal()
        )

    async def exact(self) -> Exact:
        """The operations that are no search: lists, filters, traces, reads, titles."""
        return (await self.house()).exact

    # -- ToolService -----------------------------------------------------------------------------

    async def filter_sessions(
        self, caller: Caller, clauses: tuple[SessionClause, ...], *, signal: Signal
    ) -> list[SessionRecord]:
        signal.raise_if_aborted()
        return await (await self.exact()).filter_sessions(caller, clauses, signal=signal)

    async def collect_sessions(self, search: SessionSearch, *, signal: Signal) -> CollectedSessions:
        self._require_search()
        house = await self.house()
        return await house.searching.collect_sessions(search, lane=_lane(search.caller, None), signal=signal)

    async def collect_events(self, search: EventSearch, *, signal: Signal) -> CollectedEvents:
        self._require_search()
        house = await self.house()
        return await house.searching.collect_events(search, lane=_lane(search.caller, None), signal=signal)

    async def reach_receipt(self, caller: Caller, *, signal: Signal) -> Receipt:
        house = await self.house()
        return await house.searching.reach_receipt(caller, signal=signal)

    async def own_cut(self, caller: Caller, *, signal: Signal) -> int | None:
        house = await self.house()
        if caller.header is None:
            return None
        entry = (await house.corpus.require(caller, caller.header.id, signal)).entry
        if entry.live is not None:
            return entry.live.cut.cut
        return search_cut(await house.corpus.events(entry, signal))

    async def trace_session(self, caller: Caller, session_id: str, *, signal: Signal) -> Lineage:
        signal.raise_if_aborted()
        return await (await self.exact()).trace_session(caller, session_id, signal=signal)

    async def trace_event(self, caller: Caller, session_id: str, seq: int, *, signal: Signal) -> EventTrace:
        signal.raise_if_aborted()
        return await (await self.exact()).trace_event(caller, session_id, seq, signal=signal)

    async def read_event(
        self, caller: Caller, session_id: str, seq: int, *, before: int, after: int, signal: Signal
    ) -> EventWindow:
        signal.raise_if_aborted()
        return await (await self.exact()).read_event(
            caller, session_id, seq, before=before, after=after, signal=signal
        )

    async def read_titles(
        self, caller: Caller, session_ids: Sequence[str], *, signal: Signal
    ) -> list[TitleItem]:
        signal.raise_if_aborted()
        return await (await self.exact()).read_titles(caller, session_ids, signal=signal)

    async def forget(self, caller: Caller, session_id: str, *, signal: Signal) -> None:
        """Remove a session for good: spilled results first, then index, copies and journal (SPEC 16.10).

        Raises: QueryError SESSION_NOT_FOUND; INVALID_FILTER while the session is live.
        """
        house = await self.house()
        entry = (await house.corpus.require(caller, session_id, signal)).entry
        if entry.live is not None:
            raise QueryError(Code.INVALID_FILTER, "the session is live; detach it first")
        if self.spill is not None and self.spill.store is not None:
            store = self.spill.store
            await trio.to_thread.run_sync(store.forget_sessions, {session_id, entry.key.id})
        house.cache.clear()
        await house.storage.write(lambda opened: opened.forgetting.forget(entry.key), signal)

    async def announce(self, url: str) -> None:
        """Say in the data directory's lock where the service listens, for other processes."""
        house = await self.house()
        await house.storage.write(lambda store: store.announce(url))

    async def statistics(self) -> JSON:
        """Counters for the operator: uptime, memory, and once the store is open what ``statistics`` tells."""
        told: dict[str, JSON] = {
            "open": self._house is not None,
            "uptime_s": round(time.monotonic() - self._made_s, 1),
            "memory": memory(),
        }
        if self._house is not None:
            told |= await house_statistics(self._house, self.config.data_dir)
        return told

    def health(self) -> JSON:
        """For anyone who is authenticated; nothing in here depends on what the service holds."""
        return {"ready": not self._search_closed, "uptime_s": round(time.monotonic() - self._made_s, 1)}

    def _require_search(self) -> None:
        if self.config.open_at == "never":
            raise QueryError(Code.SEARCH_DISABLED)
        if self._search_closed:
            raise QueryError(Code.INDEX_FAILED, "searching has ended")


def _detached(value: JSON) -> JSON:
    """A copy, so that what the host does to its own objects later has no effect (SPEC 0).

    What is no JSON is handed on as it is and refused later: no copy of it would mean anything.
    """
    return value if lossless_defect(value) else deep_copy(value)


def _spill_policy(config: ServiceConfig) -> SpillPolicy | None:
    if config.max_inline_bytes is None:
        return None
    store = None if config.data_dir is None else SpillStore(root=config.data_dir / SPILL_FOLDER)
    return SpillPolicy(store=store, max_inline_bytes=config.max_inline_bytes)


def _lane(caller: Caller, lane: Hashable) -> Hashable:
    """Searches of one agent keep their order; callers without a session have no order to keep (16.5)."""
    if lane is not None:
        return lane
    if caller.kind == "agent" and caller.header is not None:
        return ("agent", caller.source, caller.header.id, caller.header.cwd)
    return object()


@asynccontextmanager
async def open_service(config: ServiceConfig) -> AsyncIterator[Service]:
    """Open a query service for the length of a block, in whatever Trio loop is running.

    ``open_at`` ``startup``: the store is opened before the block begins and a bad index fails here, with
    INDEX_FAILED; ``first-search``: with the first operation that needs it; ``never``: searches are off and
    the index is kept in memory (SPEC 6.11).
    Raises: QueryError INDEX_FAILED, PERSISTENCE_FAILED, INVALID_CONFIG; nothing stays open then.
    Cancellation: stops in order, shielded, each stage bounded.
    """
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        # Shielded: what others depend on is stopped by its owner, below, not by the host's cancellation.
        with trio.CancelScope(shield=True):  # a start that is cancelled would wait for it for ever
            parts: trio.Nursery = await nursery.start(_shielded_nursery)
        service = Service(config, Mounted(strict=config.strict_conflicts), parts)
        try:
            if config.open_at != "first-search":
                await service.house()
            yield service
        except Exception as exc:  # handed on outside the nursery, so that it stays what it is
            failure = exc
        finally:
            with trio.CancelScope(shield=True):
                await service.end()
            parts.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _shielded_nursery(*, task_status: trio.TaskStatus[trio.Nursery]) -> None:
    with trio.CancelScope(shield=True):
        async with trio.open_nursery() as nursery:
            task_status.started(nursery)
            await trio.sleep_forever()
