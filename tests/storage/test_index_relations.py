"""Look-ups of many sessions at once: by ids, by parents, by descent, and shares of a reach."""

from __future__ import annotations

import pytest

from session_query.protocol.header import SessionHeader
from session_query.storage.index import SessionKey, SessionState
from session_query.storage.index.door import Only, Reach, SearchSpec, Share, StoredSession
from support.index_files import IndexFile, document, open_index


def put(
    index: IndexFile,
    id_: str,
    parent: str | None = None,
    *,
    cwd: str | None = "/a",
    source: str = "s",
    **more: object,
) -> int:
    header = SessionHeader(id=id_, created_at=1, cwd=cwd, parent_session=parent)
    state = SessionState(header=header, rank=2, **more)  # type: ignore[arg-type]
    return index.put(SessionKey(source, "", id_), state, [document(0, f"fox {id_}")] if not more else [])


def ids(rows: list[StoredSession]) -> list[str]:
    return sorted(row.key.id for row in rows)


def test_by_ids_and_by_parents_in_batches_of_any_size() -> None:
    with open_index() as index:
        for number in range(1_200):
            put(index, f"x{number}", parent=f"x{number // 2}" if number else None)
        put(index, "x7", cwd="/b", source="other")
        put(index, "bad", parent="x7", error="SESSION_QUERY_CORRUPT_SESSION")
        with index.reader.snapshot():
            many = [f"x{number}" for number in range(2_000)]
            assert len(index.reader.with_ids([*many, *many])) == 1_201
            assert ids(index.reader.with_ids(["x7", "gone", "x9"])) == ["x7", "x7", "x9"]
            assert ids(index.reader.with_parents(["x7", "gone"])) == ["bad", "x14", "x15"]
            assert index.reader.with_ids([]) == []
            assert len(index.reader.with_parents(many)) == 1_200


def test_hidden_sources_and_covered_rows_are_in_no_look_up() -> None:
    with open_index() as index:
        put(index, "x", parent="p")
        put(index, "x", parent="p", source="worse")  # the same session again
        put(index, "y", parent="p", source="gone")
        with index.writer.transaction():
            index.writer.show_source("gone", False)
        with index.reader.snapshot():
            assert ids(index.reader.with_ids(["x", "y"])) == ["x"]
            assert ids(index.reader.with_parents(["p"])) == ["x"]
            assert ids(index.reader.kin("p")) == ["x"]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("root", ["a", "a1", "b", "root"]),
        ("a", ["a", "a1", "root"]),
        ("a1", ["a", "a1", "root"]),
        ("gone", ["orphan"]),
        ("c1", ["c1", "c2"]),
        ("nobody", []),
    ],
)
def test_kin_are_reached_by_chains_of_ids_and_cycles_end(start: str, expected: list[str]) -> None:
    with open_index() as index:
        pairs = {"root": None, "a": "root", "b": "root", "a1": "a", "orphan": "gone", "c1": "c2", "c2": "c1"}
        for id_, parent in pairs.items():
            put(index, id_, parent)
        with index.reader.snapshot():
            assert ids(index.reader.kin(start)) == expected


def test_odd_ids_are_ids_like_others() -> None:
    with open_index() as index:
        odd = ["\ud800", "'; DROP TABLE session; --", "a\0b", "\U0001f600"]
        for id_ in odd:
            put(index, id_, parent=f"of {id_}")
        with index.reader.snapshot():
            assert ids(index.reader.with_ids(odd)) == sorted(odd)
            assert ids(index.reader.with_parents([f"of {id_}" for id_ in odd])) == sorted(odd)
            assert all(ids(index.reader.kin(id_)) == [id_] for id_ in odd)


def test_shares_count_readable_sessions_and_losses_of_each_workspace() -> None:
    with open_index() as index:
        own = put(index, "a1", losses=2)
        put(index, "a2", losses=3)
        put(index, "bad", error="SESSION_QUERY_CORRUPT_SESSION", losses=5)
        put(index, "b1", cwd="/b")
        put(index, "none", cwd=None)
        with index.reader.snapshot():
            assert index.reader.shares(Reach()) == [
                Share(workspace=None, sessions=1, losses=0),
                Share(workspace="/a", sessions=2, losses=5),
                Share(workspace="/b", sessions=1, losses=0),
            ]
            inside = Reach(workspaces=("/a", "/nowhere"), excluded=frozenset((own,)))
            assert index.reader.shares(inside) == [Share(workspace="/a", sessions=1, losses=3)]
            assert index.reader.shares(Reach(workspaces=())) == []


def test_only_narrows_a_search_to_what_clauses_have_named() -> None:
    with open_index() as index:
        sids = {id_: put(index, id_, parent) for id_, parent in (("r", None), ("a", "r"), ("b", "r"))}

        def found(*only: Only) -> list[str]:
            hits = index.reader.search_sessions(SearchSpec(query="fox", only=only), Reach()).hits
            return sorted(hit.session.key.id for hit in hits)

        with index.reader.snapshot():
            assert found() == ["a", "b", "r"]
            assert found(Only(frozenset((sids["a"],)))) == ["a"]
            assert found(Only(frozenset((sids["a"],)), or_roots=True)) == ["a", "r"]
            assert found(Only(frozenset((sids["a"], sids["b"]))), Only(frozenset((sids["b"],)))) == ["b"]
            assert found(Only(frozenset())) == []
            nothing = index.reader.search_sessions(
                SearchSpec(query="fox", only=(Only(frozenset()),)), Reach()
            )
            assert nothing.facts.filters_excluded_everything
