"""One process owns a data directory; a dead one does not."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from session_query.protocol.errors import Code, QueryError
from session_query.storage import lock
from session_query.storage.lock import DataDirectoryLocked, Holder, acquire, find_owner, read_holder

HOLDING = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from session_query.storage.lock import acquire
held = acquire(Path({file!r}))
held.announce("ws://127.0.0.1:1/")
print("held", flush=True)
sys.stdin.read()
"""


def hold_elsewhere(path: Path) -> subprocess.Popen[str]:
    code = HOLDING.format(path=sys.path, file=str(path))
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_taken_once_in_one_process(tmp_path: Path) -> None:
    path = tmp_path / "data" / "lock"
    first = acquire(path)
    assert first.previous is None
    with pytest.raises(DataDirectoryLocked) as caught:
        acquire(path)
    assert caught.value.code is Code.INDEX_FAILED
    assert caught.value.holder is not None
    assert caught.value.holder.pid == os.getpid()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    first.release()
    first.release()
    second = acquire(path)
    assert second.previous is None, "a clean end leaves no name behind"
    second.release()


def test_another_process_is_named_with_its_address(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    process = hold_elsewhere(path)
    try:
        with pytest.raises(DataDirectoryLocked, match="serving at ws://127") as caught:
            acquire(path)
        assert caught.value.holder is not None
        assert caught.value.holder.pid == process.pid
        assert find_owner(path) == caught.value.holder
    finally:
        end(process)


def test_a_killed_owner_holds_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "lock"
    process = hold_elsewhere(path)
    end(process)
    assert read_holder(path) is not None, "its words are still there"
    mine = acquire(path)
    assert mine.previous is not None
    assert mine.previous.pid == process.pid
    assert "did not close" in caplog.text
    mine.release()
    assert find_owner(path) is None


def test_a_look_at_the_owner_turns_nobody_away(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    acquire(path).release()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            find_owner(path)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(50):
            acquire(path).release()
    finally:
        stop.set()
        looking.join()


def test_an_owner_that_has_just_begun_is_named_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_bytes(lock.msgspec.json.encode(Holder(pid=1, host="the dead one before")))
    handle = os.open(path, os.O_RDWR)
    lock._lock_file(handle)  # as an owner that has the lock and has not written yet
    words = lock.msgspec.json.encode(Holder(pid=4711, host="here", url="ws://127.0.0.1:9/"))
    saying = threading.Timer(lock.AGAIN_S / 5, lambda: path.write_bytes(words))
    saying.start()
    try:
        with pytest.raises(DataDirectoryLocked, match="process 4711 on here, serving at ws://127"):
            acquire(path)
    finally:
        saying.join()
        os.close(handle)


@pytest.mark.parametrize("content", [b"", b"\x00" * 9, b'{"pid":', b'{"pid":"x"}', b"[]", b"\xff" * 9000])
def test_odd_content_says_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "lock"
    path.write_bytes(content)
    mine = acquire(path)
    assert mine.previous is None
    held = read_holder(path)
    assert held is not None
    assert held.pid == os.getpid()
    mine.release()


def test_no_owner_where_there_is_no_file(tmp_path: Path) -> None:
    assert find_owner(tmp_path / "none" / "lock") is None
    assert not (tmp_path / "none").exists()


def test_a_path_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(QueryError) as caught:
        acquire(tmp_path / "file" / "lock")
    assert caught.value.code is Code.INDEX_FAILED


def test_without_file_locks_the_process_id_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(handle: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(lock, "_lock_file", unsupported)
    path = tmp_path / "lock"
    mine = acquire(path)
    with pytest.raises(DataDirectoryLocked):
        acquire(path)
    mine.release()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    words = Holder(pid=gone.pid, host=lock.socket.gethostname())
    path.write_bytes(lock.msgspec.json.encode(words))
    again = acquire(path)
    assert again.previous == words
    again.release()


def test_a_lock_that_fails_for_another_reason_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(handle: int) -> None:
        raise OSError(errno.EIO, "disk")

    monkeypatch.setattr(lock, "_lock_file", broken)
    with pytest.raises(QueryError, match="cannot be locked"):
        acquire(tmp_path / "lock")
