"""Reading a database of sessions: which of them changed, and those, a few at a time.

A format says how to tell that a session changed (``signatures``) and how to load one (``load``); what a
checkpoint remembers is a signature for each session. A session that is gone makes the read begin anew,
because only then the store forgets it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import attrs
import msgspec

from ...sqlite import Connection
from ..discovery import printable
from ..seam import Checkpoint, Loss, ReadBatch, Refusal, SessionDelta
from .foreign_db import DamagedDatabase, NoSuchDatabase, read_database
from .saved import pack_state, unpack_state

_BATCH_BYTES: Final = 2 << 20


@attrs.frozen
class Loaded:
    """One session, told. ``lost`` counts rows of ``rows`` that could not be kept."""

    delta: SessionDelta
    rows: int
    lost: int
    bytes_read: int


class Store(Protocol):
    """What a format knows of its database."""

    @property
    def version(self) -> int: ...

    @property
    def tables(self) -> frozenset[str]: ...

    def signatures(self, connection: Connection) -> dict[str, bytes]:
        """Every session, oldest first, with what moves when the session does."""
        ...

    def load(self, connection: Connection, session_id: str) -> Loaded | None:
        """One session, or None if it is gone."""
        ...


class _Known(msgspec.Struct):
    signatures: dict[str, bytes] = {}


def read_sessions(
    path: Path, store: Store, checkpoint: Checkpoint | None, stopped: Callable[[], bool]
) -> Iterator[ReadBatch]:
    """Read what changed since ``checkpoint``. Raises: OSError, also while the owner locks the file."""
    try:
        yield from _read(path, store, checkpoint, stopped)
    except NoSuchDatabase as exc:
        refusal = Refusal(kind="not-a-session", message=f"no store of this format: {exc}")
        yield ReadBatch(sessions=(), restart=True, refusal=refusal)
    except DamagedDatabase as exc:
        yield ReadBatch(sessions=(), refusal=Refusal(kind="corrupt", message=str(exc)))


def _read(
    path: Path, store: Store, checkpoint: Checkpoint | None, stopped: Callable[[], bool]
) -> Iterator[ReadBatch]:
    now = read_database(path, store.tables, store.signatures)
    known = _known(store, checkpoint)
    restart = known is None or not known.signatures.keys() <= now.keys()
    if known is None or restart:
        known = _Known()
    wanted = [name for name, signature in now.items() if known.signatures.get(name) != signature]
    first = True
    while first or wanted:
        loaded = read_database(path, store.tables, partial(_load_some, store, wanted))
        wanted = wanted[len(loaded) :]
        known.signatures.update({name: now[name] for name in loaded})
        batch = _batch(path, [found for found in loaded.values() if found is not None])
        yield attrs.evolve(
            batch,
            restart=restart and first,
            checkpoint=Checkpoint(offset=0, prefix=b"", state=pack_state(store.version, known)),
        )
        first = False
        if stopped():
            return


def _known(store: Store, checkpoint: Checkpoint | None) -> _Known | None:
    try:
        return None if checkpoint is None else unpack_state(store.version, checkpoint.state, _Known)
    except ValueError:
        return None


def _load_some(store: Store, wanted: list[str], connection: Connection) -> dict[str, Loaded | None]:
    """The next sessions, as many as make a batch."""
    loaded: dict[str, Loaded | None] = {}
    size = 0
    for name in wanted:
        loaded[name] = found = store.load(connection, name)
        size += found.bytes_read if found is not None else 0
        if size >= _BATCH_BYTES:
            break
    return loaded


def _batch(path: Path, found: list[Loaded]) -> ReadBatch:
    losses = [
        Loss(
            path=printable(path),
            offset=0,
            length=0,
            cause=f"rows of session {item.delta.header.id} that hold no message",
            records=item.lost,
        )
        for item in found
        if item.lost
    ]
    rows, lost = sum(item.rows for item in found), sum(item.lost for item in found)
    return ReadBatch(
        sessions=tuple(item.delta for item in found),
        losses=tuple(losses),
        records=rows,
        held=rows - lost,
        bytes_read=sum(item.bytes_read for item in found),
    )
