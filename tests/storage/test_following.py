"""Following logs that another process writes: slowly, torn, truncated, rewritten, renamed, deleted."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from session_query.storage import sqlite
from support.kill import ROUNDS
from support.stores import ToyStore, open_toy_store, toy_store
from support.toy_logs import line

WRITER = """
import os, random, sys, time
sys.path[:0] = [{tests!r}]
from support.toy_logs import line
dice = random.Random({seed})
root = {root!r}
for turn in range(120):
    name = os.path.join(root, f"{{dice.randrange(5)}}.toy")
    what = dice.random()
    text = f"word{{turn}} common"
    session = os.path.basename(name)[:1]
    if what < 0.7:
        with open(name, "ab", buffering=0) as file:
            whole = line(session, text)
            cut = dice.randrange(len(whole))
            file.write(whole[:cut])
            time.sleep(dice.random() / 500)
            file.write(whole[cut:])
    elif what < 0.8 and os.path.exists(name):
        os.truncate(name, dice.randrange(os.path.getsize(name) + 1))
        with open(name, "ab", buffering=0) as file:
            file.write(b"\\n")
    elif what < 0.9:
        with open(name + ".new", "wb") as file:
            file.write(b"".join(line(session, f"again{{n}} common") for n in range(dice.randrange(30))))
        os.replace(name + ".new", name)
    elif what < 0.95 and os.path.exists(name):
        os.makedirs(os.path.join(root, "moved"), exist_ok=True)
        os.replace(name, os.path.join(root, "moved", os.path.basename(name)))
    elif os.path.exists(name):
        os.unlink(name)
