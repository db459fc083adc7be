"""The Gemini CLI reader on real chats, if they are here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from session_query.protocol.json_value import JSON
from session_query.protocol.text import member
from session_query.storage.readers.gemini import GeminiReader
from support.corpus import need_corpus
from support.corpus_checks import check_counts, check_found, json_lines, prefixes_agree, read_folder

READER = GeminiReader()


def words(message: JSON) -> Iterator[str]:
    if member(message, "type") not in ("user", "gemini"):
        return
    content = member(message, "content")
    for part in content if isinstance(content, list) else [content]:
        text = part if isinstance(part, str) else member(part, "text")
        if isinstance(text, str):
            yield text
    calls = member(message, "toolCalls")
    for call in calls if isinstance(calls, list) else []:
        results = member(call, "result")
        for result in results if isinstance(results, list) else []:
            output = member(member(member(result, "functionResponse"), "response"), "output")
            if isinstance(output, str):
                yield output


def messages(path: Path) -> list[JSON]:
    values = [json.loads(path.read_bytes())] if path.suffix == ".json" else json_lines(path)[0]
    found: list[JSON] = []
    for value in values:
        nested = member(value, "messages") or member(member(value, "$set"), "messages")
        found += nested if isinstance(nested, list) else [value]
    return found


def test_every_real_chat_is_read_counted_folded_and_found_again() -> None:
    root = need_corpus() / "gemini"
    sessions = drawn = 0
    for seed, (unit, collected) in enumerate(read_folder(READER, root)):
        if unit.path.suffix == ".jsonl":
            check_counts(collected, unit.path)
        else:
            assert (collected.records, collected.held) == (1, 1)
        drawn += check_found(collected, (word for item in messages(unit.path) for word in words(item)), seed)
        sessions += len(collected.sessions)
    assert sessions == 14
    assert drawn > 40


def test_a_growing_chat_keeps_its_numbers(tmp_path: Path) -> None:
    root = need_corpus() / "gemini"
    for name in ("vibe-coding-tracker/gemini.jsonl", "agent-sessions/jsonl_v040.jsonl"):
        prefixes_agree(READER, root / name, tmp_path / "log.jsonl")
