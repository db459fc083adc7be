"""What readers of foreign logs share: times, titles, state, and a surface that always folds."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_query.protocol.json_value import JSON, SAFE_INTEGER_MAX
from session_query.protocol.surface import fold
from session_query.storage.readers.acp.mapper import AcpMapper
from session_query.storage.readers.acp.mapper import Beside as AcpBeside
from session_query.storage.readers.codex.mapper import CodexMapper
from session_query.storage.readers.collect import Collected
from session_query.storage.readers.corelog.log_state import LogState
from session_query.storage.readers.corelog.saved import pack_state, unpack_state
from session_query.storage.readers.corelog.session_log import SessionLog
from session_query.storage.readers.corelog.shapes import text_blocks, title_text
from session_query.storage.readers.corelog.times import epoch_ms
from session_query.storage.readers.decode import decode_record
from session_query.storage.readers.driver import Mapper, Record
from session_query.storage.readers.gemini.mapper import GeminiMapper
from session_query.storage.readers.goose.mapper import GooseMapper
from session_query.storage.readers.hermes.mapper import HermesMapper
from session_query.storage.readers.kimi.mapper import KimiMapper
from session_query.storage.readers.kimi.places import Beside as KimiBeside
from session_query.storage.readers.pi.mapper import PiMapper
from session_query.storage.readers.seam import ReadBatch
from support.mutations import mutate_values
from support.reader_conformance import check_session
from support.worked_readme import data_files


@pytest.mark.parametrize(
    ("written", "ms"),
    [
        ("2026-05-04T08:00:00Z", 1777881600000),
        ("2026-05-04T08:00:00.123456789Z", 1777881600123),
        ("2026-05-04T10:00:00+02:00", 1777881600000),
        ("2026-05-04 08:00:00", 1777881600000),
        ("1969-12-31T23:59:59.999Z", -1),
        (1777881600, 1777881600000),
        (1777881600.5, 1777881600500),
        (1777881600123, 1777881600123),
        (1777881600123456, 1777881600123),
        (1777881600123456789, 1777881600123),
        (0, 0),
        (-1, -1000),
        ("[trimmed]", None),
        ("20260429", None),
        ("9999-12-31T23:59:59-23:59", 253402387139000),
        ("0001-01-01T00:00:00+14:00", -62135647200000),
        (True, None),
        (None, None),
        (float("inf"), None),
        (10**30, None),
        ({}, None),
    ],
)
def test_times_as_writers_spell_them(written: JSON, ms: int | None) -> None:
    assert epoch_ms(written) == ms


@given(st.one_of(st.text(), st.integers(), st.floats(), st.none(), st.lists(st.text(), max_size=2)))
def test_no_value_is_a_time_that_cannot_be_kept(value: JSON) -> None:
    found = epoch_ms(value)
    assert found is None or abs(found) <= SAFE_INTEGER_MAX


def test_titles_are_one_short_line_without_what_cannot_be_seen() -> None:
    assert title_text(" a\x1b[31m\u202eb\n\tc ") == "a [31mb c"
    assert title_text("\u200b\n") == ""
    long = title_text("word " * 100)
    assert (len(long), long[-1]) == (80, "…")


def test_a_state_of_another_version_or_damaged_is_none() -> None:
    packed = pack_state(3, LogState(id="s", surface=[*range(5000)]))
    assert unpack_state(3, packed, LogState).surface == [*range(5000)]
    for bad in (pack_state(4, LogState(id="s")), packed[:-4], b"", b"\x00\x03", b"\x00\x03junk"):
        with pytest.raises(ValueError, match="state"):
            unpack_state(3, bad, LogState)


_STEPS = (
    "user",
    "context",
    "assistant",
    "call",
    "result",
    "compact",
    "keep",
    "since",
    "from",
    "before",
    "back",
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(_STEPS), st.integers(0, 40)), max_size=40))
def test_whatever_a_mapper_says_the_surface_folds(steps: list[tuple[str, int]]) -> None:
    log = SessionLog("x", LogState(id="s"))
    for step, number in steps:
        log.begin({"step": step}, number)
        _say(log, step, number)
        log.finish(step)
    fold(log.pending)
    assert [event.seq for event in log.pending] == list(range(len(log.pending)))
    assert sum("native" in event.data for event in log.pending if isinstance(event.data, dict)) == len(steps)


def _say(log: SessionLog, step: str, number: int) -> None:
    blocks = text_blocks(f"words {number}")
    acts: dict[str, Callable[[], object]] = {
        "user": lambda: log.user(blocks, replaces=(number, number) if number % 3 == 0 else None),
        "context": lambda: log.user(blocks, {"kind": "context"}),
        "assistant": lambda: log.assistant(
            blocks, replaces=(number, number + 2) if number % 3 == 0 else None
        ),
        "call": lambda: log.call(f"c{number % 4}", "tool", "{}"),
        "result": lambda: log.result(f"c{number % 4}", blocks),
        "compact": lambda: log.compact(blocks),
        "keep": lambda: log.compact(blocks, number),
        "since": lambda: log.visible.abandon_since(number),
        "from": lambda: log.visible.abandon_from(number),
        "before": lambda: log.visible.abandon_before(number),
        "back": lambda: log.visible.abandon_prompts(number % 4),
    }
    acts[step]()


MAPPERS: dict[str, Callable[[bytes | None], Mapper]] = {
    "acp": lambda saved: AcpMapper(AcpBeside(session_id="beside"), saved),
    "codex": lambda saved: CodexMapper("name", saved),
    "gemini": lambda saved: GeminiMapper("name", saved),
    "goose": lambda saved: GooseMapper("name", saved),
    "hermes": lambda saved: HermesMapper("name", saved),
    "kimi": lambda saved: KimiMapper(KimiBeside(session_id="name"), saved),
    "pi": lambda saved: PiMapper("name", saved),
}


def mapped(new_mapper: Callable[[bytes | None], Mapper], records: list[Record], stops: set[int]) -> Collected:
    """Map ``records``, going on from a state at each of ``stops`` as a later read does."""
    collected, mapper = Collected(), new_mapper(None)
    for index, record in enumerate(records):
        if index in stops and mapper.verdict():  # before that a read is refused and begins anew
            state = mapper.state()
            collected.add(ReadBatch(sessions=tuple(mapper.take())))
            mapper = new_mapper(state)
        mapper.feed(record)
    collected.add(ReadBatch(sessions=tuple(mapper.take())))
    return collected


@pytest.mark.parametrize("name", MAPPERS)
def test_going_on_from_any_state_is_the_same_as_going_on(name: str) -> None:
    """Also where records hold values no writer writes."""
    files = [raw for path, raw in sorted(data_files(name).items()) if path.endswith((".jsonl", "lamp.json"))]
    for seed in range(60):
        raw = files[seed % len(files)]
        if seed >= len(files):
            raw = mutate_values(seed, raw, lines=name != "hermes")
        lines = [raw] if name == "hermes" else raw.splitlines()
        objects = [decode_record(line) for line in lines]
        records = [Record(obj, 0, 0) for obj in objects if isinstance(obj, dict)] * (
            2 if name == "hermes" else 1
        )
        rng = random.Random(seed)
        stops = {rng.randrange(len(records) + 1) for _ in range(4)} if seed % 3 else set(range(len(records)))
        whole, stopped = mapped(MAPPERS[name], records, set()), mapped(MAPPERS[name], records, stops)
        for session in whole.sessions.values():
            check_session(session)
        assert {key: (s.header, s.events, s.inherited) for key, s in stopped.sessions.items()} == {
            key: (s.header, s.events, s.inherited) for key, s in whole.sessions.items()
        }, f"seed {seed}"


def test_the_data_of_every_format_is_here() -> None:
    assert all(data_files(name) for name in MAPPERS)
    assert Path(__file__).name == "test_corelog.py"
