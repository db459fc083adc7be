"""The tokens as the running edge knows them: read again when the file changes, watched for revocation."""

from __future__ import annotations

import logging
from pathlib import Path

import attrs
import trio

from ...protocol.errors import QueryError
from ...storage.tokens import StoredToken, find_token, read_tokens

logger = logging.getLogger(__name__)

Stamp = tuple[int, int, int] | None


@attrs.define(eq=False)
class TokenBook:
    """Current tokens. Owner: the server.

    A file that becomes unreadable admits nobody new and disconnects nobody: it may be in the middle of a
    repair, and revoking is done by a good file. A file that is gone holds no tokens.
    """

    path: Path | None
    fixed: tuple[StoredToken, ...] = ()
    _read: tuple[StoredToken, ...] = attrs.field(default=(), init=False)
    _stamp: Stamp | str = attrs.field(default="unread", init=False)
    _good: frozenset[tuple[str, str]] = attrs.field(default=frozenset(), init=False)
    _readable: bool = attrs.field(default=True, init=False)

    async def load(self) -> None:
        """Read the file for the first time. Raises: TokenFileError."""
        self._took(*await trio.to_thread.run_sync(self._look))

    async def find(self, token: str) -> StoredToken | None:
        """The good entry of ``token`` as the file stands now, or None (unknown, revoked, unreadable file)."""
        await self.refresh()
        entry = find_token(self.fixed + self._read if self._readable else self.fixed, token)
        return None if entry is None or entry.revoked_at is not None else entry

    async def refresh(self) -> bool:
        """Read the file again if its stat moved. Returns True if the entries may have changed."""
        if self.path is None:
            return False
        before = self._read
        try:
            self._took(*await trio.to_thread.run_sync(self._look))
            self._readable = True
        except (QueryError, OSError) as exc:
            if self._readable:
                logger.warning("the token file cannot be read; nobody new is admitted: %s", exc)
            self._readable = False
        return self._read != before

    def holds(self, admitted: StoredToken) -> bool:
        """True while the entry exists with this secret and is not revoked, by the last look at the file."""
        return (admitted.id, admitted.hash) in self._good

    def _took(self, read: tuple[StoredToken, ...], stamp: Stamp) -> None:
        self._read, self._stamp = read, stamp
        self._good = frozenset(
            (entry.id, entry.hash) for entry in self.fixed + read if entry.revoked_at is None
        )

    def _look(self) -> tuple[tuple[StoredToken, ...], Stamp]:
        if self.path is None:
            return (), None
        stamp = _stamp(self.path)
        if stamp == self._stamp:
            return self._read, stamp
        return read_tokens(self.path), stamp


def _stamp(path: Path) -> Stamp:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_mode


@attrs.define(eq=False)
class Throttle:
    """Failed logins wait before they are answered: longer with each one from the same host.

    Good tokens never wait, so guessing from a shared host (loopback, say) locks nobody out.
    """

    first_s: float
    most_s: float
    failures: int = attrs.field(default=0, init=False)
    _recent: dict[str, tuple[int, float]] = attrs.field(factory=dict, init=False)

    FORGET_S = 60.0
    HOSTS_MAX = 1024

    def failed(self, host: str, now: float) -> float:
        """Count a failure; return how many seconds its answer waits."""
        self.failures += 1
        count, last = self._recent.pop(host, (0, now))
        count = 1 if now - last > self.FORGET_S else count + 1
        self._recent[host] = (count, now)  # moved to the end: the oldest host is the first key
        if len(self._recent) > self.HOSTS_MAX:
            del self._recent[next(iter(self._recent))]
        return float(min(self.most_s, self.first_s * 2 ** min(count - 1, 30)))
