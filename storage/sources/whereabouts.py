"""Where a log lies, in few bytes: nothing that follows from its path, or from the root it was found in.

Paths are the file system's own bytes: names need not be UTF-8, and may hold anything but NUL.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Final, NamedTuple

import msgspec

_UUID: Final = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_FOLD: Final = b"\xff"
"""Stands before the 16 bytes of an id that a name spells out in 36."""

_ENCODING, _ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
"""What ``os.fsdecode`` decodes with: all units are unpacked at a start."""

# What the first byte says.
_BELOW: Final = 1  # the path is the root's and more
_FOLDER: Final = 2  # the place is the folder below the root, as of most formats
_ITSELF: Final = 4  # the place is all of the path below the root
_SIMPLE: Final = 8  # one file, at its place: nothing follows but the path
_UNFOLDED: Final = 16  # the bytes hold one that stands before an id

_Parts = tuple[bytes, bytes | None, bytes | None, list[tuple[int, bytes]] | None]
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Parts).decode


class Whereabouts(NamedTuple):
    """``place`` names a log's sessions; ``home`` is the place where it lies now; ``files`` as of a unit."""

    path: str
    place: str
    home: str
    files: tuple[str, ...]


def pack_whereabouts(found: Whereabouts, root: str, label: str) -> bytes:
    """The form that is kept. ``root`` and ``label`` are those of the root, given again to read it."""
    path, above = os.fsencode(found.path), os.fsencode(root + os.sep)
    kind, rest = 0, path
    if path.startswith(above):
        kind, rest = _BELOW, path[len(above) :]
        below = os.fsdecode(rest)
        if found.place == _folder(below, label):
            kind |= _FOLDER
        elif found.place == _named(below, label):
            kind |= _ITSELF
    derived = kind > _BELOW
    alone = found.files == (found.path,)
    if derived and alone and found.home == found.place:
        kind, body = kind | _SIMPLE, rest
    else:
        place = None if derived else text_blob(found.place)
        home = None if found.home == found.place else text_blob(found.home)
        files = None if alone else [_beside(path, os.fsencode(file)) for file in found.files]
        body = _encode((rest, place, home, files))
    if _FOLD in body:
        return bytes((kind | _UNFOLDED,)) + body
    return bytes((kind,)) + _UUID.sub(_folded, body)


def unpack_whereabouts(packed: bytes, root: str, label: str) -> Whereabouts:
    """What ``pack_whereabouts`` was given with this root."""
    kind, body = packed[0], packed[1:]
    if not kind & _UNFOLDED and _FOLD in body:
        body = _spelled_out(body)
    if kind & _SIMPLE:  # nearly all: all units are unpacked at a start
        below = body.decode(_ENCODING, _ERRORS)
        path = f"{root}{os.sep}{below}"
        place = _folder(below, label) if kind & _FOLDER else _named(below, label)
        return Whereabouts(path, place, place, (path,))
    rest, kept_place, home, files = _decode(body)
    below = os.fsdecode(rest)
    path = f"{root}{os.sep}{below}" if kind & _BELOW else below
    if kind & _FOLDER:
        place = _folder(below, label)
    elif kind & _ITSELF:
        place = _named(below, label)
    else:
        place = text_of(kept_place or b"")
    lies_in = place if home is None else text_of(home)
    return Whereabouts(path, place, lies_in, (path,) if files is None else _files(path, files))


def text_blob(text: str) -> bytes:
    """A place as it is stored; lone surrogates included."""
    return text.encode("utf-8", "surrogatepass")


def text_of(value: bytes) -> str:
    """What ``text_blob`` was given."""
    return value.decode("utf-8", "surrogatepass")


def _named(below: str, label: str) -> str:
    name = below if os.sep == "/" else below.replace(os.sep, "/")
    return f"{label}/{name}" if label else name


def _folder(below: str, label: str) -> str:
    end = below.rfind(os.sep)
    folder = below[:end] if end > 0 else ""
    return _named(folder, label) if label or os.sep != "/" else folder


def _beside(path: bytes, file: bytes) -> tuple[int, bytes]:
    """How many bytes a file's path has in common with the log's, and the others."""
    common = len(path)
    while not file.startswith(path[:common]):
        common -= 1
    return common, file[common:]


def _files(path: str, files: list[tuple[int, bytes]]) -> tuple[str, ...]:
    name = os.fsencode(path)
    found = (name[:common] + rest for common, rest in files)
    return tuple(path if file == name else os.fsdecode(file) for file in found)


def _folded(found: re.Match[bytes]) -> bytes:
    return _FOLD + bytes.fromhex(found[0].replace(b"-", b"").decode())


def _spelled_out(body: bytes) -> bytes:
    spelled, _, rest = body.partition(_FOLD)
    while rest:
        digits = rest[:16].hex().encode()
        between, _, rest = rest[16:].partition(_FOLD)
        spelled = b"%b%b-%b-%b-%b-%b%b" % (
            spelled, digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:], between
        )  # fmt: skip
    return spelled
