"""The pi reader on real sessions of the whole family, if they are here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from session_query.protocol.json_value import JSON
from session_query.protocol.text import member
from session_query.storage.readers.pi import PiReader
from support.corpus import need_corpus
from support.corpus_checks import check_counts, check_found, json_lines, prefixes_agree, read_folder

READER = PiReader()


def words(record: JSON) -> Iterator[str]:
    message = member(record, "message")
    content = member(message, "content")
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            yield block
        elif member(block, "type") == "text":
            yield str(member(block, "text"))
    if member(record, "type") in ("compaction", "branch_summary"):
        yield str(member(record, "summary"))


@pytest.mark.parametrize(
    ("folder", "sessions", "least"),
    [
        ("pi", 1, 40),
        ("others/agent-sessions/pi", 1, 5),
        ("others/agentsview/pi", 1, 5),
        ("others/deja-vu/pi", 1, 2),
        ("others/letta-trajectory/pi", 2, 8),
        ("others/letta-trajectory/omp", 2, 8),
        ("others/letta-trajectory/openclaw", 2, 8),
        ("others/agent-sessions/openclaw", 3, 8),
        ("others/deja-vu/openclaw", 1, 2),
    ],
)
def test_every_real_session_is_read_counted_folded_and_found_again(
    folder: str, sessions: int, least: int
) -> None:
    found = drawn = 0
    for seed, (unit, collected) in enumerate(read_folder(READER, need_corpus() / folder)):
        check_counts(collected, unit.path)
        drawn += check_found(
            collected, (word for value in json_lines(unit.path)[0] for word in words(value)), seed
        )
        found += len(collected.sessions)
    assert found == sessions
    assert drawn >= least


def test_a_growing_session_keeps_its_numbers(tmp_path: Path) -> None:
    root = need_corpus()
    for name in ("others/letta-trajectory/pi/cleanup/input.jsonl", "others/agentsview/pi/session.jsonl"):
        prefixes_agree(READER, root / name, tmp_path / "log.jsonl")
