"""What a reader remembers between searches holds for one state of the index, and for no other."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_query.storage.index.bodies import Bodies
from session_query.storage.index.door import Reach, SearchSpec, SessionKey, SessionsFound
from session_query.storage.index.reader import Reader
from session_query.storage.text_codec import TextCodec
from support.index_files import IndexFile, document, open_index, state

KEY = SessionKey("journal", "", "s")
FILLER = " ".join(f"filler{n}" for n in range(24))


def search(reader: Reader, query: str) -> SessionsFound:
    with reader.snapshot():
        return reader.search_sessions(SearchSpec(query=query), Reach())


def snippets(found: SessionsFound) -> list[str]:
    return [hit.best.snippet for hit in found.hits]


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_commit_ends_what_a_reader_remembers(in_memory: bool, tmp_path: Path) -> None:
    with open_index(None if in_memory else tmp_path / "index.db") as index:
        sid = index.put(KEY, state("s", revision="1"), [document(0, f"echo old {FILLER}")])
        assert snippets(search(index.reader, "echo"))[0].startswith("echo old")
        assert snippets(search(index.reader, "echo"))[0].startswith("echo old")
        with index.writer.transaction():
            index.writer.truncate(sid, 0)
            index.writer.append(sid, [document(0, f"echo new {FILLER}")])
            index.writer.put_session(KEY, state("s", revision="2"))
        found = search(index.reader, "echo")
        assert snippets(found)[0].startswith("echo new")
        assert found.hits[0].session.state.revision == "2"


def test_a_second_search_reads_no_text_and_no_session_again(monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[int] = []
    unpack = TextCodec.unpack_bytes

    def counting(codec: TextCodec, blob: bytes) -> bytes:
        unpacked.append(len(blob))
        return unpack(codec, blob)

    with open_index() as index:
        for number in range(5):
            index.put(
                SessionKey("journal", "", f"s{number}"),
                state(f"s{number}"),
                [document(0, f"echo {FILLER}"), document(1, "trio " * 4_000)],
            )
        monkeypatch.setattr(TextCodec, "unpack_bytes", counting)
        first = search(index.reader, "echo")
        assert len(unpacked) == 5
        assert search(index.reader, "echo") == first
        assert len(unpacked) == 5


texts = st.lists(
    st.one_of(
        st.text(max_size=40), st.integers(0, 70_000).map(lambda size: "x" * size), st.just("東" * 30_000)
    ),
    max_size=20,
)


@given(texts, st.data())
@settings(max_examples=100, deadline=None)
def test_some_texts_of_a_run_are_those_of_the_whole(run: list[str], data: st.DataObject) -> None:
    codec = TextCodec()
    blob = codec.pack(run)
    wanted = sorted(data.draw(st.sets(st.integers(0, len(run) + 2))))
    whole = codec.unpack(blob)
    assert codec.unpack_some(blob, wanted) == [whole[place] for place in wanted if place < len(whole)]


def test_long_lists_and_every_head_of_a_string() -> None:
    codec = TextCodec()
    for run in (
        ["a"] * 15,
        ["a"] * 16,
        ["a"] * 70_000,
        ["x" * n for n in (0, 31, 32, 255, 256, 65_535, 65_536)],
    ):
        blob = codec.pack(run)
        assert codec.unpack_some(blob, range(len(run))) == run
        assert codec.unpack_some(blob, [len(run) - 1, len(run)]) == [run[-1]]


def fill(index: IndexFile) -> list[str]:
    """Documents in several runs, some of one text alone; returns the texts."""
    written = [f"text {n} " + "y" * (n * 997 % 9_000) for n in range(40)]
    index.put(KEY, state("s"), [document(seq, text) for seq, text in enumerate(written)])
    return written


@given(st.lists(st.integers(0, 45), max_size=30))
@settings(max_examples=60, deadline=None)
def test_texts_read_together_are_those_read_one_by_one(wanted: list[int]) -> None:
    with open_index() as index:
        written = fill(index)
        (first,) = index.reader_connection.execute("SELECT min(doc) FROM doc").fetchone() or (0,)
        bodies = Bodies(index.reader_connection, TextCodec())
        bodies.load(first + place for place in wanted)
        for place in wanted:
            if place < len(written):
                assert bodies.text(first + place) == written[place]
            else:
                with pytest.raises(KeyError):
                    bodies.text(first + place)


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("session_query.storage.index.bodies._KEPT_CHARS_MAX", 20_000)
    with open_index() as index:
        written = fill(index)
        (first,) = index.reader_connection.execute("SELECT min(doc) FROM doc").fetchone() or (0,)
        bodies = Bodies(index.reader_connection, TextCodec())
        for _ in range(3):
            bodies.load(range(first, first + len(written)))
            assert bodies.kept_chars <= 20_000 + 16_000 + max(map(len, written))
            assert [bodies.text(first + n) for n in range(len(written))] == written


def test_the_state_is_fixed_when_it_is_asked_for(tmp_path: Path) -> None:
    with open_index(tmp_path / "index.db") as index:
        index.put(KEY, state("s"), [document(0, f"echo old {FILLER}")])
        spec = SearchSpec(query="echo")
        with index.reader.snapshot():
            index.put(SessionKey("journal", "", "t"), state("t"), [document(0, f"echo new {FILLER}")])
            assert len(index.reader.search_sessions(spec, Reach()).hits) == 1
        assert len(search(index.reader, "echo").hits) == 2
