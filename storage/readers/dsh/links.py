"""``surfaceOp`` and ``sourceEventSeqs`` of a record, as far as they can be made valid (SPEC 2, 16.7.4).

What a record says in written seqs becomes places. A link that cannot be valid is left out with a note:
the event stays, appended, and the log still folds.
"""

from __future__ import annotations

from typing import cast

import msgspec
from msgspec import UNSET, UnsetType

from ....protocol.event import Event
from ....protocol.json_value import JSON, is_safe_integer, whole
from ....protocol.surface import SurfaceError, SurfaceFold
from .numbering import Numbering, written_seqs


class Bounds(msgspec.Struct, frozen=True):
    """A replacement's bounds as written."""

    start: int
    end: int


class Links(msgspec.Struct, frozen=True):
    """What a record says of earlier events. ``op`` is None for what is no surface operation."""

    op: Bounds | None
    appended: bool
    sources: list[int] | UnsetType
    sound: bool


def read_links(obj: dict[str, JSON], numbering: Numbering, seq: int) -> Links:
    """Read a record's links and resolve its sources to places before ``seq``, in order, each once."""
    op = obj.get("surfaceOp", "append")
    bounds = _bounds(op)
    sources: list[int] | UnsetType = UNSET
    sound = bounds is not None or op == "append"
    if "sourceEventSeqs" in obj:
        written = written_seqs(obj["sourceEventSeqs"])
        found = numbering.places_of(written or [])
        sources = list(dict.fromkeys(_before(found, seq)))
        sound = sound and written is not None and len(sources) == len(found)
        if not sources and (written or written is None):
            sources = UNSET
    return Links(bounds, op == "append", sources, sound)


def _before(places: list[int | None], seq: int) -> list[int]:
    known = [place for place in places if place is not None] if None in places else cast(list[int], places)
    return [place for place in known if place < seq] if known and max(known) >= seq else known


def _bounds(op: JSON) -> Bounds | None:
    """Read both spellings: ``start``/``end`` of the first formats, ``startSeq``/``endSeq`` of later ones."""
    if not isinstance(op, dict) or op.get("op") != "replace":
        return None
    start, end = whole(op.get("start", op.get("startSeq"))), whole(op.get("end", op.get("endSeq")))
    return Bounds(start, end) if is_safe_integer(start) and is_safe_integer(end) else None


def place_event(
    event: Event, links: Links, numbering: Numbering, fold: SurfaceFold
) -> tuple[Event, str | None]:
    """Give a surface event its links and fold it. Returns the event, and a note if one was left out.

    The first of these that folds is taken: the links as written; for a replacement whose ends are not
    on the surface (their records may be lost), the run of nodes that its sources name; appended with
    its sources; appended.
    """
    note = None if links.sound else f"event {event.seq}: a link that is none was left out"
    sources = links.sources
    if sources == [] and event.type != "assistant/message":
        sources = UNSET
    for op in _operations(links, numbering, fold):
        try:
            placed = _with_links(event, op, sources)
            fold.append(placed)
        except SurfaceError as exc:
            note = f"event {event.seq}: its replacement was left out ({exc.args[-1]})"
        else:
            return placed, note
    placed = _with_links(event, "append", UNSET)
    fold.append(placed)
    return placed, note


def _operations(links: Links, numbering: Numbering, fold: SurfaceFold) -> list[JSON]:
    operations: list[JSON] = []
    if links.op is not None:
        start, end = numbering.place_of(links.op.start), numbering.place_of(links.op.end)
        if start is None or end is None or not (fold.is_current(start) and fold.is_current(end)):
            run = _named_run(links.sources, fold)
        else:
            run = (start, end)
        if run is not None:
            operations.append({"op": "replace", "start": run[0], "end": run[1]})
    return [*operations, "append"]


def _named_run(sources: list[int] | UnsetType, fold: SurfaceFold) -> tuple[int, int] | None:
    """The ends of the one run of current nodes that the sources name; None if they are no such run."""
    named = set() if isinstance(sources, UnsetType) else {seq for seq in sources if fold.is_current(seq)}
    if not named:
        return None
    nodes = fold.nodes()
    first = next(at for at, seq in enumerate(nodes) if seq in named)
    run = nodes[first : first + len(named)]
    return (run[0], run[-1]) if set(run) == named else None


def _with_links(event: Event, op: JSON, sources: list[int] | UnsetType) -> Event:
    return Event(
        type=event.type,
        seq=event.seq,
        time=event.time,
        data=event.data,
        surface_op=op,
        source_event_seqs=UNSET if isinstance(sources, UnsetType) else list[JSON](sources),
        ignorable=event.ignorable,
    )
