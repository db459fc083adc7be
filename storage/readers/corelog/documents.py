"""Logs that are one JSON document, rewritten whole with every change."""

from __future__ import annotations

from collections.abc import Iterator

from ..driver import MapperFactory, Record
from ..seam import LogUnit, ReadBatch, Refusal
from ..whole import read_document


def read_rewritten(unit: LogUnit, new_mapper: MapperFactory) -> Iterator[ReadBatch]:
    """Read a document as one record. There is no checkpoint: a changed document is another one.

    One that does not parse is perhaps half written: it is refused as ``corrupt``, and what was known of
    it stays. Raises: OSError.
    """
    size = unit.path.stat().st_size
    try:
        document = read_document(unit.path)
    except ValueError:
        yield ReadBatch(sessions=(), refusal=Refusal(kind="corrupt", message="half written or damaged"))
        return
    mapper = new_mapper(None)
    if isinstance(document, dict):
        mapper.feed(Record(document, 0, size))
    verdict = mapper.verdict()
    if verdict is not True:
        message = "no session of this format" if verdict is False else verdict.message
        kind = "not-a-session" if verdict is False else verdict.kind
        yield ReadBatch(sessions=(), restart=True, refusal=Refusal(kind=kind, message=message))
        return
    yield ReadBatch(sessions=tuple(mapper.take()), records=1, held=1, restart=True, bytes_read=size)
