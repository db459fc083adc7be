"""The pi reader: its worked session, branches, compactions, forks, old and foreign members of the family."""

from __future__ import annotations

import json
from pathlib import Path

from session_query.protocol.json_value import JSON
from session_query.protocol.text import event_text
from session_query.storage.readers.collect import Collected, CollectedSession
from session_query.storage.readers.pi import PiReader
from session_query.storage.readers.seam import LogUnit, SkippedPath
from support.reader_conformance import check_reader, check_session, read_unit, shape, units_of
from support.worked_readme import data_files, worked_lists

READER = PiReader()
HEADER: dict[str, JSON] = {
    "type": "session",
    "version": 3,
    "id": "s",
    "timestamp": "2026-05-04T08:00:00Z",
    "cwd": "/home/mira",
}


def entry(kind: str, key: str, parent: str | None, second: int = 1, **fields: JSON) -> dict[str, JSON]:
    stamp = f"2026-05-04T08:00:{second:02d}Z"
    return {"type": kind, "id": key, "parentId": parent, "timestamp": stamp, **fields}


def said(role: str, key: str, parent: str | None, text: str, second: int = 1) -> dict[str, JSON]:
    content: JSON = [{"type": "text", "text": text}]
    return entry("message", key, parent, second, message={"role": role, "content": content})


def line(*texts: str) -> list[dict[str, JSON]]:
    """Messages m0, m1, … each the child of the one before."""
    return [
        said("user" if at % 2 == 0 else "assistant", f"m{at}", f"m{at - 1}" if at else None, text)
        for at, text in enumerate(texts)
    ]


