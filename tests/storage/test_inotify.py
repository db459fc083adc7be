"""What was written before the queue is read is known: no pause, no wait, no stat."""

from __future__ import annotations

import errno
import os
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from session_query.storage.sources import inotify
from session_query.storage.sources.inotify import Inotify, open_inotify

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no such queue here")


def never() -> bool:
    return False


@pytest.fixture
def queue() -> Iterator[Inotify]:
    opened = open_inotify()
    assert opened is not None
    yield opened
    opened.close()


def test_everything_written_before_is_heard_at_once(tmp_path: Path, queue: Inotify) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    log = tmp_path / "a/b/log"
    log.write_text("one\n")
    queue.watch([tmp_path], [], never)
    assert queue.hear().paths == frozenset()
    for _ in range(100):
        with log.open("a") as file:
            file.write("more\n")
        assert queue.hear().paths == {str(log)}
    log.chmod(0o600)
    assert queue.hear().paths == {str(log)}
    log.rename(tmp_path / "a/other")
    assert queue.hear().paths == {str(log), str(tmp_path / "a/other")}
    (tmp_path / "a/other").unlink()
    assert queue.hear().paths == {str(tmp_path / "a/other")}
    os.listdir(tmp_path)
    assert queue.hear().paths == frozenset(), "reading is no change"


def test_folders_that_appear_move_and_go(tmp_path: Path, queue: Inotify) -> None:
    root, away = tmp_path / "root", tmp_path / "away"
    root.mkdir()
    queue.watch([root], [], never)
    (root / "new/deep").mkdir(parents=True)
    assert str(root / "new") in queue.hear().paths
    (root / "new/deep/x").write_text("a")
    assert queue.hear().paths == {str(root / "new/deep/x")}
    (root / "new").rename(away)
    queue.hear()
    (away / "deep/x").write_text("ab")
    assert queue.hear().paths == frozenset(), "it lies elsewhere now"
    away.rename(root / "back")
    queue.hear()
    (root / "back/deep/x").write_text("abc")
    assert queue.hear().paths == {str(root / "back/deep/x")}
    shutil.rmtree(root / "back")
    queue.hear()
    assert queue.folders == 1


def test_any_change_marks_the_file_or_a_folder_above_it(tmp_path: Path, queue: Inotify) -> None:
    """Random work in a tree: whatever changed is told, or a folder it lies in is."""
    dice = random.Random(5)
    queue.watch([tmp_path], [], never)
    folders = [tmp_path]
    for _ in range(300):
        folder = dice.choice([one for one in folders if one.is_dir()])
        changed = folder / f"f{dice.randrange(4)}"
        match dice.randrange(4):
            case 0:
                changed = folder / f"d{len(folders)}"
                changed.mkdir()
                folders.append(changed)
            case 1 if folder != tmp_path:
                changed = folder.with_name(f"m{len(folders)}")
                folder.rename(changed)
                folders.append(changed)
            case _:
                with changed.open("a") as file:
                    file.write("x")
        heard = queue.hear()
        if not heard.overflow:
            told = set(heard.paths)
            assert told & {str(changed), *map(str, changed.parents)}


def test_a_file_is_told_through_its_folder_and_nothing_else(tmp_path: Path, queue: Inotify) -> None:
    queue.watch([], [tmp_path / "log.db"], never)
    for name in ("log.db", "log.db-wal", "other"):
        (tmp_path / name).write_text("a")
    assert queue.hear().paths == {str(tmp_path / "log.db"), str(tmp_path / "log.db-wal")}
    (tmp_path / "folder").mkdir()
    assert queue.hear().paths == frozenset()
    assert queue.folders == 1


def test_a_large_tree_is_told_until_all_of_it_is_watched(tmp_path: Path, queue: Inotify) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    for number in range(300):
        (outside / f"d{number}").mkdir(parents=True)
    queue.watch([root], [], never)
    outside.rename(root / "moved")
    turns = 0
    while queue.folders < 302:
        turns += 1
        (root / f"moved/d{turns}/x").write_text("a")
        told = queue.hear().paths
        assert told & {str(root / "moved"), str(root / f"moved/d{turns}"), str(root / f"moved/d{turns}/x")}
    assert turns > 1
    assert queue.hear().paths == frozenset()


def test_two_names_of_one_folder_are_both_told(tmp_path: Path, queue: Inotify) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    queue.watch([tmp_path / "real", tmp_path / "link"], [], never)
    (tmp_path / "real/x").write_text("a")
    assert queue.hear().paths == {str(tmp_path / "real/x"), str(tmp_path / "link/x")}


def test_links_are_not_followed_and_names_need_not_be_text(tmp_path: Path, queue: Inotify) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(outside)
    queue.watch([root], [], never)
    (outside / "x").write_text("a")
    assert queue.hear().paths == frozenset()
    name = os.fsdecode(b"caf\xe9")
    (root / name).write_text("a")
    assert queue.hear().paths == {str(root / name)}


def test_more_than_the_queue_holds_says_so(tmp_path: Path, queue: Inotify) -> None:
    queue.watch([tmp_path], [], never)
    holds = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if holds > 40_000:
        pytest.skip("a very long queue")
    one, other = tmp_path / "one", tmp_path / "other"
    one.touch()
    other.touch()
    for _ in range(holds // 2 + 100):
        os.utime(one)
        os.utime(other)
    assert queue.hear().overflow


def test_the_limit_of_watches_is_told(
    tmp_path: Path, queue: Inotify, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def inotify_add_watch(self, *_: object) -> int:
            return -1

    monkeypatch.setattr(inotify, "_libc", Full)
    monkeypatch.setattr(inotify.ctypes, "get_errno", lambda: errno.ENOSPC)
    with pytest.raises(OSError, match="while watching"):
        queue.watch([tmp_path], [], never)


def test_elsewhere_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inotify.sys, "platform", "darwin")
    assert open_inotify() is None
