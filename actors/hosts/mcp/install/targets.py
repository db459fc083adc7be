"""The programs we can be put into: where each keeps its configuration, and what an entry looks like there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from .....protocol.json_value import JSON
from . import jsonc_edit, toml_edit

Environ: TypeAlias = Mapping[str, str]
Place: TypeAlias = Callable[[Environ, Path, str], Path]
"""``place(environ, home, platform)``: the user's own configuration file."""

NAME: Final = "session-query"
"""What the entry is called unless told otherwise."""


@attrs.frozen
class Command:
    """How the server is started."""

    program: str
    arguments: tuple[str, ...]


Shape: TypeAlias = Callable[[Command], dict[str, JSON]]


@attrs.frozen(kw_only=True)
class Target:
    """One program. ``container`` is the key its servers stand under; ``toml`` tells the file's format.

    ``reload``: what makes it take up the change.
    """

    name: str
    title: str
    container: str
    place: Place
    shape: Shape
    reload: str
    toml: bool = False

    def with_entry(self, text: str, name: str, command: Command) -> str:
        """The file with our entry. Raises: EditRefused."""
        entry = self.shape(command)
        if self.toml:
            return toml_edit.set_table(text, self.container, name, _toml_entry(entry))
        return jsonc_edit.set_entry(text, self.container, name, entry)

    def without_entry(self, text: str, name: str) -> str:
        """The file without our entry. Raises: EditRefused."""
        remove = toml_edit.remove_table if self.toml else jsonc_edit.remove_entry
        return remove(text, self.container, name)

    def snippet(self, name: str, command: Command) -> str:
        """The entry for a person to put in by hand."""
        entry = self.shape(command)
        if self.toml:
            return toml_edit.table_text(self.container, name, _toml_entry(entry))
        return jsonc_edit.entry_text(self.container, name, entry)


def _toml_entry(entry: Mapping[str, JSON]) -> dict[str, str | list[str]]:
    return {
        key: [str(item) for item in value] if isinstance(value, list) else str(value)
        for key, value in entry.items()
    }


def _plain(command: Command) -> dict[str, JSON]:
    return {"command": command.program, "args": [*command.arguments]}


def _typed(command: Command) -> dict[str, JSON]:
    return {"type": "stdio", **_plain(command)}


def _with_env(command: Command) -> dict[str, JSON]:
    return {**_typed(command), "env": {}}


def _in_one_list(command: Command) -> dict[str, JSON]:
    return {"type": "local", "command": [command.program, *command.arguments], "enabled": True}


def _claude_code(environ: Environ, home: Path, platform: str) -> Path:
    return _named(environ, "CLAUDE_CONFIG_DIR", home) / ".claude.json"


def _codex(environ: Environ, home: Path, platform: str) -> Path:
    return _named(environ, "CODEX_HOME", home / ".codex") / "config.toml"


def _gemini(environ: Environ, home: Path, platform: str) -> Path:
    return home / ".gemini" / "settings.json"


def _opencode(environ: Environ, home: Path, platform: str) -> Path:
    """Its file with comments if there is that one alone."""
    folder = _named(environ, "XDG_CONFIG_HOME", home / ".config") / "opencode"
    commented = folder / "opencode.jsonc"
    plain = folder / "opencode.json"
    return commented if commented.exists() and not plain.exists() else plain


def _zed(environ: Environ, home: Path, platform: str) -> Path:
    if platform == "win32":
        return _roaming(environ, home) / "Zed" / "settings.json"
    if platform == "darwin":
        return home / ".config" / "zed" / "settings.json"
    return _named(environ, "XDG_CONFIG_HOME", home / ".config") / "zed" / "settings.json"


def _vscode(environ: Environ, home: Path, platform: str) -> Path:
    if platform == "win32":
        root = _roaming(environ, home)
    elif platform == "darwin":
        root = home / "Library" / "Application Support"
    else:
        root = _named(environ, "XDG_CONFIG_HOME", home / ".config")
    return root / "Code" / "User" / "mcp.json"


def _named(environ: Environ, variable: str, default: Path) -> Path:
    value = environ.get(variable)
    return Path(value) if value else default


def _roaming(environ: Environ, home: Path) -> Path:
    return _named(environ, "APPDATA", home / "AppData" / "Roaming")


TARGETS: Final[dict[str, Target]] = {
    target.name: target
    for target in (
        Target(
            name="claude-code",
            title="Claude Code",
            container="mcpServers",
            place=_claude_code,
            shape=_with_env,
            reload="Start a new session; /mcp shows whether it is connected.",
        ),
        Target(
            name="codex",
            title="Codex",
            container="mcp_servers",
            place=_codex,
            shape=_plain,
            reload="Start a new session; /mcp lists its tools.",
            toml=True,
        ),
        Target(
            name="gemini",
            title="Gemini CLI",
            container="mcpServers",
            place=_gemini,
            shape=_plain,
            reload="Start a new session; /mcp lists its tools.",
        ),
        Target(
            name="opencode",
            title="OpenCode",
            container="mcp",
            place=_opencode,
            shape=_in_one_list,
            reload="Start it again.",
        ),
        Target(
            name="zed",
            title="Zed",
            container="context_servers",
            place=_zed,
            shape=_plain,
            reload="Zed takes it up at once; the agent panel's settings show it.",
        ),
        Target(
            name="vscode",
            title="VS Code",
            container="servers",
            place=_vscode,
            shape=_typed,
            reload="Run `MCP: List Servers` and start it.",
        ),
    )
}
"""By name, in the order the command line lists them."""
