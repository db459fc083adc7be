"""The claude-code reader on real logs, if they are here."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from session_query.protocol.json_value import JSON
from session_query.protocol.text import member
from session_query.storage.readers.claude_code import ClaudeCodeReader
from session_query.storage.readers.collect import Collected
from session_query.storage.readers.seam import SkippedPath
from support.corpus import need_corpus
from support.corpus_checks import check_counts, check_found, json_lines, prefixes_agree, read_folder
from support.reader_conformance import read_unit, units_of

READER = ClaudeCodeReader()
FOLDER = "claude-code"
NOT_A_LOG = "duplicate-assistant-response-2.jsonl"
SESSIONS, EVENTS = 163, 2724
"""Measured on the handed corpus; a change of the mapping shows here."""


def said(content: JSON) -> Iterator[str]:
    """Texts of a message: what was said, asked of tools, and answered by them. Thinking is left out."""
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if isinstance(block, str):
            yield block
            continue
        kind = member(block, "type")
        if kind == "text":
            yield str(member(block, "text"))
        elif kind == "tool_result":
            yield from said(member(block, "content"))
        elif kind == "tool_use":
            given = member(block, "input")
            values = given.values() if isinstance(given, dict) else ()
            yield from (text for text in values if isinstance(text, str) and text.isalnum())


def words(record: JSON) -> Iterator[str]:
    kind = member(record, "type")
    if kind in ("user", "assistant"):
        message = member(record, "message")
        yield from said(message if isinstance(message, str) else member(message, "content"))
    elif kind == "system" and member(record, "subtype") not in ("compact_boundary", "turn_duration"):
        yield str(member(record, "content") or "")
    elif kind == "attachment":
        attachment = member(record, "attachment")
        if member(attachment, "type") in ("queued_command", "hook_additional_context", "edited_text_file"):
            yield from said(member(attachment, "prompt"))
            yield from said(member(attachment, "content"))
            yield str(member(attachment, "snippet") or "")


def test_every_real_log_is_read_counted_folded_and_found_again() -> None:
    root = need_corpus() / FOLDER
    sessions = events = drawn = 0
    for seed, (unit, collected) in enumerate(read_folder(READER, root)):
        if unit.path.name == NOT_A_LOG:
            assert collected.refusal is not None
            assert collected.refusal.kind == "not-a-session"
            continue
        check_counts(collected, unit.path)
        pool = (word for value in json_lines(unit.path)[0] for word in words(value))
        drawn += check_found(collected, pool, seed)
        sessions += len(collected.sessions)
        events += sum(len(session.events) for session in collected.sessions.values())
    assert drawn > 1000
    assert (sessions, events) == (SESSIONS, EVENTS)


def test_sub_agents_of_both_layouts_find_their_parent() -> None:
    root = need_corpus() / FOLDER / "claude-code-log" / "real"
    known: set[str] = set()
    parents: set[str] = set()
    for _, collected in read_folder(READER, root):
        for name, session in collected.sessions.items():
            known.add(name)
            if session.header.origin == "subagent":
                assert session.header.parent_session is not None
                assert name.startswith(session.header.parent_session + "/")
                parents.add(session.header.parent_session)
    assert len(parents) > 5
    assert len(parents & known) > 3, "some parents are in the corpus"


def test_inline_side_chains_become_sessions_of_their_own() -> None:
    log = (
        need_corpus()
        / FOLDER
        / "claude-code-viewer/sample-project/fe5e1c67-53e7-4862-81ae-d0e013e3270b.jsonl"
    )
    collected = read_unit(READER, units_of(READER, log)[0])
    main = collected.sessions.pop(log.stem)
    assert len(collected.sessions) == 5
    assert all(child.header.parent_session == log.stem for child in collected.sessions.values())
    assert not main.notes


def test_an_export_named_itself_is_read() -> None:
    log = need_corpus() / FOLDER / "claude-code-transcripts/sample_session.json"
    (session,) = read_unit(READER, units_of(READER, log)[0]).sessions.values()
    assert [event.type for event in session.events[:3]] == ["user/message", "assistant/message", "tool/call"]


def test_a_growing_log_keeps_its_numbers(tmp_path: Path) -> None:
    root = need_corpus() / FOLDER
    for name in ("agent-sessions/small.jsonl", "session-share/0ccf1a04-1b4c-43b6-8aa5-79e41db43a68.jsonl"):
        prefixes_agree(READER, root / name, tmp_path / "log.jsonl")


def test_reading_while_a_log_grows_ends_where_reading_once_does(tmp_path: Path) -> None:
    """Cut anywhere, also inside a line, and go on from the checkpoint: equal to the last event."""
    rng = random.Random(11)
    logs = [unit.path for unit in units_of(READER, need_corpus() / FOLDER)]
    chosen = [path for path in rng.sample(logs, 60) if path.stat().st_size > 0 and path.name != NOT_A_LOG]
    for path in chosen:
        raw = path.read_bytes()
        copy = tmp_path / path.name
        copy.write_bytes(raw)
        unit = units_of(READER, copy)[0]
        whole, grown = read_unit(READER, unit), Collected()
        for cut in [*sorted(rng.sample(range(len(raw)), min(4, len(raw)))), len(raw)]:
            copy.write_bytes(raw[:cut])
            read_unit(READER, unit, grown)
        same = {name: (session.header, session.events) for name, session in whole.sessions.items()}
        assert {name: (one.header, one.events) for name, one in grown.sessions.items()} == same, path


def test_only_journals_are_skipped() -> None:
    root = need_corpus() / FOLDER
    skipped = [found for found in READER.units(root) if isinstance(found, SkippedPath)]
    assert {found.path.name for found in skipped} == {"journal.jsonl"}
