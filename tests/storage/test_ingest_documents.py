"""Formats that are rewritten whole: what did not change is not written again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from session_query.protocol.json_value import JSON
from session_query.storage.sources import reading
from support.stores import ToyStore, open_toy_store, toy_store


@pytest.fixture
def toys(tmp_path: Path) -> Iterator[ToyStore]:
    with toy_store(tmp_path) as opened:
        yield opened


def record(session: str, text: str, **more: JSON) -> dict[str, JSON]:
    return {"id": session, "text": text, **more}


def rewrite(toys: ToyStore, records: list[Mapping[str, JSON]]) -> None:
    toys.write("all.doc", json.dumps(records).encode())


def marks(toys: ToyStore) -> dict[str, tuple[str, int]]:
    return {key: (row.state.revision, row.generation) for key, row in toys.sessions().items()}


class Truncations:
    """Counts how often stored events are cut: a session that is written again from its start."""

    def __init__(self, toys: ToyStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[int] = []
        truncate = toys.store.index.truncate

        def counting(sid: int, from_seq: int = 0) -> None:
            self.seen.append(sid)
            truncate(sid, from_seq)

        monkeypatch.setattr(toys.store.index, "truncate", counting)


@pytest.mark.parametrize("cold", [False, True])
def test_only_what_is_new_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cold: bool) -> None:
    toys = open_toy_store(tmp_path)
    one = [record("one", f"alpha{n}") for n in range(7)]
    two = [record("two", f"beta{n}", replace=[0, 0] if n == 1 else None) for n in range(9)]
    rewrite(toys, one + two)
    toys.refresh()
    if cold:
        toys.close()
        toys = open_toy_store(tmp_path)
    cuts = Truncations(toys, monkeypatch)
    before = marks(toys)
    rewrite(toys, [*one, *two, record("two", "beta9", replace=[1, 2]), record("three", "gamma")])
    toys.refresh()
    assert cuts.seen.count(toys.sessions()["one"].sid) == 0
    assert cuts.seen.count(toys.sessions()["two"].sid) == 0
    assert toys.texts("one") == [f"alpha{n}" for n in range(7)]
    assert toys.texts("two") == [f"beta{n}" for n in range(10)]
    assert toys.surfaces("two") == "sss" + "c" * 7
    assert toys.texts("three") == ["gamma"]
    after = marks(toys)
    assert after["one"] == before["one"], "an unchanged session keeps revision and generation"
    assert after["two"][0] != before["two"][0]
    toys.close()


def test_a_change_inside_is_seen(toys: ToyStore) -> None:
    records = [record("one", f"alpha{n}") for n in range(12)]
    rewrite(toys, records)
    toys.refresh()
    records[3] = record("one", "changed", replace=[0, 2])
    rewrite(toys, records)
    toys.refresh()
    assert toys.texts("one")[3] == "changed"
    assert toys.surfaces("one") == "ssscccccc" + "ccc"
    assert toys.found("alpha3") == set()


def test_a_session_that_became_shorter_or_is_gone(toys: ToyStore) -> None:
    records = [record("one", f"alpha{n}") for n in range(12)]
    rewrite(toys, [*records, record("two", "beta")])
    toys.refresh()
    rewrite(toys, records[:4])
    toys.refresh()
    assert toys.texts("one") == ["alpha0", "alpha1", "alpha2", "alpha3"]
    assert set(toys.sessions()) == {"one"}
    last = marks(toys)["one"][0]
    rewrite(toys, [])
    toys.refresh()
    assert toys.sessions() == {}
    rewrite(toys, [record("one", "other")])
    toys.refresh()
    assert marks(toys)["one"][0] != last


def test_a_document_caught_half_written_keeps_what_was_stored(toys: ToyStore) -> None:
    rewrite(toys, [record("one", "alpha")])
    toys.refresh()
    (toys.logs / "all.doc").write_bytes(b'[{"id":"one","te')
    toys.refresh()
    assert toys.found("alpha") == {"one"}
    rewrite(toys, [record("one", "alpha"), record("one", "beta")])
    toys.refresh()
    assert toys.texts("one") == ["alpha", "beta"]


def test_too_long_to_hold_back_is_written_again(toys: ToyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "HELD_EVENTS_MAX", 6)
    records = [record("one", f"alpha{n}") for n in range(14)]
    rewrite(toys, records)
    toys.refresh()
    cuts = Truncations(toys, monkeypatch)
    rewrite(toys, [*records, record("one", "more")])
    toys.refresh()
    assert cuts.seen == [toys.sessions()["one"].sid]
    assert toys.texts("one") == [*(f"alpha{n}" for n in range(14)), "more"]


def test_building_anew_trusts_no_digest(toys: ToyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    rewrite(toys, [record("one", "alpha")])
    toys.refresh()
    sid = toys.sessions()["one"].sid
    with toys.store.index.transaction():
        toys.store.index.truncate(sid, 0)  # damage of the index that no stamp can show
    cuts = Truncations(toys, monkeypatch)
    seen = [toys.found("alpha") for _ in toys.store.sources.rebuild()]
    assert seen[-1] == {"one"}
    assert cuts.seen
    assert toys.sessions()["one"].sid == sid
