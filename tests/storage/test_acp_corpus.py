"""The ACP reader on real captures, if they are here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from session_query.protocol.json_value import JSON
from session_query.protocol.text import member
from session_query.storage.readers.acp import AcpReader
from support.corpus import need_corpus
from support.corpus_checks import check_counts, check_found, json_lines, prefixes_agree, read_folder

READER = AcpReader()


def words(frame: JSON) -> Iterator[str]:
    params = member(frame, "params")
    update = member(params, "update")
    if str(member(update, "sessionUpdate")).endswith("message_chunk"):
        yield str(member(member(update, "content"), "text"))
    data = member(member(params, "event"), "data")
    for owner in (data, member(data, "message")):
        content = member(owner, "content")
        for block in content if isinstance(content, list) else []:
            if member(block, "type") == "text":
                yield str(member(block, "text"))


def test_every_real_capture_is_read_counted_folded_and_found_again() -> None:
    root = need_corpus() / "acp"
    sessions = drawn = 0
    for seed, (unit, collected) in enumerate(read_folder(READER, root)):
        check_counts(collected, unit.path)
        drawn += check_found(
            collected, (word for value in json_lines(unit.path)[0] for word in words(value)), seed
        )
        sessions += len(collected.sessions)
    assert sessions == 15
    assert drawn > 15


def test_a_growing_capture_keeps_its_numbers(tmp_path: Path) -> None:
    root = need_corpus() / "acp"
    for name in (
        "deepseek-harness-jsonrpc/bash-tool/notifications.expected.jsonl",
        "vibe-coding-tracker-grok/updates.jsonl",
    ):
        prefixes_agree(READER, root / name, tmp_path / "log.jsonl")
