"""From a log to what the index keeps of it: documents, skeletons, surfaces and the title.

Pure bookkeeping, no SQL: ``Projection.feed`` says what a run of events changes, and whoever owns the
index writer applies it. The same code serves logs that are read and journals that are caught up with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
from msgspec import structs

from ..protocol.documents import Document, DocumentBuilder
from ..protocol.event import Event, Surface
from ..protocol.records import Title
from ..protocol.surface import SurfaceError, SurfaceFold
from ..protocol.titles import MalformedTitle, TitleFold
from .index.door import IndexWriter, Skeleton


@attrs.define(eq=False)
class Change:
    """What a run of events adds to the index and changes in it. ``shadowed``: documents stored before."""

    documents: list[Document] = attrs.field(factory=list)
    skeleton: list[Skeleton] = attrs.field(factory=list)
    surfaces: dict[int, Surface] = attrs.field(factory=dict)

    def apply(self, writer: IndexWriter, sid: int) -> None:
        """Write it, inside the writer's transaction."""
        writer.append(sid, self.documents, self.skeleton)
        if self.surfaces:
            writer.reclassify(sid, self.surfaces)


@attrs.define(eq=False)
class Projection:
    """One log's way into the index. Owner: whoever feeds it, always in the writer thread.

    ``broken`` is the code of what makes the log unfit for search; from then on only the length grows.
    """

    builder: DocumentBuilder = attrs.field(factory=DocumentBuilder)
    titles: TitleFold = attrs.field(factory=TitleFold)
    length: int = 0
    last_time: int = 0
    broken: str | None = None
    _titled: Event | None = attrs.field(default=None, init=False)
    _title: tuple[Title | None, str | None] = attrs.field(default=(None, None), init=False)
    """The title that ``_titled`` gives."""

    def feed(self, events: Sequence[Event], *, skeleton: bool = True) -> Change:
        """Take the next events. ``skeleton`` False: the events are kept elsewhere and can be read again.

        Raises: ValueError: the events do not begin at ``length`` (a bug of whoever feeds).
        """
        if events and events[0].seq != self.length:
            raise ValueError(f"event {events[0].seq} where {self.length} was due")
        documents: dict[int, Document] = {}
        surfaces: dict[int, Surface] = {}
        for event in events:
            self.titles.feed(event)
            if self.broken is None:
                self._feed(event, documents, surfaces)
        if events:
            self.length = events[-1].seq + 1
            self.last_time = events[-1].time
        if self.broken is not None:
            return Change()
        return Change(list(documents.values()), skeletons(events) if skeleton else [], surfaces)

    def _feed(self, event: Event, documents: dict[int, Document], surfaces: dict[int, Surface]) -> None:
        try:
            document = self.builder.feed(event)
        except SurfaceError as exc:
            self.broken = exc.code.value
            return
        if document is not None:
            documents[document.seq] = document
        for seq in self.builder.shadowed:
            if seq in documents:
                documents[seq] = structs.replace(documents[seq], surface="shadowed")
            else:
                surfaces[seq] = "shadowed"

    def title(self, reported: Title | None = None) -> tuple[Title | None, str | None]:
        """The title as of now; see ``title_of_log``."""
        last = self.titles.last
        if reported is not None:
            return title_of_log(last, reported)
        if last is not self._titled:
            self._titled, self._title = last, title_of_log(last, None)
        return self._title


def title_of_log(last: Event | None, reported: Title | None) -> tuple[Title | None, str | None]:
    """The title and, if it cannot be told, the code why. A newer reported one wins (SPEC 16.6.7).

    Args: ``last``: the log's last title event. ``reported``: what its source tells beside it.
    """
    if last is None or (reported is not None and reported.time > last.time):
        return reported, None
    try:
        return TitleFold(last).title(), None
    except MalformedTitle as exc:
        return None, exc.code.value


def skeletons(events: Iterable[Event]) -> list[Skeleton]:
    """The events without their data."""
    return [
        Skeleton(
            seq=event.seq,
            type=event.type,
            time=event.time,
            surface_op=event.surface_op,
            source_event_seqs=event.source_event_seqs,
        )
        for event in events
    ]


def refold(stored: Sequence[Skeleton], length: int) -> tuple[SurfaceFold, set[int]]:
    """Fold stored events 0..``length`` again.

    Returns: the fold behind them, and the seqs below ``length`` that only later stored events shadowed:
    if those are taken back, these are current again. Raises: SurfaceError: the skeleton is damaged.
    """
    fold = SurfaceFold()
    for event in stored[:length]:
        fold.append_skeleton(event)
    if len(stored) <= length:
        return fold, set()
    whole = SurfaceFold()
    for event in stored:
        whole.append_skeleton(event)
    return fold, {seq for seq in fold.nodes() if not whole.is_current(seq)}