"""


def told(toys: ToyStore) -> dict[tuple[str, str], list[str]]:
    """What the logs say now, read afresh: (place, id) to texts."""
    fresh = open_toy_store(toys.logs.parent, in_memory=True)
    fresh.refresh()
    try:
        return everything(fresh)
    finally:
        fresh.close()


def everything(toys: ToyStore) -> dict[tuple[str, str], list[str]]:
    """Every row of the index with its texts and surfaces, hidden ones included."""
    with toys.reader.index.snapshot():
        rows = toys.reader.connection.execute("SELECT sid FROM session").fetchall()
        found = {}
        for (sid,) in rows:
            row = toys.reader.index.session(sid)
            assert row is not None
            documents = toys.reader.index.documents(sid)
            found[row.key.place, row.key.id] = [f"{one.surface[0]} {one.text}" for one in documents]
        return found


def without_places(found: dict[tuple[str, str], list[str]]) -> list[tuple[str, list[str]]]:
    """A log that moved keeps its place, so a fresh index may name it otherwise."""
    return sorted((id_, texts) for (_, id_), texts in found.items())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(max(2, ROUNDS // 5)))
def test_an_index_that_follows_ends_like_one_that_reads_afresh(tmp_path: Path, seed: int) -> None:
    with toy_store(tmp_path) as toys:
        code = WRITER.format(tests=str(Path(__file__).parents[1]), seed=seed, root=str(toys.logs))
        writer = subprocess.Popen([sys.executable, "-c", code])
        rounds = 0
        while writer.poll() is None:
            toys.refresh()
            rounds += 1
        assert writer.returncode == 0
        toys.refresh()
        assert rounds > 3
        assert without_places(everything(toys)) == without_places(told(toys))
        assert toys.store.connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


ACTION = st.tuples(
    st.sampled_from(["append", "torn", "cut", "rewrite", "replace", "delete", "move", "refresh", "reopen"]),
    st.integers(0, 2),
    st.integers(0, 5),
)


@given(actions=st.lists(ACTION, max_size=14))
@settings(max_examples=25, deadline=None)
def test_any_history_of_a_log_ends_like_one_that_reads_afresh(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, int, int]]
) -> None:
    toys = open_toy_store(tmp_path_factory.mktemp("following"))
    try:
        for turn, (action, which, amount) in enumerate(actions):
            if action == "refresh":
                toys.refresh()
            elif action == "reopen":
                toys.close()
                toys = open_toy_store(toys.logs.parent)
            else:
                change(toys.logs / f"{which}.toy", f"s{which}", action, amount, turn)
        toys.refresh()
        assert without_places(everything(toys)) == without_places(told(toys))
    finally:
        toys.close()


def change(path: Path, session: str, action: str, amount: int, turn: int) -> None:
    """One thing that may happen to a log."""
    if action == "append":
        with path.open("ab") as file:
            file.write(b"".join(line(session, f"t{turn} n{n}") for n in range(amount)))
    elif action == "torn":
        with path.open("ab") as file:
            file.write(
                line(session, f"torn {turn}", replace=[0, 0] if amount < 2 else None)[: -1 - amount * 3]
            )
    elif action == "cut" and path.exists():
        os.truncate(path, path.stat().st_size * amount // 6)
    elif action == "rewrite":
        path.write_bytes(b"".join(line(session, f"r{turn} n{n}") for n in range(amount)))
    elif action == "replace":
        with path.open("ab") as file:
            file.write(line(session, f"summary {turn}", replace=[0, 0]))
    elif action == "delete":
        path.unlink(missing_ok=True)
    elif action == "move" and path.exists():
        target = path.parent / f"m{turn}" / path.name
        target.parent.mkdir(exist_ok=True)
        path.rename(target)


def test_a_marked_path_is_looked_at_alone(tmp_path: Path) -> None:
    with toy_store(tmp_path) as toys:
        for n in range(30):
            toys.write(f"{n}.toy", line(f"s{n}", f"text {n}"))
        toys.refresh()
        marks = toys.store.sources.freshness
        marks.watched = True
        assert list(toys.store.sources.refresh()) == [], "healthy and nothing marked: no look at all"
        walks = toys.toy.walks
        toys.append("7.toy", line("s7", "news"))
        marks.mark_paths([str(toys.logs / "7.toy")])
        assert list(toys.store.sources.refresh())
        assert toys.found("news") == {"s7"}
        assert toys.toy.walks == walks
        toys.write("new.toy", line("new", "arrived"))
        (toys.logs / "3.toy").unlink()
        marks.mark_paths([str(toys.logs / "new.toy"), str(toys.logs / "3.toy"), str(toys.logs / "7.toy")])
        list(toys.store.sources.refresh())
        assert toys.toy.walks == walks + 1
        assert toys.found("arrived") == {"new"}
        assert "s3" not in toys.sessions()
        marks.mark_paths(["/somewhere/else"])
        list(toys.store.sources.refresh())
        assert toys.toy.walks == walks + 2, "a path of no root: better look than miss"


def test_a_refresh_that_fails_is_due_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with toy_store(tmp_path) as toys:
        toys.write("one.toy", line("one", "alpha"))
        marks = toys.store.sources.freshness
        marks.watched = True

        def broken(unit: object) -> None:
            raise sqlite.OperationalError("disk I/O error")

        monkeypatch.setattr(toys.store.sources.catalog, "lost_records", broken)
        with pytest.raises(sqlite.OperationalError):
            list(toys.store.sources.refresh())
        monkeypatch.undo()
        assert marks.look_is_due()
        list(toys.store.sources.refresh())
        assert toys.found("alpha") == {"one"}


def test_a_generator_that_is_dropped_puts_its_marks_back(tmp_path: Path) -> None:
    with toy_store(tmp_path) as toys:
        dice = random.Random(1)
        for n in range(20):
            toys.write(f"{n}.toy", line(f"s{n}", str(dice.random())))
        steps = toys.store.sources.refresh()
        next(steps)
        steps.close()  # type: ignore[attr-defined]  # a generator, told as an iterator
        assert toys.store.sources.freshness.look_is_due()
        list(toys.store.sources.refresh())
        assert len(toys.sessions()) == 20


LOGS = [f"{folder}/{n}.toy" for folder in ("a", "b") for n in range(3)]
SHARED = st.tuples(
    st.sampled_from(["append", "append", "rewrite", "delete", "copy", "refresh"]),
    st.sampled_from(LOGS),
    st.lists(st.sampled_from(["s0", "s1"]), min_size=1, max_size=2),
    st.sampled_from([*LOGS, "z/0.toy", "z/1.toy"]),
)


@given(actions=st.lists(SHARED, max_size=14))
@example(
    actions=[
        ("append", "b/2.toy", ["s0"], ""),
        ("refresh", "", [], ""),
        ("append", "b/0.toy", ["s0"], ""),
        ("append", "b/1.toy", ["s0"], ""),
    ]
)
@example(
    actions=[
        ("append", "b/1.toy", ["s0"], ""),
        ("refresh", "", [], ""),
        ("append", "b/2.toy", ["s0"], ""),
        ("rewrite", "b/1.toy", ["s1"], ""),
    ]
)
@settings(max_examples=25, deadline=None)
def test_logs_that_tell_the_same_sessions_end_like_ones_read_afresh(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, str, list[str], str]]
) -> None:
    toys = open_toy_store(tmp_path_factory.mktemp("shared"))
    try:
        for turn, (action, name, sessions, target) in enumerate(actions):
            if action == "refresh":
                toys.refresh()
            else:
                share(toys.logs, action, name, sessions, target, turn)
        toys.refresh()
        assert without_places(everything(toys)) == without_places(told(toys))
        check_catalog(toys)
    finally:
        toys.close()


def share(root: Path, action: str, name: str, sessions: list[str], target: str, turn: int) -> None:
    """One thing that may happen to a log beside others that tell its sessions."""
    path, other = root / name, root / target
    path.parent.mkdir(exist_ok=True)
    other.parent.mkdir(exist_ok=True)
    lines = b"".join(line(id_, f"t{turn}n{n}", at=turn * 100 + n) for n, id_ in enumerate(sessions))
    if action == "append":
        with path.open("ab") as file:
            file.write(lines)
    elif action == "rewrite":
        path.write_bytes(lines)
    elif action == "delete":
        path.unlink(missing_ok=True)
    elif action == "copy" and path.exists() and other != path:
        shutil.copyfile(path, other)


def check_catalog(toys: ToyStore) -> None:
    """Every session of the index has one row in the catalog, and every row has its log."""
    rows = toys.store.connection.execute("SELECT number, unit_id FROM catalog_session").fetchall()
    sids = {sid for (sid,) in toys.store.connection.execute("SELECT sid FROM session").fetchall()}
    assert {number for number, _ in rows if number > 0} == sids
    assert {unit_id for _, unit_id in rows} <= toys.store.sources.catalog.units.keys()
