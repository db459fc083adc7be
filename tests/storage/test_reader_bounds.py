"""Reading is bounded: long lines, large logs, bombs and endless damage take bounded memory and work."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from session_query.storage.readers.dsh import READER
from session_query.storage.readers.lines import Chunk, Line, split_lines
from session_query.storage.readers.salvage import salvage
from session_query.storage.readers.zstd import MAGIC, zstd_chunks
from support.dsh_logs import lines, log, user
from support.reader_conformance import never, units_of

T = TypeVar("T")
MB = 1 << 20


def peak_of(work: Callable[[], T]) -> tuple[T, int]:
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def blocks(parts: list[bytes]) -> Iterator[Chunk]:
    offset = 0
    for part in parts:
        yield Chunk(part, offset, offset + len(part), exact=True)
        offset += len(part)


def test_a_line_above_the_bound_is_a_loss_and_is_not_held() -> None:
    def work() -> list[Line]:
        block = b"x" * (MB // 4)
        huge = (Chunk(block, n * len(block), exact=True) for n in range(400))
        last = Chunk(b"\nafter\n", 400 * len(block), 400 * len(block) + 7, exact=True)
        return list(split_lines((chunk for part in (huge, iter([last])) for chunk in part), MB))

    found, peak = peak_of(work)
    assert [(line.length, line.data, bool(line.lost)) for line in found] == [
        (100 * MB, None, True),
        (5, b"after", False),
    ]
    assert found[1].resume == 100 * MB + 7
    assert peak < 4 * MB


def test_lines_are_cut_at_line_feeds_alone_however_blocks_fall() -> None:
    raw = b'{"a":"\xe2\x80\xa8"}\r\n\n\x0b\x0c\x85x\ny'
    for size in range(1, len(raw) + 1):
        parts = [raw[at : at + size] for at in range(0, len(raw), size)]
        found = list(split_lines(blocks(parts)))
        assert [line.data for line in found] == raw.split(b"\n")
        assert [line.complete for line in found] == [True, True, True, False]
        assert [line.offset for line in found] == [0, 13, 14, 19]
        assert [line.resume for line in found] == [13, 14, 19, None]


@pytest.mark.slow
def test_a_large_log_is_read_in_flat_memory(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    with path.open("wb") as file:
        file.write(log())
        for number in range(24):
            file.write(lines(user(number, "x" * MB)))
    (unit,) = units_of(READER, path)

    def work() -> int:
        return sum(
            len(session.events) for batch in READER.read(unit, None, never) for session in batch.sessions
        )

    count, peak = peak_of(work)
    assert count == 24
    assert peak < 16 * MB


@pytest.mark.slow
def test_a_zstd_bomb_is_refused_before_it_fills_anything(tmp_path: Path) -> None:
    """128 KiB blocks of four bytes each: 3 GiB out of 100 KB."""
    size = (1 << 17) << 3
    block, last = ((size | bits).to_bytes(3, "little") + b"x" for bits in (0b010, 0b011))
    bomb = MAGIC + b"\x00\x58" + block * 24_000 + last
    path = tmp_path / "session.jsonl.zstd"
    path.write_bytes(bomb)

    def work() -> list[Line]:
        return list(split_lines(zstd_chunks(path, 0)))

    found, peak = peak_of(work)
    assert found[-1].lost.endswith("expands beyond the bound")
    assert peak < 150 * MB


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":' * 100_000,
        b'{"a":[1,' * 60_000,
        b'{"a":1}x' * 50_000,
        b'x{"a":1' * 60_000,
        b'{"a":"' + b'x{"' * 200_000,
        b"[" * 300_000,
        b'{"' * 200_000,
        b'\\{"' * 200_000,
    ],
    ids=range(8),
)
def test_salvage_of_hostile_lines_is_bounded(raw: bytes) -> None:
    """Each of these would take minutes if every ``{\"`` were tried to the end of the line."""
    pieces = salvage(raw)
    assert pieces
    assert pieces[0].start == 0
    assert pieces[-1].end <= len(raw)
