"""The Kimi, Goose and Hermes readers on real sessions, if they are here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from session_query.protocol.json_value import JSON
from session_query.protocol.text import member
from session_query.storage.readers.goose import GooseReader
from session_query.storage.readers.hermes import HermesReader
from session_query.storage.readers.kimi import KimiReader
from support.corpus import need_corpus
from support.corpus_checks import check_counts, check_found, json_lines, prefixes_agree, read_folder


def texts(content: JSON) -> Iterator[str]:
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            yield part
        elif member(part, "type") == "text":
            yield str(member(part, "text"))


def kimi_words(record: JSON) -> Iterator[str]:
    yield from texts(member(member(record, "message"), "content"))
    event = member(record, "event")
    yield from texts([member(event, "part")])
    output = member(member(event, "result"), "output")
    if isinstance(output, str):
        yield output


def test_every_real_kimi_session_is_read_counted_folded_and_found_again() -> None:
    sessions = drawn = 0
    for folder in ("others/agent-sessions/kimi", "others/deja-vu/kimi"):
        for seed, (unit, collected) in enumerate(read_folder(KimiReader(), need_corpus() / folder)):
            check_counts(collected, unit.path)
            records = json_lines(unit.path)[0]
            drawn += check_found(collected, (word for item in records for word in kimi_words(item)), seed)
            sessions += len(collected.sessions)
    assert sessions == 4
    assert drawn > 40


def test_a_growing_kimi_session_keeps_its_numbers(tmp_path: Path) -> None:
    path = need_corpus() / "others/agent-sessions/kimi/assistant_tools.jsonl"
    prefixes_agree(KimiReader(), path, tmp_path / "log.jsonl")


def test_every_real_goose_session_is_read_counted_folded_and_found_again() -> None:
    ((unit, collected),) = read_folder(GooseReader(), need_corpus() / "others/goose-deja-vu")
    check_counts(collected, unit.path)
    records = json_lines(unit.path)[0]
    assert (
        check_found(collected, (word for item in records for word in texts(member(item, "content"))), 1) == 2
    )


def test_every_real_hermes_session_is_read_folded_and_found_again() -> None:
    sessions = drawn = 0
    for seed, (unit, collected) in enumerate(
        read_folder(HermesReader(), need_corpus() / "others/agent-sessions/hermes")
    ):
        assert not collected.losses
        messages = member(json.loads(unit.path.read_bytes()), "messages")
        assert isinstance(messages, list)
        drawn += check_found(
            collected, (word for item in messages for word in texts(member(item, "content"))), seed
        )
        sessions += len(collected.sessions)
    assert sessions == 3
    assert drawn > 8
