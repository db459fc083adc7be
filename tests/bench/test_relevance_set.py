"""The labelled relevance set keeps its own rules, and is the same set everywhere."""

from __future__ import annotations

import hashlib
from pathlib import Path

import attrs
import msgspec
import pytest

from session_query.bench.relevance.composing import LabelledSession, compose
from session_query.bench.relevance.labelled_set import DATA, load
from session_query.bench.relevance.notation import NotationError, Topic, read_topic
from session_query.bench.relevance.plain import plain_searcher
from session_query.bench.relevance.rules import defects, kin
from session_query.bench.relevance.scoring import Case, run, score
from session_query.protocol.documents import build_documents
from session_query.protocol.header import header_from_json, header_to_json

PLAIN_HIT1_MAX = 0.65
FILE_BYTES_MAX = 1 << 20

HEAD = "topic t\ncwd /w\nlang en\n"


def write(folder: Path, text: str) -> Topic:
    path = folder / "t.txt"
    path.write_text(HEAD + text, encoding="utf-8")
    return read_topic(path)


def composed(folder: Path, text: str) -> dict[str, LabelledSession]:
    return {session.slug: session for session in compose([write(folder, text)], {})}


@pytest.mark.slow
def test_the_set_breaks_none_of_its_rules() -> None:
    assert defects(load()) == []


@pytest.mark.slow
def test_a_plain_any_word_search_finds_it_hard() -> None:
    labelled = load()
    cases = [
        Case(text=q.text, group=q.kind, answers=tuple(map(labelled.answers, q.targets)))
        for q in labelled.queries
    ]
    with plain_searcher(labelled.sessions) as searcher:
        found = score(run(searcher, cases))
    assert 0.3 < found.hit1 <= PLAIN_HIT1_MAX


@pytest.mark.slow
def test_every_log_of_the_set_is_a_valid_log() -> None:
    labelled = load()
    for session in labelled.sessions:
        assert [event.seq for event in session.events] == list(range(len(session.events)))
        assert build_documents(session.events)
        assert header_from_json(header_to_json(session.header)) == session.header
    assert len({session.header.id for session in labelled.sessions}) == len(labelled.sessions)


@pytest.mark.slow
def test_the_same_files_give_the_same_logs() -> None:
    def digest() -> str:
        load.cache_clear()
        logs = [(session.header, session.events) for session in load().sessions]
        encoded = msgspec.json.encode([(header_to_json(header), events) for header, events in logs])
        return hashlib.sha256(encoded).hexdigest()

    assert digest() == digest()


def test_no_data_file_is_large() -> None:
    sizes = [path.stat().st_size for path in DATA.iterdir()]
    assert sizes
    assert max(sizes) < FILE_BYTES_MAX


@pytest.mark.slow
def test_a_paraphrase_that_shares_two_words_is_a_defect() -> None:
    labelled = load()
    sentence = next(query for query in labelled.queries if query.kind == "sentence")
    broken = attrs.evolve(labelled, queries=(attrs.evolve(sentence, kind="paraphrase"),))
    assert any("paraphrase" in defect and "shares" in defect for defect in defects(broken))


@pytest.mark.slow
def test_a_negative_that_an_event_holds_is_a_defect() -> None:
    labelled = load()
    error = next(query for query in labelled.queries if query.kind == "error")
    broken = attrs.evolve(labelled, queries=(attrs.evolve(error, kind="negative", targets=()),))
    assert any("an event of" in defect for defect in defects(broken))


@pytest.mark.parametrize(
    ("a", "b", "related"),
    [
        ("migrating", "migration", True),
        ("split", "splitting", True),
        ("station", "statement", False),
        ("time", "timekeepers", False),
        ("cup", "cups", False),
    ],
)
def test_kin(a: str, b: str, related: bool) -> None:
    assert kin(a, b) is related


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("== s | Title\n< an answer without a prompt\n", "t.txt:5: a turn begins with a prompt"),
        ("== s | Title\n> go\n: nothing called this\n", "t.txt:6: a result without a call"),
        ("== s | Title\n> go\n? guess : what?\n", "t.txt:6: unknown kind guess"),
        ("== s | Title | loud\n", "t.txt:4: unknown flag loud"),
        ("== s | Title\nnonsense\n", "t.txt:5: no line of the notation"),
    ],
)
def test_broken_notation_names_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(NotationError) as caught:
        write(tmp_path, text)
    assert str(caught.value).startswith(message)


def test_a_turn_becomes_the_events_it_tells_of(tmp_path: Path) -> None:
    text = (
        '== s | Title\n> ask\n* pending: one; completed: two\n< I look.\n! ls {}\n! cat {"f": 1}\n'
        ": listed\\nall\nx Gone ENOENT | no such file\n< Done.\n$ error it broke\n"
    )
    session = composed(tmp_path, text)["s"]
    assert [event.type for event in session.events] == [
        "turn/start",
        "user/message",
        "todo/write",
        "step/start",
        "assistant/message",
        "tool/call",
        "tool/call",
        "tool/result",
        "tool/result",
        "step/start",
        "assistant/message",
        "step/end",
        "turn/end",
        "session/title",
    ]
    texts = [document.text for document in build_documents(session.events)]
    assert texts[5:7] == ["listed\nall", "no such file\nGone\nENOENT"]
    assert texts[-1] == "error\nit broke"


def test_a_fork_begins_with_its_parents_events(tmp_path: Path) -> None:
    text = (
        "== a | A | filler=1\n> one\n< first\n> two\n< second\n"
        "== b | B | fork=a:1 filler=0\n> other\n< third\n~~\n> shared\n< exchange\n"
    )
    made = composed(tmp_path, text)
    parent, fork = made["a"], made["b"]
    assert fork.inherited == fork.header.seed_length
    assert fork.events[: fork.inherited] == parent.events[: fork.inherited]
    assert parent.events[fork.inherited - 1].type == "turn/end"
    assert fork.events[fork.inherited].type == "session/end-seed"
    held = " ".join(document.text for document in build_documents(fork.events))
    assert "first" in held
    assert "second" not in held


def test_forks_in_a_circle_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="its own ancestor"):
        composed(tmp_path, "== a | A | fork=b:1\n> x\n< y\n== b | B | fork=a:1\n> x\n< y\n")
