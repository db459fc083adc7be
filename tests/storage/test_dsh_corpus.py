"""Every dsh file of the handed corpus is read whole and folds."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_query.storage.readers.dsh import READER
from session_query.storage.readers.seam import LogUnit, SkippedPath
from support.corpus import corpus_files, need_corpus
from support.reader_conformance import check_session, read_unit, units_of


@pytest.mark.parametrize("path", corpus_files("dsh"), ids=lambda path: "/".join(path.parts[-3:]))
def test_file_is_read_without_loss(path: Path) -> None:
    (unit,) = units_of(READER, path)
    collected = read_unit(READER, unit)
    assert collected.losses == []
    assert collected.refusal is None
    (session,) = collected.sessions.values()
    check_session(session)
    assert session.notes == []


def test_a_plain_log_and_its_compressed_copy_are_the_same_session() -> None:
    folder = need_corpus() / "dsh" / "vibe-coding-tracker"
    plain, packed = (
        read_unit(READER, units_of(READER, folder / name)[0])
        for name in ("session.jsonl", "session.jsonl.zstd")
    )
    (one,), (other,) = plain.sessions.values(), packed.sessions.values()
    assert (one.header, one.events) == (other.header, other.events)


def test_the_whole_folder_is_found() -> None:
    found = list(READER.units(need_corpus() / "dsh"))
    assert len([unit for unit in found if isinstance(unit, LogUnit)]) == len(corpus_files("dsh")) - 1
    assert [path.path.name for path in found if isinstance(path, SkippedPath)] == ["session.jsonl"]
    places = [unit.place for unit in found if isinstance(unit, LogUnit)]
    assert len(set(places)) == len(places)


def test_a_fork_knows_what_it_inherited() -> None:
    root = need_corpus() / "dsh" / "deepseek-harness" / "acp-agent"
    for name in ("subagent-fork-in-process/session.1.jsonl", "subagent-mixed/session.2.jsonl"):
        (unit,) = units_of(READER, root / name)
        (session,) = read_unit(READER, unit).sessions.values()
        assert session.inherited == session.header.seed_length
        assert session.events[session.inherited].type == "session/end-seed"
