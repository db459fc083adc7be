"""What a ``.jsonl`` can be instead of one record a line: one JSON document, values over many lines,
or no session log at all (a program's debug output with JSON in it).

Decided only when the first line is not an object: healthy logs never pay for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Literal, TypeAlias

from ...protocol.json_value import JSON
from .decode import decode_record, lenient_text
from .lines import Chunk, open_regular, split_lines
from .salvage import salvage, values_of

DOCUMENT_MAX_BYTES: Final = 64 << 20
"""A larger file is not tried as one document."""
_LOOK_LINES: Final = 4096
_LOOK_BYTES: Final = 4 << 20

Shape: TypeAlias = Literal["lines", "damaged", "neither"]


def shape_of(chunks: Iterator[Chunk], is_record: Callable[[dict[str, JSON]], bool]) -> Shape:
    """Tell what a log is from its first 4096 lines or 4 MB.

    ``lines``: its first line with something on it is an object, or most lines are. ``damaged``: most are
    not, but one is an object that ``is_record`` knows. ``neither``: not even that. The latter two are to
    be tried as a whole first.
    """
    good = bad = seen = known = 0
    for line in split_lines(chunks):
        if not line.settled:
            bad += _is_list(line.data)
            break
        raw = _content(line.data)
        if raw:
            objects, lost, exact = _objects(raw)
            if exact and not good + bad:
                return "lines"
            good += bool(objects) and not lost
            bad += not objects or lost
            known += exact and is_record(objects[0])
        seen += line.length
        if good + bad >= _LOOK_LINES or seen >= _LOOK_BYTES:
            break
    if good > bad or not bad:
        return "lines"
    return "damaged" if known else "neither"


def _content(raw: bytes | None) -> bytes:
    """A line without what counts for nothing: fill, a byte order mark, a comment."""
    stripped = (raw or b"").removeprefix(b"\xef\xbb\xbf").strip(b"\x00 \t\r\n")
    return b"" if stripped.startswith(b"//") else stripped


def _is_list(raw: bytes | None) -> bool:
    try:
        return isinstance(decode_record(_content(raw)), list)
    except ValueError:
        return False


def _objects(raw: bytes) -> tuple[list[dict[str, JSON]], bool, bool]:
    """The objects of a line, whether something of it is lost, and whether it is exactly one object."""
    try:
        value = decode_record(raw)
    except ValueError:
        pieces = salvage(raw)
        return (
            [piece.obj for piece in pieces if piece.obj is not None],
            any(piece.obj is None for piece in pieces),
            False,
        )
    return ([value], False, True) if isinstance(value, dict) else ([], True, False)


def read_document(path: Path, max_bytes: int = DOCUMENT_MAX_BYTES) -> JSON:
    """Read a file that is one JSON document as a whole.

    Raises: OSError. ValueError: it is not one JSON value (perhaps half written), or above ``max_bytes``.
    """
    with open_regular(path) as file:
        raw = file.read(max_bytes + 1)
    if len(raw) > max_bytes:
        raise ValueError(f"a document above {max_bytes} bytes")
    return decode_record(raw.removeprefix(b"\xef\xbb\xbf").strip(b"\x00 \t\r\n"))


def read_values(path: Path, max_bytes: int = DOCUMENT_MAX_BYTES) -> list[dict[str, JSON]]:
    """The objects of a file that holds one document, a list of objects, or values one after the other.

    Empty if it holds anything else, or is above ``max_bytes``. Raises: OSError.
    """
    try:
        value = read_document(path, max_bytes)
        values = value if isinstance(value, list) else [value]
    except ValueError:
        values = _values(path, max_bytes)
    return [item for item in values if isinstance(item, dict)]


def _values(path: Path, max_bytes: int) -> list[JSON]:
    with open_regular(path) as file:
        raw = file.read(max_bytes + 1)
    try:
        return [] if len(raw) > max_bytes else list(values_of(lenient_text(raw)))
    except ValueError:
        return []
