"""Mounted providers: the host's own stores, which may appear, disappear and be replaced (SPEC 1.9, 4.1).

Each is bound to a name. A binding has an epoch: revisions of one binding say nothing about another's
(SPEC 6.10.4). A provider that fails never fails the rest (SPEC 16.6.4): what is known of it stays, and
the operations that need it say so. Whatever a provider raises or returns ends here as a code.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeGuard, TypeVar

import attrs
import trio
from msgspec import UNSET

from ..protocol.errors import Code, CorruptLog, QueryError
from ..protocol.event import Event
from ..protocol.header import SessionHeader
from ..protocol.json_value import is_safe_integer
from ..protocol.signal import Signal
from ..storage.journal import PUBLISHED
from ..storage.readers.registry import READERS
from .providers import Inspected, PersistenceProvider, SessionSnapshot

logger = logging.getLogger(__name__)
T = TypeVar("T")

JUDGED_ON_LOOP: Final = 64
"""Events of a provider's log that are looked at in the event loop; more go to a thread."""

LIVE = "live"
BUILT_IN = frozenset((LIVE, PUBLISHED, *READERS))
"""Sources of our own: no provider may take such a name, its sessions would pass for theirs."""


@attrs.frozen
class Binding:
    """One mounted provider. ``epoch`` differs for every mount, also of the same object again.

    ``since``: the monotonic time of the mount.
    """

    name: str
    provider: PersistenceProvider
    epoch: int
    since: float


@attrs.frozen
class Told:
    """One listing of every provider: (name, header) in mount order, and why some could not be listed."""

    headers: tuple[tuple[str, SessionHeader], ...] = ()
    failures: dict[str, QueryError] = attrs.field(factory=dict)

    def raise_failure(self) -> None:
        """Raise why a provider could not be listed, if one could not: absence cannot be told then."""
        for failure in self.failures.values():
            raise failure


@attrs.define(eq=False)
class Mounted:
    """The present bindings, in mount order. Touched on the loop only.

    ``epoch`` moves with every mount and unmount. ``strict``: a provider that cannot be listed fails the
    listing (SPEC 4.5). ``is_forgotten``: sessions that were forgotten here and are passed over, although
    the provider goes on telling them (SPEC 16.10).
    """

    strict: bool = False
    epoch: int = attrs.field(default=0, init=False)
    names: frozenset[str] = attrs.field(default=frozenset(), init=False)
    is_forgotten: Callable[[SessionHeader], bool] = attrs.field(default=lambda _: False, init=False)
    _bindings: dict[str, Binding] = attrs.field(factory=dict, init=False)
    _failing: set[str] = attrs.field(factory=set, init=False)

    def mount(self, name: str, provider: PersistenceProvider) -> Binding:
        """Bind a provider, replacing one of the same name.

        Raises: QueryError INVALID_CONFIG: a name that is empty, has a colon or slash, or is a source's.
        """
        if not name or ":" in name or "/" in name or name in BUILT_IN:
            raise QueryError(Code.INVALID_CONFIG, "a provider's name has no colon or slash and is not ours")
        self.epoch += 1
        binding = Binding(name, provider, self.epoch, time.monotonic())
        self._bindings[name] = binding
        self._failing.discard(name)
        self.names = frozenset(self._bindings)
        return binding

    def unmount(self, name: str) -> bool:
        """Unbind a provider; False if none has this name."""
        found = self._bindings.pop(name, None) is not None
        self.epoch += found
        self._failing.discard(name)
        self.names = frozenset(self._bindings)
        return found

    @property
    def bindings(self) -> tuple[Binding, ...]:
        return tuple(self._bindings.values())

    def binding(self, name: str) -> Binding | None:
        return self._bindings.get(name)

    def is_bound(self, binding: Binding) -> bool:
        """Whether this very binding still holds."""
        return self._bindings.get(binding.name) is binding

    async def listed(self, signal: Signal) -> Told:
        """What every bound provider lists now, asked side by side. A failing one lists nothing.

        Raises: QueryError PERSISTENCE_FAILED in strict mode.
        """
        bindings = self.bindings
        answers: dict[str, list[SessionHeader] | QueryError] = {}

        async def ask(binding: Binding) -> None:
            try:
                answers[binding.name] = _headers(await _settled(lambda: binding.provider.list(signal)))
            except QueryError as failure:
                answers[binding.name] = failure

        async with trio.open_nursery() as nursery:
            for binding in bindings:
                nursery.start_soon(ask, binding)
        told: list[tuple[str, SessionHeader]] = []
        failures: dict[str, QueryError] = {}
        for binding in bindings:
            answer = answers[binding.name]
            if isinstance(answer, QueryError):
                failures[binding.name] = answer
                self._failed(binding, answer, signal)
            else:
                self._failing.discard(binding.name)
                told.extend((binding.name, header) for header in answer if not self.is_forgotten(header))
        return Told(tuple(told), failures)

    async def snapshots(self, binding: Binding, signal: Signal) -> dict[str, SessionSnapshot]:
        """One provider's listing with revisions, by id.

        Raises: QueryError PERSISTENCE_FAILED: it failed, or told something malformed (SPEC 6.10 step 6).
        """
        try:
            found = _snapshots(await _settled(lambda: binding.provider.list_snapshots(signal)))
        except QueryError as failure:
            self._failed(binding, failure, signal)
            raise
        self._failing.discard(binding.name)
        return {id_: one for id_, one in found.items() if not self.is_forgotten(one.header)}

    def _failed(self, binding: Binding, failure: QueryError, signal: Signal) -> None:
        """Say once that a provider is out of order; in strict mode the failure is the caller's."""
        if self.strict:
            raise failure
        if not signal.aborted and self.is_bound(binding) and binding.name not in self._failing:
            self._failing.add(binding.name)
            cause = type(failure.__cause__ or failure).__name__
            logger.warning("provider %s cannot be listed: %s", binding.name, cause)


