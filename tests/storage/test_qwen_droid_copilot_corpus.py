"""The qwen, droid and copilot readers on real logs, if they are here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from session_query.protocol.json_value import JSON
from session_query.protocol.text import member
from session_query.storage.readers.copilot import CopilotReader
from session_query.storage.readers.droid import DroidReader
from session_query.storage.readers.qwen import QwenReader
from session_query.storage.readers.seam import Reader
from support.corpus import need_corpus
from support.corpus_checks import check_counts, check_found, json_lines, prefixes_agree, read_folder

GLUED = "019f0000-0000-7000-8000-000000000005.jsonl"
"""Two whole records on one line: both are kept, where a count of lines sees one bad line."""


def _texts(items: JSON, key: str = "text") -> Iterator[str]:
    for item in items if isinstance(items, list) else ():
        text = member(item, key)
        if isinstance(text, str) and member(item, "thought") is not True:
            yield text


def qwen_words(record: JSON) -> Iterator[str]:
    yield from _texts(member(member(record, "message"), "parts"))


def droid_words(record: JSON) -> Iterator[str]:
    content = member(member(record, "message"), "content")
    yield from _texts(content)
    yield from _texts(content, "content")
    for key in ("text", "finalText"):
        if isinstance(text := member(record, key), str):
            yield text


def copilot_words(record: JSON) -> Iterator[str]:
    kind, data = member(record, "type"), member(record, "data")
    if kind in ("user.message", "assistant.message", "system.notification"):
        yield str(member(data, "content") or "")
    if kind == "tool.execution_complete":
        yield str(member(member(data, "result"), "content") or "")
    if kind in ("session.info", "session.error"):
        yield str(member(data, "message") or "")


@pytest.mark.parametrize(
    ("reader", "folders", "words", "sessions", "events"),
    [
        (
            QwenReader(),
            ["others/agent-sessions/qwen", "others/deja-vu/qwen", "others/splitrail"],
            qwen_words,
            8,
            40,
        ),
        (DroidReader(), ["others/agent-sessions/droid"], droid_words, 6, 34),
        (
            CopilotReader(),
            ["copilot", "others/agent-sessions/copilot", "others/deja-vu/copilot"],
            copilot_words,
            7,
            145,
        ),
    ],
    ids=["qwen", "droid", "copilot"],
)
def test_every_real_log_is_read_counted_folded_and_found_again(
    reader: Reader,
    folders: list[str],
    words: Callable[[JSON], Iterator[str]],
    sessions: int,
    events: int,
    tmp_path: Path,
) -> None:
    seen, drawn = [0, 0], 0
    for folder in folders:
        for seed, (unit, collected) in enumerate(read_folder(reader, need_corpus() / folder)):
            assert collected.refusal is None
            if unit.path.name == GLUED:
                assert (collected.held, collected.losses) == (2, [])
            else:
                check_counts(collected, unit.path)
                prefixes_agree(reader, unit.path, tmp_path / "log.jsonl")
            pool = (word for value in json_lines(unit.path)[0] for word in words(value))
            drawn += check_found(collected, pool, seed)
            seen[0] += len(collected.sessions)
            seen[1] += sum(len(session.events) for session in collected.sessions.values())
    assert seen == [sessions, events]
    assert drawn > 10
