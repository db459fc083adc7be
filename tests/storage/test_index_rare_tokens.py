"""Long phrases are looked for by their rarer tokens first: it changes what they cost, never what is found."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_query.protocol.tokens import count_phrase, lower_ascii, prepare, tokens
from session_query.storage.index import exact, rare_tokens
from session_query.storage.index.door import Reach, SearchSpec, SessionKey
from session_query.storage.index.scope import hits_up_to
from support.index_files import IndexFile, document, open_index, state

FILLER = " ".join(f"filler{n}" for n in range(24))
WORDS = ["the", "the", "the", "of", "of", "echo", "nursery", "trio", "東京"]

texts = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join), min_size=1, max_size=14
)
phrases = st.lists(st.sampled_from(WORDS), min_size=3, max_size=6)


def fill(index: IndexFile, written: list[str]) -> None:
    """Two documents a session, every third session in another workspace."""
    for number in range(0, len(written), 2):
        documents = [
            document(seq, f"{text} . {FILLER}") for seq, text in enumerate(written[number : number + 2])
        ]
        place = "/b" if number % 3 == 0 else "/a"
        index.put(SessionKey("journal", "", f"s{number:02}"), state(f"s{number:02}", cwd=place), documents)


def counts_of(written: list[str], phrase: list[str], workspace: str | None) -> dict[str, int]:
    """The most occurrences in one document of each session that has any."""
    found: dict[str, int] = {}
    for number, text in enumerate(written):
        first = number - number % 2
        if workspace in (None, "/b" if first % 3 == 0 else "/a"):
            count = count_phrase(lower_ascii(prepare(text)), phrase)
            if count:
                found[f"s{first:02}"] = max(count, found.get(f"s{first:02}", 0))
    return found


@given(texts, phrases, st.sampled_from([None, "/a", "/b"]), st.integers(0, 4), st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_hits_and_their_order_stay_the_same(
    written: list[str], words: list[str], workspace: str | None, few: int, blocks: int
) -> None:
    phrase = tokens(" ".join(words))
    with pytest.MonkeyPatch.context() as patch, open_index() as index:
        fill(index, written)
        patch.setattr(rare_tokens, "FEW_HELD", few)
        patch.setattr(rare_tokens, "FEW_EXPECTED", 10 * few)
        patch.setattr(rare_tokens, "SAMPLE_BLOCKS", blocks + 1)
        reach = Reach(workspaces=None if workspace is None else (workspace,))
        spec = SearchSpec(query=" ".join(words), limit=50)
        with index.reader.snapshot():
            hits = index.reader.search_sessions(spec, reach).hits
        patch.setattr(exact, "LONG_PHRASE", 1_000)
        with index.reader.snapshot():
            assert index.reader.search_sessions(spec, reach).hits == hits
        counts = counts_of(written, phrase, workspace)
        assert {hit.session.key.id for hit in hits} == counts.keys()
        found = [counts[hit.session.key.id] for hit in hits]
        assert found == sorted(found, reverse=True)


def test_a_rare_token_spares_the_walk_over_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def noting(connection: object, limit: int, matching: rare_tokens.Matching) -> int:
        asked.append(matching.expression)
        return hits_up_to(connection, limit, matching)  # type: ignore[arg-type]  # passed on as it came

    with open_index() as index:
        fill(index, ["the of the echo", *["the of the of"] * 40, "nursery of the trio"])
        monkeypatch.setattr(exact, "hits_up_to", noting)
        monkeypatch.setattr(rare_tokens, "hits_up_to", noting)
        with index.reader.snapshot():
            found = index.reader.search_sessions(SearchSpec(query="of the echo"), Reach())
            none = index.reader.search_sessions(SearchSpec(query="of the nursery trio"), Reach())
    assert [hit.best.seq for hit in found.hits] == [0]
    assert none.hits == ()
    assert not any("of the" in expression for expression in asked)


@given(texts, st.lists(st.sampled_from(WORDS), min_size=1, max_size=5), st.integers(0, 3), st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_inside_one_session_as_well(written: list[str], words: list[str], few: int, most: int) -> None:
    phrase = tokens(" ".join(words))
    with pytest.MonkeyPatch.context() as patch, open_index() as index:
        documents = [document(seq, f"{text} . {FILLER}") for seq, text in enumerate(written)]
        sid = index.put(SessionKey("journal", "", "s"), state("s"), documents)
        index.put(SessionKey("journal", "", "t"), state("t"), documents)
        patch.setattr(rare_tokens, "FEW_INSIDE", few)
        patch.setattr(exact, "FEW_HITS", most)
        with index.reader.snapshot():
            hits = index.reader.search_events(SearchSpec(query=" ".join(words), limit=50), Reach(), sid).hits
        counts = [count_phrase(lower_ascii(prepare(text)), phrase) for text in written]
        expected = [
            (-count, len(written[seq]), -seq, seq) for seq, count in enumerate(counts) if count
        ]  # times ascend with seqs
        assert [hit.seq for hit in hits] == [seq for *_, seq in sorted(expected)]
