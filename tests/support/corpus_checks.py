"""What every real log of a format must survive: read without error, counted whole, folded, found again."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from session_query.protocol.json_value import JSON
from session_query.protocol.text import event_text
from session_query.protocol.whitespace import collapse
from session_query.storage.readers.collect import Collected
from session_query.storage.readers.seam import LogUnit, Reader
from support.reader_conformance import check_session, read_unit, units_of

Draw = Callable[[JSON], Iterable[str]]


def read_folder(reader: Reader, root: Path) -> Iterator[tuple[LogUnit, Collected]]:
    """Every unit below ``root`` with all it yields; each session checked (header, envelope, fold)."""
    for unit in units_of(reader, root):
        collected = read_unit(reader, unit)
        for session in collected.sessions.values():
            check_session(session)
        yield unit, collected


def json_lines(path: Path) -> tuple[list[JSON], int]:
    """The values of a JSONL file that parse line by line, and how many lines do not (comments are none)."""
    values: list[JSON] = []
    bad = 0
    for line in path.read_bytes().split(b"\n"):
        if not line.strip() or line.lstrip().startswith(b"//"):
            continue
        try:
            values.append(json.loads(line))
        except ValueError:
            bad += 1
    return values, bad


def check_counts(collected: Collected, path: Path) -> None:
    """Held and lost together are the physical records, counted without the reader."""
    values, bad = json_lines(path)
    objects = sum(isinstance(value, dict) for value in values)
    lost = sum(loss.records for loss in collected.losses)
    assert (collected.held, lost) == (objects, bad), path


def check_found(collected: Collected, words: Iterable[str], seed: int, draws: int = 40) -> int:
    """Pieces drawn from ``words`` stand in the text of some event; returns how many were drawn."""
    pool = [text for text in (collapse(word) for word in words) if text]
    texts = [
        collapse(event_text(event)) for session in collected.sessions.values() for event in session.events
    ]
    rng = random.Random(seed)
    chosen = rng.sample(pool, min(draws, len(pool)))
    for text in chosen:
        start = rng.randrange(max(1, len(text) - 40))
        piece = collapse(text[start : start + 40])
        assert any(piece in found for found in texts), piece
    return len(chosen)


def prefixes_agree(reader: Reader, path: Path, copy: Path, cuts: int = 12, seed: int = 5) -> None:
    """A log cut after any line has the events of the whole one, up to where it was cut."""
    lines = path.read_bytes().splitlines(keepends=True)
    copy.write_bytes(b"".join(lines))
    whole = read_unit(reader, units_of(reader, copy)[0])
    rng = random.Random(seed)
    for cut in sorted(rng.sample(range(len(lines)), min(cuts, len(lines)))):
        copy.write_bytes(b"".join(lines[:cut]))
        part = read_unit(reader, units_of(reader, copy)[0])
        for name, session in part.sessions.items():
            kept = whole.sessions[name].events[: len(session.events)]
            assert [(event.seq, event.type) for event in kept] == [
                (event.seq, event.type) for event in session.events
            ]
