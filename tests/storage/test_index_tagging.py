"""Tags begin when an index has grown; at every moment exactly the documents up to one row id have theirs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from session_query.protocol.tokens import parts, prepare, tokens
from session_query.storage.index import Reach, SearchSpec, SessionKey, exact, tagging
from session_query.storage.index.bodies import Bodies
from session_query.storage.index.counting import mean_tokens
from session_query.storage.index.tagging import all_tagged, length_token
from session_query.storage.text_codec import TextCodec
from support.index_files import IndexFile, document, open_index, state

WORDS = ["quartz", "openNursery", "echo", "trio", "parseHTTP"]
FILLER = " ".join(f"filler{n}" for n in range(24))


@pytest.fixture
def index() -> Iterator[IndexFile]:
    with open_index(tagged=False) as opened:
        yield opened


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tagging, "TAGS_FROM_DOCUMENTS", 40)
    monkeypatch.setattr("session_query.storage.index.tagging.Tagging.step.__defaults__", (7,))


def check(index: IndexFile) -> None:
    """Postings say what the texts hold, and tags what is said of them."""
    execute = index.connection.execute
    through = tagging.Tagging(index.connection).through
    texts = dict(Bodies(index.connection, TextCodec()).between(0, 1 << 60))
    of = execute(
        "SELECT d.doc, s.ws, d.chars FROM doc AS d JOIN block AS b ON b.block = d.doc >> 12"
        " JOIN session AS s ON s.sid = b.sid"
    ).fetchall()
    assert {row for row, _, _ in of} == texts.keys()
    held = dict(execute("SELECT ws, documents FROM workspace WHERE documents <> 0").fetchall())
    assert held == Counter(ws for _, ws, _ in of)
    tagged: dict[str, set[int]] = {}
    for row, ws, chars in of:
        if row <= through:
            tagged.setdefault(f"{tagging.TAG}{ws}", set()).add(row)
            tagged.setdefault(length_token(chars), set()).add(row)
    for tag in {f"{tagging.TAG}{ws}" for ws in range(4)} | {length_token(n) for n in range(600)}:
        found = execute("SELECT rowid FROM fts WHERE fts MATCH ?", (f'parts : "{tag}"',)).fetchall()
        assert {row for (row,) in found} == tagged.get(tag, set())
        assert len(found) == len(tagged.get(tag, set()))
    for word in WORDS:
        found = execute("SELECT rowid FROM fts WHERE fts MATCH ?", (f'text : "{word}"',)).fetchall()
        assert {row for (row,) in found} == {row for row, text in texts.items() if word in text.split()}
    own = [len(tokens(text)) + len(parts(prepare(text))) for text in texts.values()]
    total = sum(own) + 2 * sum(row <= through for row in texts)
    assert mean_tokens(index.connection) == pytest.approx(total / len(texts) if texts else 0)
    execute("INSERT INTO fts(fts, rank) VALUES('integrity-check', 0)")


def test_a_small_index_has_no_tags(index: IndexFile) -> None:
    index.put(SessionKey("journal", "", "s"), state("s"), [document(n, f"quartz {FILLER}") for n in range(9)])
    while index.writer.merge_step():
        pass
    assert not all_tagged(index.connection)
    assert (
        index.connection.execute("SELECT 1 FROM fts WHERE fts MATCH 'parts : \"\u20211\"'").fetchall() == []
    )
    check(index)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(4))
def test_tags_come_step_by_step_whatever_changes_meanwhile(index: IndexFile, seed: int) -> None:
    rng = random.Random(seed)
    ends: dict[str, int] = {}
    begun = False
    for turn in range(160):
        name = f"s{rng.randrange(8)}"
        key = SessionKey("journal", "", name)
        with index.writer.transaction():
            sid = index.writer.put_session(key, state(name, cwd=rng.choice(["/a", "/a", "/a", "/a", "/b"])))
            if rng.random() < 0.8:
                start = ends.get(name, 0)
                made = [
                    document(start + n, " ".join(rng.choices(WORDS, k=rng.randrange(1, 9))))
                    for n in range(rng.randrange(1, 5))
                ]
                index.writer.append(sid, made)
                ends[name] = start + len(made)
            elif rng.random() < 0.7:
                ends[name] = rng.randrange(ends.get(name, 0) + 1)
                index.writer.truncate(sid, ends[name])
            else:
                index.writer.delete(sid)
                ends.pop(name, None)
        if rng.random() < 0.3:
            index.writer.merge_step()
            begun = begun or tagging.Tagging(index.connection).through >= 0
        if turn % 8 == 0:
            check(index)
    assert begun
    while index.writer.merge_step():
        pass
    assert all_tagged(index.connection)
    check(index)
    with index.writer.transaction():
        for name in ends:
            found = index.writer.find(SessionKey("journal", "", name))
            assert found is not None
            index.writer.delete(found.sid)
    check(index)


@pytest.mark.usefixtures("small")
def test_a_first_build_tags_as_it_goes(index: IndexFile) -> None:
    index.writer.bulk(True)
    for n in range(30):
        found = [document(seq, f"quartz {n} {FILLER}") for seq in range(3)]
        index.put(SessionKey("journal", "", f"s{n}"), state(f"s{n}"), found)
        assert all_tagged(index.connection) == (3 * (n + 1) >= 40)
    index.writer.bulk(False)
    check(index)


@pytest.mark.usefixtures("small")
def test_what_is_undone_tags_nothing(index: IndexFile) -> None:
    for n in range(20):
        found = [document(seq, f"quartz {n} {FILLER}") for seq in range(3)]
        index.put(SessionKey("journal", "", f"s{n}"), state(f"s{n}"), found)
    index.writer.merge_step()
    before = tagging.Tagging(index.connection).through

    def undone() -> None:
        with index.writer.transaction():
            tagging.Tagging(index.connection).step()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        undone()
    assert tagging.Tagging(index.connection).through == before
    check(index)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("tools", [False, True])
def test_pages_are_the_same_without_with_some_and_with_all_tags(
    index: IndexFile, monkeypatch: pytest.MonkeyPatch, tools: bool
) -> None:
    monkeypatch.setattr(exact, "LOOKED_UP_MAX", 0)
    monkeypatch.setattr(exact, "TAGS_FROM_HITS", 1)
    rng = random.Random(6)
    for n in range(30):
        texts = [
            " ".join([FILLER, *["quartz"] * rng.choice([1, 1, 2]), "x" * rng.choice([1, 2, 90])])
            for _ in range(4)
        ]
        found = [document(seq, text) for seq, text in enumerate(texts)]
        index.put(SessionKey("journal", "", f"s{n}"), state(f"s{n}", cwd=f"/{n % 3}"), found)

    def pages() -> list[object]:
        with index.reader.snapshot():
            return [
                index.reader.search_sessions(
                    SearchSpec(query="quartz", tools=tools, limit=limit), Reach(workspaces=cwds)
                ).hits
                for limit in (1, 5, 40)
                for cwds in (None, ("/0",), ("/1", "/2"), ("/nowhere",))
            ]

    untagged = pages()
    index.writer.merge_step()
    assert 0 <= tagging.Tagging(index.connection).through < tagging.ALL
    assert pages() == untagged
    while index.writer.merge_step():
        pass
    assert all_tagged(index.connection)
    assert pages() == untagged
