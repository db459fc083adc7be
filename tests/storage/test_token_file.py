"""The token file: private, hashed, atomic; revoked tokens stay revoked."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from session_query.protocol.errors import Code, QueryError
from session_query.protocol.wire.identity import Reach
from session_query.storage import tokens as t

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_missing_file_has_no_tokens(tmp_path: Path) -> None:
    assert t.read_tokens(tmp_path / "tokens.json") == ()


def test_a_token_is_found_again_and_stands_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "data" / "tokens.json"
    entry, token = t.add_token(path, role="runtime", workspaces=["/b", "/a", "/b"], name="ci")
    assert t.read_tokens(path) == (entry,)
    assert t.find_token(t.read_tokens(path), token) == entry
    assert entry.reach == Reach(workspaces=frozenset({"/a", "/b"}))
    for file in path.parent.iterdir():
        assert token.removeprefix("sq_").encode() not in file.read_bytes()


def test_no_other_text_is_a_token(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    entry, token = t.add_token(path, role="reader", workspaces=["/a"])
    tokens = t.read_tokens(path)
    for other in ("", token[:-1], token + " ", token.upper(), entry.hash, entry.id, "\ud800", "é"):
        assert t.find_token(tokens, other) is None


@posix
def test_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        t.ensure_operator_token(tmp_path / "d")
    finally:
        os.umask(before)
    for file in (tmp_path / "d").iterdir():
        assert mode(file) == 0o600, file
    assert mode(tmp_path / "d") == 0o700


@posix
@pytest.mark.parametrize("bits", [0o640, 0o604, 0o622, 0o666])
def test_a_file_others_can_touch_is_refused(tmp_path: Path, bits: int) -> None:
    path = tmp_path / "tokens.json"
    t.add_token(path, role="reader", workspaces=["/a"])
    path.chmod(bits)
    with pytest.raises(t.TokenFileError, match="0600"):
        t.read_tokens(path)


@posix
def test_links_folders_and_pipes_are_refused(tmp_path: Path) -> None:
    t.add_token(tmp_path / "real.json", role="reader", workspaces=["/a"])
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json", 0o600)
    for name in ("link.json", "folder.json", "pipe.json"):
        with pytest.raises(t.TokenFileError):
            t.read_tokens(tmp_path / name)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}x", b"[]", b'{"version":2,"tokens":[]}', b'{"tokens":[{"id":"x"}]}', b"\xff\xfe", b"[" * 5000],
)
def test_anything_else_is_no_token_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tokens.json"
    t.add_token(path, role="reader", workspaces=["/a"])
    path.write_bytes(content)
    with pytest.raises(t.TokenFileError) as caught:
        t.read_tokens(path)
    assert caught.value.code is Code.INVALID_CONFIG
    with pytest.raises(t.TokenFileError):
        t.add_token(path, role="reader", workspaces=["/a"])
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("role", "workspaces", "no_workspace"),
    [
        ("runtime", "*", False),
        ("reader", "*", False),
        ("reader", [], False),
        ("reader", ["relative"], False),
        ("reader", ["/a", ""], True),
        ("king", ["/a"], False),
    ],
)
def test_what_a_token_may_not_be(
    tmp_path: Path, role: object, workspaces: object, no_workspace: bool
) -> None:
    with pytest.raises(QueryError) as caught:
        t.add_token(tmp_path / "t.json", role=role, workspaces=workspaces, no_workspace=no_workspace)  # type: ignore[arg-type]
    assert caught.value.code is Code.INVALID_CONFIG
    assert not (tmp_path / "t.json").exists()


def test_an_operator_reaches_everything_and_others_what_they_list(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    operator, _ = t.add_token(path, role="operator", workspaces="*")
    homeless, _ = t.add_token(path, role="runtime", workspaces=[], no_workspace=True)
    assert operator.reach.holds("/x")
    assert operator.reach.holds(None)
    assert homeless.reach.holds(None)
    assert not homeless.reach.holds("/x")
    listed = Reach(workspaces=frozenset({"/x"}))
    assert listed.holds("/x")
    assert not listed.holds("/x/")
    assert not listed.holds("/X")
    assert not listed.holds(None)


def test_revoking_marks_once_and_keeps_the_entry(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    entry, token = t.add_token(path, role="reader", workspaces=["/a"])
    other, _ = t.add_token(path, role="reader", workspaces=["/b"])
    assert t.revoke_token(path, entry.id)
    assert not t.revoke_token(path, entry.id)
    assert not t.revoke_token(path, "unknown")
    found = t.find_token(t.read_tokens(path), token)
    assert found is not None
    assert found.revoked_at is not None
    assert t.read_tokens(path)[1] == other


def test_the_operator_token_is_made_once_and_again_when_it_stops_working(tmp_path: Path) -> None:
    first = t.ensure_operator_token(tmp_path)
    assert t.ensure_operator_token(tmp_path) == first == t.read_operator_token(tmp_path)
    entry = t.find_token(t.read_tokens(tmp_path / t.TOKEN_FILE), first)
    assert entry is not None
    assert (entry.role, entry.workspaces) == ("operator", "*")
    t.revoke_token(tmp_path / t.TOKEN_FILE, entry.id)
    second = t.ensure_operator_token(tmp_path)
    assert second != first
    (tmp_path / t.TOKEN_FILE).unlink()
    assert t.ensure_operator_token(tmp_path) not in (first, second)


def test_two_starts_at_once_agree_on_one_operator_token(tmp_path: Path) -> None:
    made: list[str] = []
    threads = [
        threading.Thread(target=lambda: made.append(t.ensure_operator_token(tmp_path))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4
    assert len(set(made)) == 1
    assert len(t.read_tokens(tmp_path / t.TOKEN_FILE)) == 1


def test_tokens_added_at_once_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.json"

    def add() -> None:
        for _ in range(5):
            t.add_token(path, role="reader", workspaces=["/a"])

    threads = [threading.Thread(target=add) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({entry.id for entry in t.read_tokens(path)}) == 15


def test_a_failed_write_leaves_the_old_file_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.json"
    t.add_token(path, role="reader", workspaces=["/a"])
    before = path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(t.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        t.add_token(path, role="reader", workspaces=["/b"])
    assert path.read_bytes() == before
    assert {file.name for file in tmp_path.iterdir()} == {"t.json", "t.json.lock"}
