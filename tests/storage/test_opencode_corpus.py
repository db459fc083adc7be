"""The OpenCode reader on real stores, if they are here."""

from __future__ import annotations

import json
from collections.abc import Iterator

from session_query.protocol.json_value import JSON
from session_query.protocol.text import member
from session_query.storage.readers.opencode import OpenCodeReader
from support.corpus import need_corpus
from support.corpus_checks import check_found, read_folder

READER = OpenCodeReader()


def words(part: JSON) -> Iterator[str]:
    if member(part, "type") == "text":
        yield str(member(part, "text"))
    for key in ("output", "error"):
        value = member(member(part, "state"), key)
        if isinstance(value, str):
            yield value


def parts_of(value: JSON) -> Iterator[JSON]:
    if member(value, "type") is not None:
        yield value
    messages = member(value, "messages")
    for message in messages if isinstance(messages, list) else []:
        parts = member(message, "parts")
        yield from parts if isinstance(parts, list) else []


def test_every_real_store_is_read_counted_folded_and_found_again() -> None:
    root = need_corpus() / "opencode"
    sessions = drawn = records = 0
    for seed, (unit, collected) in enumerate(read_folder(READER, root)):
        assert not collected.losses
        sessions += len(collected.sessions)
        records += collected.records
        if unit.path.suffix == ".json":
            files = [path for path in unit.files if path.is_file()]
            found = [
                word
                for path in files
                for part in parts_of(json.loads(path.read_bytes()))
                for word in words(part)
            ]
            drawn += check_found(collected, found, seed)
    assert (sessions, records) == (10, 5 + 16 + 6 + 35 + 2)
    assert drawn >= 6
