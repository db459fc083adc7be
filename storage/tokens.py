"""The token file: who may connect, as what, to which workspaces (SPEC 16.11).

One JSON file of mode 0600. It never holds a token, only its SHA-256: tokens are 256 random bits, so a plain
hash cannot be searched. The operator's own token is the exception: the local command line must be able to
read it, so it stands in a second file of mode 0600 beside it, made at the first start.

All functions block (files, and a lock against other processes while changing); call them in a thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from ..protocol.errors import Code, QueryError
from ..protocol.header import is_absolute
from ..protocol.wire.identity import ROLES, Reach, Role
from .guard import FILE_MODE, create_private_directory
from .lock import DataDirectoryLocked, acquire

TOKEN_FILE: Final = "tokens.json"
OPERATOR_FILE: Final = "operator-token"
TOKEN_PREFIX: Final = "sq_"
FILE_BYTES_MAX: Final = 4 * 1024 * 1024
LOCK_WAIT_S: Final = 2.0
LOCK_RETRY_S: Final = 0.02

Workspaces: TypeAlias = list[str] | Literal["*"]


class TokenFileError(QueryError):
    """The token file cannot be used: unsafe permissions, not ours, or not a token file."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(Code.INVALID_CONFIG, f"{path}: {why}")


class StoredToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One token, without the token itself. ``id`` is public; ``hash`` is SHA-256 in hex.

    ``workspaces``: the listed ones, or ``*`` (operators only). ``no_workspace``: sessions without one, too.
    Times are epoch milliseconds.
    """

    id: str
    name: str
    role: Role
    workspaces: Workspaces
    no_workspace: bool = False
    hash: str
    created_at: int
    revoked_at: int | None = None

    @property
    def reach(self) -> Reach:
        everything = self.workspaces == "*"
        return Reach(
            workspaces=None if everything else frozenset(self.workspaces),
            no_workspace=everything or self.no_workspace,
        )


class _TokenList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: Literal[1] = 1
    tokens: tuple[StoredToken, ...] = ()


def hash_token(token: str) -> str:
    """What the file holds of a token. Any text is accepted; lone surrogates never match anything."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def find_token(tokens: tuple[StoredToken, ...], token: str) -> StoredToken | None:
    """The token's entry, revoked or not. Every entry is compared, in constant time."""
    wanted = hash_token(token)
    found: StoredToken | None = None
    for entry in tokens:
        if hmac.compare_digest(entry.hash, wanted):
            found = entry
    return found


def read_tokens(path: Path) -> tuple[StoredToken, ...]:
    """All entries, revoked ones included. A missing file has none.

    Raises: TokenFileError: a symbolic link, not a regular file, readable by others, owned by somebody
        else, too large, or not a token file.
    """
    content = _read_private(path)
    if content is None:
        return ()
    try:
        return msgspec.json.decode(content, type=_TokenList).tokens
    except (msgspec.MsgspecError, UnicodeError) as exc:
        raise TokenFileError(path, f"not a token file ({exc})") from None


def add_token(
    path: Path, *, role: Role, workspaces: Workspaces, no_workspace: bool = False, name: str = ""
) -> tuple[StoredToken, str]:
    """Make a token; return its entry and the token, which is shown here and never again.

    Raises: TokenFileError as ``read_tokens``; QueryError INVALID_CONFIG for a role that does not exist, ``*``
        for another role than operator, a workspace that is no absolute path, or nothing listed at all.
    """
    _check(role, workspaces, no_workspace=no_workspace)
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    entry = StoredToken(
        id=secrets.token_hex(6),
        name=name,
        role=role,
        workspaces=workspaces if workspaces == "*" else sorted(set(workspaces)),
        no_workspace=no_workspace,
        hash=hash_token(token),
        created_at=_now_ms(),
    )
    _change(path, lambda tokens: (*tokens, entry))
    return entry, token


def revoke_token(path: Path, token_id: str) -> bool:
    """Mark a token as revoked; False if there is no such token that is still good."""
    found = False

    def revoked(entry: StoredToken) -> StoredToken:
        nonlocal found
        if entry.id != token_id or entry.revoked_at is not None:
            return entry
        found = True
        return msgspec.structs.replace(entry, revoked_at=_now_ms())

    _change(path, lambda tokens: tuple(revoked(entry) for entry in tokens))
    return found