def write(path: Path, *rows: dict[str, JSON]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read(path: Path) -> Collected:
    return read_unit(READER, units_of(READER, path)[0])


def only(path: Path) -> CollectedSession:
    (session,) = read(path).sessions.values()
    check_session(session)
    return session


def test_worked_session_passes_every_check(tmp_path: Path) -> None:
    check_reader(READER, data_files("pi"), worked_lists("pi"), tmp_path)


def test_worked_session_has_the_links_and_words_its_table_promises(tmp_path: Path) -> None:
    ((name, raw),) = data_files("pi").items()
    path = tmp_path / Path(name).name
    path.write_bytes(raw)
    session = only(path)
    assert session.title is None, "the title in the log is not outdone by a later prompt"
    assert session.events[14].surface_op == {"op": "replace", "start": 11, "end": 12}
    assert session.events[18].surface_op == {"op": "replace", "start": 3, "end": 14}
    assert [session.events[at].source_event_seqs for at in (7, 8, 17)] == [[5], [6], [16]]
    assert not any("surely" in event_text(event) for event in session.events), "thinking is no text"


def test_a_branch_replaces_what_it_leaves_behind(tmp_path: Path) -> None:
    rows = [*line("a", "b", "c", "d"), said("user", "n", "m1", "instead of c")]
    event = only(write(tmp_path / "a.jsonl", HEADER, *rows)).events[-1]
    assert event.surface_op == {"op": "replace", "start": 3, "end": 4}


def test_a_branch_from_the_root_replaces_everything(tmp_path: Path) -> None:
    rows = [*line("a", "b"), said("user", "n", None, "anew")]
    event = only(write(tmp_path / "a.jsonl", HEADER, *rows)).events[-1]
    assert event.surface_op == {"op": "replace", "start": 1, "end": 2}


def test_a_branch_taken_up_again_is_noted(tmp_path: Path) -> None:
    rows = [*line("a", "b", "c"), said("user", "n", "m0", "other"), said("user", "again", "m2", "back")]
    session = only(write(tmp_path / "a.jsonl", HEADER, *rows))
    assert len(session.notes) == 1
    assert session.events[-1].surface_op == {"op": "replace", "start": 4, "end": 4}


def test_a_parent_that_was_never_written_and_a_cycle_change_nothing(tmp_path: Path) -> None:
    odd = [said("user", "x", "gone", "one"), said("user", "y", "y", "two"), said("user", "p", "q", "three")]
    rows = [*line("a", "b"), *odd, said("user", "q", "p", "four")]
    session = only(write(tmp_path / "a.jsonl", HEADER, *rows))
    assert {str(event.surface_op) for event in session.events[1:]} == {"append"}


def test_a_second_compaction_replaces_the_first_and_what_followed(tmp_path: Path) -> None:
    def compaction(key: str, parent: str, kept: str, text: str) -> dict[str, JSON]:
        return entry("compaction", key, parent, summary=text, firstKeptEntryId=kept)

    rows = line("a", "b", "c", "d")
    rows += [
        compaction("k1", "m3", "m2", "first"),
        said("user", "m4", "k1", "e"),
        said("user", "m5", "m4", "f"),
    ]
    rows += [compaction("k2", "m5", "m4", "second")]
    events = only(write(tmp_path / "a.jsonl", HEADER, *rows)).events
    assert events[5].surface_op == {"op": "replace", "start": 1, "end": 2}
    assert events[8].surface_op == {"op": "replace", "start": 5, "end": 4}
    assert events[8].source_event_seqs == [5, 3, 4]


def test_a_compaction_may_count_entries_or_keep_all(tmp_path: Path) -> None:
    by_index = entry("compaction", "k", "m2", summary="by index", firstKeptEntryIndex=2)
    events = only(write(tmp_path / "a.jsonl", HEADER, *line("a", "b", "c"), by_index)).events
    assert events[-1].surface_op == {"op": "replace", "start": 1, "end": 1}
    unknown = entry("compaction", "k", "m2", summary="all", firstKeptEntryId="gone")
    events = only(write(tmp_path / "b.jsonl", HEADER, *line("a", "b", "c"), unknown)).events
    assert events[-1].surface_op == {"op": "replace", "start": 1, "end": 3}
    keeps = entry("compaction", "k", "m2", summary="keeps", firstKeptEntryId="m0")
    events = only(write(tmp_path / "c.jsonl", HEADER, *line("a", "b", "c"), keeps)).events
    assert events[-1].surface_op == "append"


def test_a_fork_names_its_parent_and_counts_what_it_copied(tmp_path: Path) -> None:
    forked = HEADER | {
        "timestamp": "2026-05-04T08:00:30Z",
        "parentSession": "C:\\pi\\2026-05-04_parent-1.jsonl",
    }
    rows = [*line("a", "b"), said("user", "m2", "m1", "own prompt", second=31)]
    session = only(write(tmp_path / "a.jsonl", forked, *rows))
    assert session.header.parent_session == "parent-1"
    assert session.inherited == 3
    assert session.title is not None
    assert session.title.title == "own prompt"


def test_version_one_is_a_line_and_may_begin_before_its_header(tmp_path: Path) -> None:
    header: dict[str, JSON] = {
        "type": "session",
        "id": "v1",
        "timestamp": "2026-05-04T08:00:30Z",
        "provider": "p",
        "modelId": "m",
    }
    rows: list[dict[str, JSON]] = [
        {"type": "message", "timestamp": "2026-05-04T08:00:01Z", "message": {"role": role, "content": text}}
        for role, text in (("user", "old prompt"), ("assistant", "old answer"))
    ]
    session = only(write(tmp_path / "a.jsonl", header, *rows))
    assert (session.header.created_at, session.inherited) == (1777881630000, 0)
    data = session.events[2].data
    assert isinstance(data, dict)
    assert data["message"]["source"] == {"kind": "model", "provider": "p", "model": "m"}  # type: ignore[index,call-overload]


def test_a_log_without_its_header_is_known_by_its_messages(tmp_path: Path) -> None:
    path = write(tmp_path / "2026-05-04_lost-header.jsonl", *line("a", "b"))
    path.write_bytes(b'{"type":"session","id":"lo\n' + path.read_bytes())
    collected = read(path)
    assert list(collected.sessions) == ["lost-header"]
    assert (collected.held, len(collected.losses)) == (2, 1)


def test_answers_that_failed_say_so(tmp_path: Path) -> None:
    message: dict[str, JSON] = {
        "role": "assistant",
        "content": [],
        "stopReason": "error",
        "errorMessage": "overloaded",
    }
    session = only(write(tmp_path / "a.jsonl", HEADER, entry("message", "m", None, message=message)))
    assert event_text(session.events[-1]) == "error\noverloaded"


def test_checkpoint_copies_are_no_sessions(tmp_path: Path) -> None:
    write(tmp_path / "s.jsonl", HEADER)
    write(tmp_path / "s.checkpoint.1.jsonl", HEADER)
    found = list(READER.units(tmp_path))
    assert [item.path.name for item in found if isinstance(item, LogUnit)] == ["s.jsonl"]
    assert [item.path.name for item in found if isinstance(item, SkippedPath)] == ["s.checkpoint.1.jsonl"]
    assert shape(only(tmp_path / "s.jsonl")) == [(0, "pi/session")]
