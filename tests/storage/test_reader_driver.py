"""The JSONL driver under a reader of a made-up format: what every real one gets for nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from session_query.protocol.event import Event
from session_query.protocol.header import SessionHeader
from session_query.protocol.json_value import JSON
from session_query.storage.readers.collect import Collected
from session_query.storage.readers.discovery import one_file, walk
from session_query.storage.readers.driver import BATCH_BYTES, MAPPED_AGAIN_BYTES, Record, read_jsonl
from session_query.storage.readers.lines import Chunk, file_chunks
from session_query.storage.readers.seam import (
    Checkpoint,
    LogUnit,
    ReadBatch,
    Refusal,
    SessionDelta,
    SkippedPath,
)
from support.reader_conformance import check_reader, never, read_unit


class ToyMapper:
    """One record, one log-only event; the first record names the session."""

    def __init__(self, state: bytes | None) -> None:
        known: JSON = {"id": None, "next": 0} if state is None else json.loads(state)
        if not isinstance(known, dict) or "next" not in known:
            raise ValueError("not a state of this mapper")
        self._state = known
        self._events: list[Event] = []

    def feed(self, record: Record) -> str | None:
        if record.obj.get("refuse"):
            return "refused by the mapper"
        if self._state["id"] is None:
            self._state["id"] = record.obj.get("toy")
        seq = int(str(self._state["next"]))
        self._events.append(Event(type="toy/line", seq=seq, time=seq, data={"native": record.obj}))
        self._state["next"] = seq + 1
        return None

    def take(self) -> list[SessionDelta]:
        if not self._events or self._state["id"] is None:
            return []
        events, self._events = self._events, []
        header = SessionHeader(id=str(self._state["id"]), created_at=0)
        return [SessionDelta(header=header, first_seq=events[0].seq, events=events)]

    def state(self) -> bytes:
        return json.dumps(self._state).encode()

    def repeats(self) -> bool:
        return True

    def verdict(self) -> bool | Refusal:
        if self._state["id"] == "newer":
            return Refusal(kind="newer-version", message="written by a newer version")
        return self._state["id"] is not None


class ToyReader:
    format = "toy"
    version = 1

    def usual_places(self, environ: Mapping[str, str], home: Path, platform: str) -> list[Path]:
        return [home / ".toy"]

    def units(self, root: Path) -> Iterator[LogUnit | SkippedPath]:
        for found in walk(root, lambda name: name.endswith(".jsonl")):
            yield found if isinstance(found, SkippedPath) else one_file("toy", root, found)

    def read(
        self, unit: LogUnit, checkpoint: Checkpoint | None, stopped: Callable[[], bool]
    ) -> Iterator[ReadBatch]:
        return read_jsonl(unit, checkpoint, ToyMapper, stopped)


LINES = [b'{"toy":"t-1","n":%d,"text":"line %d \\u2028 \xe2\x80\xa8"}\n' % (n, n) for n in range(12)]


def test_toy_reader_conforms(tmp_path: Path) -> None:
    expected = {"t-1": [(n, "toy/line") for n in range(12)]}
    check_reader(ToyReader(), {"a/b/log.jsonl": b"".join(LINES)}, expected, tmp_path)


def read(tmp_path: Path, content: bytes, into: Collected | None = None) -> Collected:
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    return read_unit(ToyReader(), one_file("toy", tmp_path, path), into)


def natives(collected: Collected) -> list[JSON]:
    return [
        event.data["native"]
        for session in collected.sessions.values()
        for event in session.events
        if isinstance(event.data, dict)
    ]


A = {"toy": "t-1"}
B = {"toy": "t-1", "n": 2}


@pytest.mark.parametrize(
    ("content", "held", "lost"),
    [
        (b'{"toy":"t-1"}\n{"toy":"t-1","n":2}\n', [A, B], []),
        (b'\xef\xbb\xbf{"toy":"t-1"}\r\n\r\n{"toy":"t-1","n":2}\r\n', [A, B], []),
        (b'{"toy":"t-1"}\nnull\n3\n"text"\n[1]\n{"toy":"t-1","n":2}\n', [A, B], []),
        (b'// a comment\n{"toy":"t-1"}\n  // another\n{"toy":"t-1","n":2}\n', [A, B], []),
        (b'{"toy":"t-1"}{"toy":"t-1","n":2}\n', [A, B], []),
        (b'{"toy":"t-1"}\n\x00\x00\x00\x00{"toy":"t-1","n":2}\x00\x00\n', [A, B], []),
        (b'{"toy":"t-1"}\n\x00\x00\x00\x00\n{"toy":"t-1","n":2}\n', [A, B], []),
        (b'{"toy":"t-1"}\x00\x00{"toy":"t-1","n":2}\n', [A, B], []),
        (b'{"toy":"t-1"}\n{"toy":"ab{"toy":"t-1","n":2}\n', [A, B], [("not JSON", 14, 10, 1)]),
        (b'{"toy":"t-1"}\nbad\n{"toy":"t-1","n":2}\n', [A, B], [("not JSON", 14, 3, 1)]),
        (b'{"toy":"t-1"}\n{"toy":"t-1","n":2}', [A, B], []),
        (b'{"toy":"t-1"}\n{"toy":"t-1","n":2}\n{"to', [A, B], [("torn tail", 34, 4, 0)]),
        (b'{"toy":"t-1"}{"toy":"t-1","n":2}{"to', [A, B], [("torn tail", 32, 4, 0)]),
        (b'{"toy":"t-1"}\n{"refuse":1}\n', [A], [("refused by the mapper", 14, 12, 1)]),
        (b'{\n  "toy": "t-1"\n}\n', [A], []),
        (b'{\n  "toy": "t-1"\n}\n{\n  "toy": "t-1",\n  "n": 2\n}\n', [A, B], []),
        (b'[{"toy":"t-1"},\n {"toy":"t-1","n":2}]\n', [A, B], []),
        (b'[{"toy":"t-1"}, {"toy":"t-1","n":2}]', [A, B], []),
        (
            b'bad\n{"toy":"t-1"}\nbad\nbad\n{"toy":"t-1","n":2}\n',
            [A, B],
            [("not JSON", 0, 3, 1), ("not JSON", 18, 3, 1), ("not JSON", 22, 3, 1)],
        ),
    ],
)
def test_content_yields(
    tmp_path: Path, content: bytes, held: list[JSON], lost: list[tuple[str, int, int, int]]
) -> None:
    collected = read(tmp_path, content)
    assert collected.refusal is None
    assert natives(collected) == held
    assert [(loss.cause, loss.offset, loss.length, loss.records) for loss in collected.losses] == lost
    assert collected.records == len(held) + sum(loss.records for loss in collected.losses)


@pytest.mark.parametrize(
    "text",
    [
        b'{"toy":"t-1","s":"\xff"}\n',
        b'{"toy":"t-1","s":"\\ud83c"}\n',
        b'{"toy":"t-1","s":"\xed\xa0\xbd"}\n',
    ],
)
def test_what_no_encoder_takes_becomes_a_replacement_character(tmp_path: Path, text: bytes) -> None:
    (native,) = natives(read(tmp_path, text))
    assert isinstance(native, dict)
    assert set(str(native["s"])) == {"\ufffd"}


def test_numbers_out_of_range_become_null(tmp_path: Path) -> None:
    assert natives(read(tmp_path, b'{"toy":"t-1","a":NaN,"b":1e999,"c":-Infinity}\n')) == [
        {"toy": "t-1", "a": None, "b": None, "c": None}
    ]


def test_a_record_may_nest_as_deep_as_it_likes(tmp_path: Path) -> None:
    depth = 50_000
    content = b'{"toy":"t-1","deep":' + b"[" * depth + b"]" * depth + b"}\n"
    (native,) = natives(read(tmp_path, content + LINES[0]))[:1]
    assert isinstance(native, dict)
    node, levels = native["deep"], 0
    while isinstance(node, list):
        node, levels = (node[0] if node else None), levels + 1
    assert levels == depth


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\x00\x00", b"// only this\n", b"\xef\xbb\xbf"])
def test_nothing_is_no_refusal(tmp_path: Path, content: bytes) -> None:
    collected = read(tmp_path, content)
    assert collected.refusal is None
    assert collected.sessions == {}
    assert collected.records == 0


@pytest.mark.parametrize(
    "content",
    [
        b"[12:00:01] started\n[12:00:02] sent\n",
        b'{"other":1}\n{"other":2}\n',
        b'[12:00:01] sent:\n {\n  "toy": "t-1"\n }\n[12:00:02] done\n',
        b"null\n",
        b"\x00\x01\x02\x03\xff\xfe\n",
        b"3\n4\n",
    ],
)
def test_no_session_log_is_refused(tmp_path: Path, content: bytes) -> None:
    collected = read(tmp_path, content)
    assert collected.refusal is not None
    assert collected.refusal.kind == "not-a-session"
    assert collected.sessions == {}


def test_a_refusal_of_the_mapper_ends_the_read_but_keeps_the_header(tmp_path: Path) -> None:
    collected = read(tmp_path, b'{"toy":"newer"}\n{"toy":"newer"}\n')
    assert collected.refusal is not None
    assert collected.refusal.kind == "newer-version"
    assert list(collected.sessions) == ["newer"]


def test_a_tail_that_parses_is_taken_and_read_again(tmp_path: Path) -> None:
    first = read(tmp_path, LINES[0] + LINES[1].rstrip(b"\n"))
    assert len(natives(first)) == 2
    assert first.checkpoint is not None
    assert first.checkpoint.offset == len(LINES[0])
    grown = read(tmp_path, LINES[0] + LINES[1] + LINES[2], first)
    assert len(natives(grown)) == 3
    assert (grown.records, grown.held) == (3, 3)


def test_an_empty_file_that_becomes_one_document_is_read_as_one(tmp_path: Path) -> None:
    empty = read(tmp_path, b"")
    assert natives(read(tmp_path, b'[\n{"toy":"t-1"}\n]\n', empty)) == [A]


def test_a_short_log_goes_on_without_a_state_and_tells_nothing_twice(tmp_path: Path) -> None:
    content = LINES[0] + b'{"refuse":1}\nbad\n' + LINES[1]
    first = read(tmp_path, content)
    assert first.checkpoint is not None
    assert len(first.checkpoint.state) == 6
    path = tmp_path / "log.jsonl"
    path.write_bytes(content + LINES[2])
    (batch,) = ToyReader().read(one_file("toy", tmp_path, path), first.checkpoint, never)
    assert not batch.restart
    assert [(delta.first_seq, len(delta.events)) for delta in batch.sessions] == [(2, 1)]
    assert (batch.records, batch.held, batch.losses, batch.bytes_read) == (1, 1, (), len(LINES[2]))
    path.write_bytes(content)
    (nothing,) = ToyReader().read(one_file("toy", tmp_path, path), first.checkpoint, never)
    assert [(delta.first_seq, delta.events) for delta in nothing.sessions] == [(2, [])]
    assert (nothing.records, nothing.losses) == (0, ())


def test_a_long_log_goes_on_from_its_state(tmp_path: Path) -> None:
    content = b"".join(LINES) + b'{"toy":"t-1","text":"' + b"x" * MAPPED_AGAIN_BYTES + b'"}\n'
    first = read(tmp_path, content)
    assert first.checkpoint is not None
    assert first.checkpoint.state[1:] == b'{"id": "t-1", "next": 13}'
    assert len(natives(read(tmp_path, content + LINES[3], first))) == 14


@pytest.mark.parametrize("place", [0, 5, MAPPED_AGAIN_BYTES // 2 + 3])
def test_a_short_log_changed_anywhere_is_read_again(tmp_path: Path, place: int) -> None:
    content = bytearray(b"".join(LINES * 30)[:MAPPED_AGAIN_BYTES].rpartition(b"\n")[0] + b"\n")
    first = read(tmp_path, bytes(content))
    assert first.checkpoint is not None
    assert len(first.checkpoint.state) == 6
    content[content.index(b"line", place)] = ord("L")
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    batches = list(ToyReader().read(one_file("toy", tmp_path, path), first.checkpoint, never))
    assert [batch.restart for batch in batches] == [True]


@pytest.mark.parametrize("new", [b"", LINES[0], LINES[0] + LINES[1].rstrip(b"\n"), LINES[3] * 2, b"x" * 999])
def test_a_short_log_rewritten_while_it_is_looked_at_is_read_again(
    tmp_path: Path, new: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = read(tmp_path, LINES[0] + LINES[1])
    monkeypatch.setattr("session_query.storage.readers.driver.prefix_verifies", lambda *_: True)
    path = tmp_path / "log.jsonl"
    path.write_bytes(new)
    unit = one_file("toy", tmp_path, path)
    batches = list(ToyReader().read(unit, first.checkpoint, never))
    assert batches[0].restart is not new.startswith(LINES[3])
    fresh = list(ToyReader().read(unit, None, never))
    assert batches[0].restart is False or batches == fresh


def test_long_logs_come_in_batches_each_with_its_checkpoint(tmp_path: Path) -> None:
    line = b'{"toy":"t-1","text":"' + b"x" * 10_000 + b'"}\n'
    path = tmp_path / "log.jsonl"
    path.write_bytes(line * 700)
    unit = one_file("toy", tmp_path, path)
    batches = list(ToyReader().read(unit, None, never))
    assert len(batches) == 4
    assert [batch.restart for batch in batches] == [True, False, False, False]
    assert all(batch.bytes_read <= BATCH_BYTES + len(line) for batch in batches)
    for number, batch in enumerate(batches):
        collected = Collected()
        for earlier in batches[: number + 1]:
            collected.add(earlier)
        assert batch.checkpoint == collected.checkpoint
        assert len(natives(read_unit(ToyReader(), unit, collected))) == 700
    assert len(list(ToyReader().read(unit, None, lambda: True))) == 1


def test_what_is_no_regular_file_is_an_os_error(tmp_path: Path) -> None:
    unit = one_file("toy", tmp_path, tmp_path / "gone.jsonl")
    with pytest.raises(OSError, match="gone"):
        list(ToyReader().read(unit, None, never))
    with pytest.raises(OSError, match=r"directory|regular"):
        list(ToyReader().read(one_file("toy", tmp_path, tmp_path), None, never))


def test_a_log_rewritten_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(LINES[:4]))
    new = b"".join(line.replace(b"line", b"LINE") for line in LINES[:4])

    def rewriting(log: Path, offset: int) -> Iterator[Chunk]:
        yield from file_chunks(log, offset)
        log.write_bytes(new)

    unit = one_file("toy", tmp_path, path)
    raced = Collected()
    for batch in read_jsonl(unit, None, ToyMapper, never, rewriting):
        raced.add(batch)
    assert b"line 0" in json.dumps(natives(raced)).encode()
    again = read_unit(ToyReader(), unit, raced)
    assert b"LINE 0" in json.dumps(natives(again)).encode()
    assert again.records == 4
