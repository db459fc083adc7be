"""Mounted providers: the host's own stores, which may appear, disappear and be replaced (SPEC 1.9, 4.1).

Each is bound to a name. A binding has an epoch: revisions of one binding say nothing about another's
(SPEC 6.10.4). A provider that fails never fails the rest (SPEC 16.6.4): what is known of it stays, and the
operations that need it say so.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import attrs
import trio

from ..protocol.errors import Code, CorruptLog, QueryError
from ..protocol.event import Event
from ..protocol.header import SessionHeader, compatible
from ..protocol.signal import Signal
from .providers import Inspected, PersistenceProvider, SessionSnapshot

logger = logging.getLogger(__name__)


@attrs.frozen
class Binding:
    """One mounted provider. ``epoch`` differs for every mount, also of the same object again."""

    name: str
    provider: PersistenceProvider
    epoch: int


@attrs.define(eq=False)
class Mounted:
    """The present bindings, in mount order, and how their last listing went. Touched on the loop only."""

    strict: bool = False
    _bindings: dict[str, Binding] = attrs.field(factory=dict, init=False)
    _epochs: int = attrs.field(default=0, init=False)
    _failures: dict[str, QueryError] = attrs.field(factory=dict, init=False)
    names: frozenset[str] = attrs.field(default=frozenset(), init=False)

    def mount(self, name: str, provider: PersistenceProvider) -> Binding:
        """Bind a provider, replacing one of the same name."""
        self._epochs += 1
        binding = Binding(name, provider, self._epochs)
        self._bindings[name] = binding
        self._failures.pop(name, None)
        self.names = frozenset(self._bindings)
        return binding

    def unmount(self, name: str) -> bool:
        """Unbind a provider; False if none has this name."""
        found = self._bindings.pop(name, None) is not None
        self._epochs += found
        self._failures.pop(name, None)
        self.names = frozenset(self._bindings)
        return found

    @property
    def bindings(self) -> tuple[Binding, ...]:
        return tuple(self._bindings.values())

    def is_bound(self, binding: Binding) -> bool:
        """Whether this very binding still holds."""
        return self._bindings.get(binding.name) is binding

    async def listed(
        self, signal: Signal, only: frozenset[str] | None = None
    ) -> list[tuple[str, SessionHeader]]:
        """What every bound provider lists now, in mount order, as (name, header).

        A failing provider lists nothing and is remembered for ``raise_failure``; ``strict`` raises.
        Args: only: keep these ids alone.
        """
        told: list[tuple[str, SessionHeader]] = []
        for binding in self.bindings:
            try:
                headers = await binding.provider.list(signal)
                checked = _headers(headers)
            except Exception as exc:
                self._note_failure(binding, exc)
                continue
            self._failures.pop(binding.name, None)
            told.extend((binding.name, header) for header in checked if only is None or header.id in only)
        return told

    def raise_failure(self) -> None:
        """Raise the failure of the last listing, if any provider failed: absence cannot be told then."""
        for failure in self._failures.values():
            raise failure

    async def snapshots(self, binding: Binding, signal: Signal) -> dict[str, SessionSnapshot]:
        """One provider's listing with revisions, by id.

        Raises: QueryError PERSISTENCE_FAILED: it failed, or told something malformed (SPEC 6.10.6).
        """
        try:
            listed = await binding.provider.list_snapshots(signal)
            found = {snapshot.header.id: snapshot for snapshot in _snapshots(listed)}
            if len(found) != len(listed):
                raise _malformed("an id is listed twice")
        except Exception as exc:
            self._note_failure(binding, exc)
            raise _failed(exc) from exc
        self._failures.pop(binding.name, None)
        return found

    async def inspect(self, name: str, listed: SessionHeader, signal: Signal) -> Sequence[Event]:
        """Header and log of one listed session (SPEC 4.4.4-4.4.6, 4.5).

        Raises: QueryError SESSION_NOT_FOUND when the provider is gone, CORRUPT_SESSION for its corruption
            type, PERSISTENCE_FAILED for anything else, SOURCE_CONFLICT for incompatible headers.
        """
        binding = self._bindings.get(name)
        if binding is None:
            raise QueryError(Code.SESSION_NOT_FOUND)
        inspected = await inspect_with(binding.provider, listed.id, signal)
        if not compatible(inspected.header, listed):
            raise QueryError(Code.SOURCE_CONFLICT, "listed and inspected headers differ")
        return inspected.events

    def _note_failure(self, binding: Binding, exc: Exception) -> None:
        failure = _failed(exc)
        if self.strict:
            raise failure from exc
        if binding.name not in self._failures:
            logger.warning("provider %s failed to list: %s", binding.name, type(exc).__name__)
        failure.__cause__ = exc
        self._failures[binding.name] = failure


async def inspect_with(provider: PersistenceProvider, session_id: str, signal: Signal) -> Inspected:
    """Inspect one session, failures mapped as SPEC 4.5 says."""
    try:
        inspected = await provider.inspect(session_id, signal)
        if not isinstance(inspected.header, SessionHeader):
            raise _malformed("inspection gave no header")
    except CorruptLog as exc:
        raise QueryError(Code.CORRUPT_SESSION) from exc
    except Exception as exc:
        raise _failed(exc) from exc
    await trio.lowlevel.checkpoint_if_cancelled()
    return inspected


def _failed(exc: Exception) -> QueryError:
    if isinstance(exc, QueryError) and exc.code is Code.PERSISTENCE_FAILED:
        return exc
    return QueryError(Code.PERSISTENCE_FAILED, f"a provider failed: {type(exc).__name__}")


def _malformed(why: str) -> QueryError:
    return QueryError(Code.PERSISTENCE_FAILED, f"a provider's answer is malformed: {why}")


def _headers(listed: object) -> list[SessionHeader]:
    if not isinstance(listed, (list, tuple)):
        raise _malformed("the listing is no list")
    if not all(isinstance(header, SessionHeader) for header in listed):
        raise _malformed("the listing holds something else than headers")
    return list(listed)


def _snapshots(listed: object) -> list[SessionSnapshot]:
    if not isinstance(listed, (list, tuple)):
        raise _malformed("the listing is no list")
    for snapshot in listed:
        if not isinstance(snapshot, SessionSnapshot) or not isinstance(snapshot.header, SessionHeader):
            raise _malformed("the listing holds something else than snapshots")
        if not isinstance(snapshot.revision, str):
            raise _malformed("a revision is no text")
    return list(listed)
