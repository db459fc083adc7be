"""The Codex reader on real logs, if they are here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from session_query.protocol.json_value import JSON
from session_query.protocol.text import member
from session_query.storage.readers.codex import CodexReader
from support.corpus import need_corpus
from support.corpus_checks import check_counts, check_found, json_lines, prefixes_agree, read_folder

READER = CodexReader()


def words(record: JSON) -> Iterator[str]:
    """What people said and what tools were asked and answered, from the raw record."""
    payload = member(record, "payload") or record
    content = member(payload, "content")
    for part in content if isinstance(content, list) else [content]:
        text = part if isinstance(part, str) else member(part, "text")
        if isinstance(text, str) and member(payload, "type") != "reasoning":
            yield text
    if member(payload, "type") in ("user_message", "agent_message"):
        yield str(member(payload, "message") or "")
    for key in ("arguments", "input", "output"):
        value = member(payload, key)
        if isinstance(value, str) and not value.startswith('{"output"'):
            yield value


def test_every_real_log_is_read_counted_folded_and_found_again() -> None:
    root = need_corpus() / "codex"
    drawn = sessions = 0
    for seed, (unit, collected) in enumerate(read_folder(READER, root)):
        check_counts(collected, unit.path)
        drawn += check_found(
            collected, (word for value in json_lines(unit.path)[0] for word in words(value)), seed
        )
        sessions += len(collected.sessions)
    assert sessions == 42
    assert drawn > 100


def test_a_growing_log_keeps_its_numbers(tmp_path: Path) -> None:
    root = need_corpus() / "codex"
    for name in (
        "vibe-coding-tracker/codex.jsonl",
        "agent-sessions/small.jsonl",
        "agentsview-traex/rollout_subagent.jsonl",
    ):
        prefixes_agree(READER, root / name, tmp_path / "log.jsonl")