def rotate_token(directory: Path, token_id: str) -> tuple[str | None, bool]:
    """Give a good token of ``directory`` a new secret; everything else of it stays.

    Returns: (the new token, or None if there is no such token that is still good; whether it is the local
        operator's, whose file then holds it). Raises: TokenFileError as ``read_tokens``, for either file.
    """
    place, path = directory / OPERATOR_FILE, directory / TOKEN_FILE
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    found = False

    def rotated(entry: StoredToken) -> StoredToken:
        nonlocal found
        if entry.id != token_id or entry.revoked_at is not None:
            return entry
        found = True
        return msgspec.structs.replace(entry, hash=hash_token(token))

    create_private_directory(directory)
    with _locked(place):
        old = read_operator_token(directory)
        local = None if old is None else find_token(read_tokens(path), old)
        _change(path, lambda tokens: tuple(rotated(entry) for entry in tokens))
        is_local = found and local is not None and local.id == token_id
        if is_local:
            _write_private(place, token.encode())
    return (token if found else None), is_local


def ensure_operator_token(directory: Path) -> str:
    """The local operator's token, made if there is none that works. Two starts at once agree on one.

    Raises: TokenFileError as ``read_tokens``, for either file.
    """
    create_private_directory(directory)
    place, token_file = directory / OPERATOR_FILE, directory / TOKEN_FILE
    with _locked(place):
        token = read_operator_token(directory)
        if token is not None:
            entry = find_token(read_tokens(token_file), token)
            if entry is not None and entry.role == "operator" and entry.revoked_at is None:
                return token
        _, token = add_token(token_file, role="operator", workspaces="*", name="local operator")
        _write_private(place, token.encode())
        return token


def read_operator_token(directory: Path) -> str | None:
    """What the operator file says, if it is there. Raises: TokenFileError as ``read_tokens``."""
    content = _read_private(directory / OPERATOR_FILE)
    return None if content is None else content.decode("ascii", "replace").strip()


def _check(role: Role, workspaces: Workspaces, *, no_workspace: bool) -> None:
    if role not in ROLES:
        raise QueryError(Code.INVALID_CONFIG, f"no such role: one of {', '.join(ROLES)}")
    if workspaces == "*":
        if role != "operator":
            raise QueryError(Code.INVALID_CONFIG, "`*` is for operators; list the workspaces")
        return
    if not workspaces and not no_workspace:
        raise QueryError(Code.INVALID_CONFIG, "a token must list a workspace, or be for sessions without one")
    for workspace in workspaces:
        if not is_absolute(workspace):
            raise QueryError(Code.INVALID_CONFIG, f"a workspace is an absolute path: {workspace!r} is none")


def _change(path: Path, change: Callable[[tuple[StoredToken, ...]], tuple[StoredToken, ...]]) -> None:
    create_private_directory(path.parent)
    with _locked(path):
        tokens = change(read_tokens(path))
        _write_private(path, msgspec.json.format(msgspec.json.encode(_TokenList(tokens=tokens)), indent=2))


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other processes (and threads) from changing ``path`` meanwhile."""
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            lock = acquire(path.with_name(f"{path.name}.lock"))
            break
        except DataDirectoryLocked as exc:
            if time.monotonic() > deadline:
                raise TokenFileError(path, "another process keeps it locked") from exc
            time.sleep(LOCK_RETRY_S)
    try:
        yield
    finally:
        lock.release()


def _read_private(path: Path) -> bytes | None:
    """The file's bytes if only its owner can read them. Looked at through one handle: no race to win."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise TokenFileError(path, f"cannot be opened ({exc.strerror})") from None
    try:
        _check_private(path, os.fstat(handle))
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(FILE_BYTES_MAX)
    finally:
        os.close(handle)


def _check_private(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise TokenFileError(path, "not a regular file")
    if os.name == "posix":
        if status.st_uid != os.geteuid():
            raise TokenFileError(path, "belongs to another user")
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise TokenFileError(path, "others may read it; make it private (mode 0600)")
    if status.st_size > FILE_BYTES_MAX:
        raise TokenFileError(path, "too large")


def _write_private(path: Path, content: bytes) -> None:
    """Replace the file as one step: whoever reads sees the old or the new one, also after a crash."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if os.name == "posix":
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
