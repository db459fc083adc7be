"""Watching real folders: changes mark, silence costs nothing, roots may come later."""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from session_query.storage.sources import watch
from session_query.storage.sources.freshness import Freshness
from session_query.storage.sources.spec import SourceSpec


@asynccontextmanager
async def writing(path: Path, *, again: bool) -> AsyncIterator[None]:
    """Write a file. ``again``: and go on writing; on Linux, where it is not used, ``watchfiles`` is told
    nothing of a file that was made before it watched the new folder."""

    async def write_on() -> None:
        while True:
            await trio.sleep(0.2)
            await trio.Path(path).write_text("a")

    await trio.Path(path).write_text("a")
    async with trio.open_nursery() as nursery:
        if again:
            nursery.start_soon(write_on)
        yield
        nursery.cancel_scope.cancel()


class Listener:
    """Waits until marks make something true; never by the clock alone."""

    def __init__(self) -> None:
        self.freshness = Freshness(on_mark=self._marked)
        self._news = trio.Event()

    def _marked(self) -> None:
        self._news.set()

    async def until(self, true: Callable[[], bool]) -> None:
        with trio.fail_after(20):
            while not true():
                await self._news.wait()
                self._news = trio.Event()

    def look(self) -> set[str]:
        """Take what is marked, as a refresh would."""
        marks = self.freshness.take()
        self.freshness.done(self.freshness.clock())
        return {"everything"} if marks.everything else set(marks.paths)


def around(path: Path) -> set[str]:
    """What may be marked when a file changed: itself, a folder it lies in, or everything."""
    return {"everything", str(path), *map(str, path.parents)}


@asynccontextmanager
async def watching(*roots: Path) -> AsyncIterator[Listener]:
    listener = Listener()
    specs = [SourceSpec(format="toy", root=root) for root in roots]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.watch_sources, listener.freshness, specs)
        yield listener
        nursery.cancel_scope.cancel()
    assert not listener.freshness.watched


@pytest.fixture(params=["the kernel's queue", "watchfiles"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "watchfiles":
        monkeypatch.setattr(watch, "open_inotify", lambda: None)
    elif not sys.platform.startswith("linux"):
        pytest.skip("no such queue here")
    return str(request.param)


@pytest.mark.slow
async def test_changes_mark_their_paths(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "root"
    (root / "deep").mkdir(parents=True)
    (root / "deep/old.toy").write_text("a")
    async with watching(root) as listener:
        await listener.until(lambda: listener.freshness.watched)
        assert listener.look() == {"everything"}
        assert not listener.freshness.look_is_due()
        (root / "deep/old.toy").write_text("ab")
        (root / "deep/new.toy").write_text("a")
        seen: set[str] = set()
        await listener.until(lambda: bool(seen.update(listener.look())) or len(seen) >= 2)
        assert {str(root / "deep/old.toy"), str(root / "deep/new.toy")} <= seen
        (root / "later").mkdir()
        await listener.until(lambda: str(root / "later") in listener.look())
        # its folder, if it came before the folder was watched: then the folder is walked
        async with writing(root / "later/x.toy", again=kind == "watchfiles"):
            await listener.until(
                lambda: any(path.startswith(str(root / "later")) for path in listener.look())
            )


@pytest.mark.slow
async def test_a_root_that_comes_later_and_goes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(watch, "LOOK_AT_ROOTS_MS", 100)
    root = tmp_path / "not" / "yet"
    async with watching(root) as listener:
        root.mkdir(parents=True)
        await listener.until(lambda: listener.freshness.watched and root.exists())
        listener.look()
        (root / "x.toy").write_text("a")
        await listener.until(lambda: str(root / "x.toy") in listener.look())
        shutil.rmtree(root)
        await listener.until(lambda: bool(listener.look()))
        root.mkdir()
        (root / "y.toy").write_text("a")
        told: set[str] = set()
        await listener.until(
            lambda: bool(told.update(listener.look())) or bool(told & around(root / "y.toy"))
        )


def test_a_root_behind_closed_folders_is_looked_for_without_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(path: object, *_: object, **__: object) -> object:
        raise PermissionError(13, "closed", str(path))

    monkeypatch.setattr(watch.os, "stat", closed)
    found = watch._look_for([Path("/closed/inner/root")])
    assert [(one.root, one.there) for one in found] == [(Path("/"), False)]


@pytest.mark.slow
async def test_a_single_log_is_watched_through_its_folder(tmp_path: Path, kind: str) -> None:
    log = tmp_path / "log.db"
    log.write_text("a")
    async with watching(log) as listener:
        await listener.until(lambda: listener.freshness.watched)
        listener.look()
        (tmp_path / "other.db").write_text("a")
        (tmp_path / "log.db-wal").write_text("a")
        await listener.until(lambda: str(tmp_path / "log.db-wal") in listener.look())
        (tmp_path / "fresh").write_text("abc")
        (tmp_path / "fresh").replace(log)
        seen: set[str] = set()
        await listener.until(lambda: bool(seen.update(listener.look())) or bool(seen & around(log)))
        assert str(tmp_path / "other.db") not in seen


@pytest.mark.slow
async def test_a_watch_that_fails_falls_back_to_looking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    def broken(*paths: object, **more: object) -> AsyncIterator[object]:
        raise OSError(28, "inotify watch limit reached")

    monkeypatch.setattr(watch, "awatch" if kind == "watchfiles" else "open_inotify", broken)
    async with watching(tmp_path) as listener:
        await listener.until(lambda: "limit" in caplog.text)
        assert not listener.freshness.watched
        listener.look()


async def test_without_a_watch_a_look_is_due_once_a_second() -> None:
    now = 100.0
    freshness = Freshness(clock=lambda: now)
    assert freshness.look_is_due()
    assert freshness.checked_ago_s() == float("inf")
    marks = freshness.take()
    assert marks.everything
    freshness.done(now)
    assert not freshness.look_is_due()
    assert freshness.checked_ago_s() is None
    now = 101.5
    assert freshness.look_is_due()
    assert freshness.checked_ago_s() == 1.5
    assert freshness.take().everything, "nobody told what changed"
    freshness.done(now)
    now = 102.0
    freshness.mark_paths(["/a"])
    assert freshness.look_is_due()
    assert freshness.checked_ago_s() == 0.5


async def test_with_a_watch_only_marks_make_a_look_due() -> None:
    now = 0.0
    freshness = Freshness(clock=lambda: now)
    freshness.watched = True
    freshness.take()
    freshness.done(now)
    now = 10_000.0
    assert not freshness.look_is_due()
    assert freshness.checked_ago_s() is None
    freshness.mark_paths(["/a", "/b"])
    freshness.mark_paths(["/c"])
    marks = freshness.take()
    assert (marks.everything, marks.paths) == (False, frozenset({"/a", "/b", "/c"}))
    assert freshness.checked_ago_s() == 10_000.0, "a look is under way"
    freshness.mark_paths(["/d"])
    freshness.put_back(marks)
    assert freshness.take().paths == {"/a", "/b", "/c", "/d"}
    freshness.done(now)
    freshness.mark_paths(str(n) for n in range(1000))
    assert freshness.take().everything, "too many to look at one by one"