async def inspect_with(provider: PersistenceProvider, listed: SessionHeader, signal: Signal) -> Inspected:
    """Header and events of one listed session (SPEC 4.4.4, 4.5). Whether the headers agree is judged later.

    Raises: QueryError CORRUPT_SESSION for the corruption type; PERSISTENCE_FAILED for everything else.
    """
    found = await _settled(lambda: provider.inspect(listed.id, signal), corrupt=Code.CORRUPT_SESSION)
    if not _is(found, Inspected) or not _is_header(found.header):
        raise _malformed("an inspection gave no header")
    if not _is_row(found.events) or not all(_is(event, Event) for event in found.events):
        raise _malformed("an inspection gave something else than events")
    if len(found.events) <= JUDGED_ON_LOOP:
        plain = _are_plain(found.events)
    else:
        plain = await trio.to_thread.run_sync(_are_plain, found.events)
    if not plain:
        raise _malformed("an event holds something else than JSON")
    return found


def _is(value: object, *kinds: type[T]) -> TypeGuard[T]:
    """As ``isinstance``, without asking the value: what a provider hands out may answer with an exception."""
    return issubclass(type(value), kinds)


def _is_row(value: object) -> TypeGuard[Sequence[object]]:
    return _is(value, list, tuple)


def _are_plain(events: Sequence[Event]) -> bool:
    """Whether events hold nothing but JSON by its types, so that whoever walks them meets no surprise."""
    return all(
        _is(event.type, str)
        and _is(event.seq, int)
        and _is(event.time, int)
        and _is_plain((event.data, event.surface_op, event.source_event_seqs, event.ignorable))
        for event in events
    )


def _is_plain(value: object) -> bool:
    """Texts, numbers, lists and objects, without a cycle. Numbers may be any: the wire knows what to do."""
    path: set[int] = set()
    stack: list[tuple[object, bool]] = [(value, False)]
    while stack:
        node, leaving = stack.pop()
        if leaving:
            path.discard(id(node))
        elif _is(node, dict, list, tuple):
            if id(node) in path:
                return False
            path.add(id(node))
            stack.append((node, True))
            if _is(node, dict):
                stack += [(member, False) for member in node.values()]
                if not all(_is(key, str) for key in node):
                    return False
            elif _is_row(node):
                stack += [(member, False) for member in node]
        elif not (_is(node, str, int, float) or node is None or node is UNSET):
            return False
    return True


async def _settled(call: Callable[[], Awaitable[T]], corrupt: Code = Code.PERSISTENCE_FAILED) -> T:
    """A provider's answer. Raises: QueryError for whatever it raised but Trio's and Python's own."""
    try:
        return await call()
    except BaseException as exc:
        if _is_ours(exc):
            raise
        code = corrupt if isinstance(exc, CorruptLog) else Code.PERSISTENCE_FAILED
        raise QueryError(code, f"a provider failed: {type(exc).__name__}") from exc


def _is_ours(exc: BaseException) -> bool:
    """Whether an exception ends tasks or the process, and so is no failure of a provider."""
    if isinstance(exc, BaseExceptionGroup):
        return any(_is_ours(inner) for inner in exc.exceptions)
    return isinstance(exc, trio.Cancelled | KeyboardInterrupt | SystemExit | GeneratorExit)


def _malformed(why: str) -> QueryError:
    return QueryError(Code.PERSISTENCE_FAILED, f"a provider's answer is malformed: {why}")


def _headers(listed: object) -> list[SessionHeader]:
    if not _is_row(listed):
        raise _malformed("the listing is no list")
    headers = [header for header in listed if _is_header(header)]
    if len(headers) != len(listed):
        raise _malformed("the listing holds something else than headers")
    if len({header.id for header in headers}) != len(headers):
        raise _malformed("an id is listed twice")
    return headers


def _snapshots(listed: object) -> dict[str, SessionSnapshot]:
    if not _is_row(listed):
        raise _malformed("the listing is no list")
    found: dict[str, SessionSnapshot] = {}
    for snapshot in listed:
        if not _is(snapshot, SessionSnapshot) or not _is_header(snapshot.header):
            raise _malformed("the listing holds something else than snapshots")
        if type(snapshot.revision) is not str:
            raise _malformed("a revision is no text")
        found[snapshot.header.id] = snapshot
    if len(found) != len(listed):
        raise _malformed("an id is listed twice")
    return found


def _is_header(header: object) -> TypeGuard[SessionHeader]:
    """Whether a header is one by its types; what it says is the provider's word."""
    return (
        _is(header, SessionHeader)
        and type(header.id) is str
        and header.id != ""
        and is_safe_integer(header.created_at)
        and header.created_at >= 0
        and all(field is None or type(field) is str for field in _texts(header))
    )


def _texts(header: SessionHeader) -> Sequence[object]:
    return header.cwd, header.parent_session, header.origin, header.agent_preset
