"""Who asks: the calling agent's session when the host says it, else a workspace (SPEC 16.11).

Nothing a model writes has a part in it: the command line and the environment decide, then the folder the
host started this process in. Some hosts start their servers in no project's folder; only then are the
roots asked for that older clients declare.
"""

from __future__ import annotations

import os
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from ....protocol.header import is_absolute

AGENT_VARIABLE: Final = "SESSION_QUERY_AGENT"
WORKSPACE_VARIABLE: Final = "SESSION_QUERY_WORKSPACE"
NO_WORKSPACE: Final = (
    "this server does not know the project's folder. Start it there, or with --workspace DIR"
)

Roots: TypeAlias = Callable[[], Awaitable[Sequence[str]]]
"""The URIs of the client's roots; empty when it declares none."""


class NoWorkspace(Exception):
    """Neither the command line nor the process nor the client names a folder."""


@attrs.frozen(kw_only=True)
class WireCaller:
    """The caller as a ``call`` names it: one of the two."""

    agent: str | None = None
    workspace: str | None = None


@attrs.define(eq=False)
class CallerSource:
    """The same caller for every call of one connection.

    ``folder``: the process's working directory, None if it has none (any more).
    """

    agent: str | None
    workspace: str | None
    folder: str | None
    home: str
    _found: WireCaller | None = attrs.field(default=None, init=False)

    async def caller(self, roots: Roots) -> WireCaller:
        """The caller, decided once. Raises: NoWorkspace."""
        if self._found is None:
            self._found = await self._decide(roots)
        return self._found

    async def _decide(self, roots: Roots) -> WireCaller:
        if self.agent is not None:
            return WireCaller(agent=self.agent)
        if self.workspace is not None:
            return WireCaller(workspace=self.workspace)
        if self.folder is not None and not _says_nothing(self.folder, self.home):
            return WireCaller(workspace=self.folder)
        for uri in await roots():
            path = path_of_root(uri)
            if path is not None:
                return WireCaller(workspace=path)
        if self.folder is not None and self.folder == self.home:
            return WireCaller(workspace=self.folder)
        raise NoWorkspace(NO_WORKSPACE)


def find_caller(agent: str | None, workspace: str | None) -> CallerSource:
    """From the command line's options, else the environment, and this process's folder."""
    agent = agent or os.environ.get(AGENT_VARIABLE) or None
    workspace = workspace or os.environ.get(WORKSPACE_VARIABLE) or None
    if workspace is not None:
        # Not resolved: a log holds the folder as its program saw it, and links are seen by name.
        workspace = os.path.abspath(os.path.expanduser(workspace))
    try:
        folder = os.getcwd()
    except OSError:
        folder = None
    return CallerSource(agent, workspace, folder, str(Path.home()))


def path_of_root(uri: str) -> str | None:
    """The folder a root names, None if it is no local one."""
    parts = urllib.parse.urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = urllib.request.url2pathname(parts.path)
    return path.rstrip("/") or "/" if is_absolute(path) else None


def _says_nothing(folder: str, home: str) -> bool:
    """A folder in which hosts start servers for want of a better one: a root, the home, a system folder."""
    path = Path(folder)
    return path.parent == path or folder == home or path.name.lower() == "system32"
