"""Damage found in real logs, generated for any JSONL format, and what must survive it.

A format says how one of its lines looks (``HazardFormat``, listed in ``hazard_formats.py``); every hazard
below then becomes one file of it. Lines carry marks, so what survived is seen without knowing the format.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import attrs

from session_query.protocol.json_codec import encode_json
from session_query.storage.readers.collect import Collected
from session_query.storage.readers.seam import Reader
from support.reader_conformance import check_session, read_unit, states_kept, unit_of


def mark(number: int) -> str:
    """A word that only line ``number`` holds."""
    return f"mark{number:05d}kram"


@attrs.frozen(kw_only=True)
class HazardFormat:
    """How a format writes. ``head`` are the lines a log begins with; ``line(n)`` is one later line that
    holds ``mark(n)`` in a text, unlike every other line; each is one JSON object without a line feed.
    ``name`` is the log's path below a root.
    """

    reader: Reader
    name: str
    head: tuple[bytes, ...]
    line: Callable[[int], bytes]
    time_keys: tuple[str, ...] = ("time", "timestamp")


@attrs.frozen(kw_only=True)
class Damaged:
    """One damaged log: the marks that must be found, and the records lost (None: not fixed)."""

    content: bytes
    kept: tuple[int, ...]
    lost: int | None = 0


Hazard = Callable[[HazardFormat], Damaged]
COUNT: Final = 6


def _lines(form: HazardFormat) -> list[bytes]:
    return [form.line(number) for number in range(COUNT)]


def _log(form: HazardFormat, lines: list[bytes], end: bytes = b"\n") -> bytes:
    return b"".join(line + end for line in [*form.head, *lines])


_ALL: Final = tuple(range(COUNT))


def nul_run(form: HazardFormat) -> Damaged:
    """NULs where a crash left a hole, then a valid record on the same line."""
    lines = _lines(form)
    lines[2] = b"\0" * 4096 + lines[2]
    return Damaged(content=_log(form, lines), kept=_ALL)


def nul_line(form: HazardFormat) -> Damaged:
    lines = _lines(form)
    return Damaged(content=_log(form, [*lines[:3], b"\0" * 5000, *lines[3:]]), kept=_ALL)


def nul_tail(form: HazardFormat) -> Damaged:
    """The file was extended and never filled."""
    return Damaged(content=_log(form, _lines(form)) + b"\0" * 512, kept=_ALL)


def splice(form: HazardFormat) -> Damaged:
    """A cut record with the next whole one directly behind it."""
    lines = _lines(form)
    lines[2] = lines[2][: len(lines[2]) // 2] + lines.pop(3)
    return Damaged(content=_log(form, lines), kept=(0, 1, 3, 4, 5), lost=1)


def splice_with_nuls(form: HazardFormat) -> Damaged:
    lines = _lines(form)
    lines[2] = lines[2][: len(lines[2]) // 2] + b"\0" * 64 + lines.pop(3)
    return Damaged(content=_log(form, lines), kept=(0, 1, 3, 4, 5), lost=1)


def junction(form: HazardFormat) -> Damaged:
    """Two whole records without a line feed between them."""
    lines = _lines(form)
    lines[2] += lines.pop(3)
    return Damaged(content=_log(form, lines), kept=_ALL)


def three_on_a_line(form: HazardFormat) -> Damaged:
    lines = _lines(form)
    lines[1:4] = [b" ".join(lines[1:4])]
    return Damaged(content=_log(form, lines), kept=_ALL)


def torn_in_the_middle(form: HazardFormat) -> Damaged:
    lines = _lines(form)
    lines[2] = lines[2][: len(lines[2]) * 2 // 3]
    return Damaged(content=_log(form, lines), kept=(0, 1, 3, 4, 5), lost=1)


def cut_and_written_again(form: HazardFormat) -> Damaged:
    lines = _lines(form)
    return Damaged(content=_log(form, [*lines[:2], lines[2][:-9], *lines[2:]]), kept=_ALL, lost=1)


def written_twice(form: HazardFormat) -> Damaged:
    """A retry or a second writer repeats whole lines: the same ids again."""
    lines = _lines(form)
    return Damaged(content=_log(form, [*lines[:3], *lines]), kept=_ALL)


def half_a_character(form: HazardFormat) -> Damaged:
    """A complete line whose text ends in half a UTF-8 character."""
    lines = _lines(form)
    lines[2] = lines[2].replace(mark(2).encode(), mark(2).encode() + " …".encode()[:-1])
    return Damaged(content=_log(form, lines), kept=_ALL)


def lone_surrogate(form: HazardFormat) -> Damaged:
    lines = _lines(form)
    lines[2] = lines[2].replace(mark(2).encode(), mark(2).encode() + rb" \ud83c")
    lines[3] = lines[3].replace(mark(3).encode(), mark(3).encode() + rb" \udf00\ud83c")
    return Damaged(content=_log(form, lines), kept=_ALL)


def binary_in_text(form: HazardFormat) -> Damaged:
    lines = _lines(form)
    lines[1] = lines[1].replace(mark(1).encode(), mark(1).encode() + rb"\u0000\u001b[0m")
    lines[2] = lines[2].replace(mark(2).encode(), mark(2).encode() + b"\x00\x1b[0m\x7f\xff")
    return Damaged(content=_log(form, lines), kept=_ALL)


def byte_order_mark(form: HazardFormat) -> Damaged:
    return Damaged(content=b"\xef\xbb\xbf" + _log(form, _lines(form)), kept=_ALL)


def carriage_returns(form: HazardFormat) -> Damaged:
    return Damaged(content=_log(form, _lines(form), b"\r\n"), kept=_ALL)


def other_line_ends_in_strings(form: HazardFormat) -> Damaged:
    """U+2028, U+2029, U+0085 raw inside a string end no line."""
    lines = _lines(form)
    lines[2] = lines[2].replace(mark(2).encode(), mark(2).encode() + "\u2028a\u2029b\u0085c".encode())
    return Damaged(content=_log(form, lines), kept=_ALL)


def blank_and_comment_lines(form: HazardFormat) -> Damaged:
    lines = _lines(form)
    mixed = [b"// from a collection", lines[0], b"", b"  \t", *lines[1:], b"//", b""]
    return Damaged(content=b"// source\n" + _log(form, mixed), kept=_ALL)


def values_that_are_no_objects(form: HazardFormat) -> Damaged:
    lines = _lines(form)
    mixed = [*lines[:2], b"null", b"12", b'"text"', b"[1]", b"true", *lines[2:]]
    return Damaged(content=_log(form, mixed), kept=_ALL)


def strange_objects(form: HazardFormat) -> Damaged:
    """Objects with none of the expected keys, or with keys of the wrong kind."""
    strange = [b"{}", b'{"a":1}', b'{"type":null}', b'{"type":{},"message":7,"data":[],"payload":"x"}']
    strange += [b'{"type":"never-heard-of/it","timestamp":[],"time":{},"id":{}}']
    return Damaged(content=_log(form, [*_lines(form)[:3], *strange, *_lines(form)[3:]]), kept=_ALL, lost=None)


def wrong_members(form: HazardFormat) -> Damaged:
    """Every member of a known record in turn replaced by something it never is."""
    lines = _lines(form)
    first = json.loads(lines[0])
    broken = [
        json.dumps({**first, key: wrong}).encode()
        for key in first
        for wrong in (None, 7, -1.5, True, "", "x", [], [None], {}, {"type": []})
    ]
    return Damaged(content=_log(form, [*lines[:3], *broken, *lines[3:]]), kept=_ALL, lost=None)


def odd_times(form: HazardFormat) -> Damaged:
    """Times that are numbers, lack a zone, go backwards, are no times, or are missing."""
    odd = [
        1790000000,
        1790000000000.5,
        "2026-01-02T03:04:05",
        "2026-01-02 03:04:05Z",
        "soon",
        None,
        -1,
        1e300,
    ]
    lines = _lines(form)
    extra: list[bytes] = []
    for number, time in enumerate(odd):
        obj = json.loads(form.line(COUNT + number))
        for key in form.time_keys:
            if key in obj:
                obj[key] = time
        extra.append(json.dumps(obj).encode())
    bare = json.loads(form.line(COUNT + len(odd)))
    extra.append(
        json.dumps({key: value for key, value in bare.items() if key not in form.time_keys}).encode()
    )
    kept = tuple(range(COUNT + len(extra)))
    return Damaged(content=_log(form, [*lines[:3], *extra, *lines[3:]]), kept=kept)


def nested_deep(form: HazardFormat) -> Damaged:
    """A record that nests 20,000 levels, in a member nobody knows."""
    lines = _lines(form)
    lines[2] = lines[2][:-1] + b',"deep":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
    return Damaged(content=_log(form, lines), kept=_ALL)


def large_line(form: HazardFormat) -> Damaged:
    """A picture in base64, 3 MB on one line."""
    lines = _lines(form)
    lines[2] = lines[2].replace(mark(2).encode(), mark(2).encode() + b" " + b"QUJD" * 750_000)
    return Damaged(content=_log(form, lines), kept=_ALL)


def one_list(form: HazardFormat) -> Damaged:
    """The log as one JSON list, as some exporters write it."""
    return Damaged(content=b"[\n" + b",\n".join([*form.head, *_lines(form)]) + b"\n]\n", kept=_ALL)


def pretty_printed(form: HazardFormat) -> Damaged:
    """Each record over many lines."""
    pretty = [json.dumps(json.loads(line), indent=2).encode() for line in [*form.head, *_lines(form)]]
    return Damaged(content=b"\n".join(pretty) + b"\n", kept=_ALL)


def nothing(form: HazardFormat) -> Damaged:
    return Damaged(content=b"", kept=())


def head_alone(form: HazardFormat) -> Damaged:
    return Damaged(content=_log(form, []), kept=())


def lost_head(form: HazardFormat) -> Damaged:
    """The first line is garbage; what follows is still found."""
    return Damaged(
        content=b'{"cut":"of\n' + _log(form, _lines(form))[len(form.head[0]) + 1 :], kept=_ALL, lost=1
    )


HAZARDS: Final[tuple[Hazard, ...]] = (
    nul_run,
    nul_line,
    nul_tail,
    splice,
    splice_with_nuls,
    junction,
    three_on_a_line,
    torn_in_the_middle,
    cut_and_written_again,
    written_twice,
    half_a_character,
    lone_surrogate,
    binary_in_text,
    byte_order_mark,
    carriage_returns,
    other_line_ends_in_strings,
    blank_and_comment_lines,
    values_that_are_no_objects,
    strange_objects,
    wrong_members,
    odd_times,
    nested_deep,
    large_line,
    one_list,
    pretty_printed,
    nothing,
    head_alone,
    lost_head,
)


def check_hazard(form: HazardFormat, hazard: Hazard, root: Path) -> None:
    """Read the damaged log: every mark survives, the count adds up, and the log can still grow."""
    damaged = hazard(form)
    log = root / form.name
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(damaged.content)
    unit = unit_of(form.reader, root, log)
    collected = read_unit(form.reader, unit)
    assert collected.refusal is None
    _check(collected, damaged.kept, damaged.lost)
    if damaged.content.endswith(b"\n") and collected.checkpoint is not None:
        with states_kept():
            from_state = read_unit(form.reader, unit)
        with log.open("ab") as file:
            file.write(form.line(99) + b"\n")
        for known in (collected, from_state):
            _check(read_unit(form.reader, unit, known), (*damaged.kept, 99), damaged.lost)


def _check(collected: Collected, kept: tuple[int, ...], lost: int | None) -> None:
    text = b"".join(
        encode_json(event.data) for session in collected.sessions.values() for event in session.events
    ).decode("utf-8")
    assert [number for number in kept if mark(number) not in text] == []
    for session in collected.sessions.values():
        check_session(session)
    if lost is not None:
        assert sum(loss.records for loss in collected.losses) == lost
    assert collected.records == collected.held + sum(loss.records for loss in collected.losses)
