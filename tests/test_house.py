"""The house: arrows between rooms, the installed packages, the public door, what the tree may name."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import session_query

ROOT = Path(__file__).parent.parent
ROOMS = ("protocol", "storage", "actors")
ALLOWED = {"protocol": {"protocol"}, "storage": {"protocol", "storage"}, "actors": set(ROOMS)}
PURE_FORBIDDEN = {
    "trio",
    "socket",
    "sqlite3",
    "pysqlite3",
    "asyncio",
    "time",
    "os",
    "subprocess",
    "threading",
}
EDGE = ROOT / "actors" / "edge"
EDGE_USERS = {ROOT / "actors" / "serve.py"}
SOURCES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def _imports(path: Path) -> list[tuple[str, ...]]:
    """Every imported module as parts; relative ones resolved inside the package."""
    package = path.relative_to(ROOT).parent.parts
    found: list[tuple[str, ...]] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found += [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                base = package[: len(package) - node.level + 1]
                found.append(("session_query", *base, *module))
            else:
                found.append(module)
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows_point_one_way(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    for module in _imports(path):
        if module[0] == "session_query" and len(module) > 1:
            assert module[1] in ALLOWED[room], f"{room} imports {'.'.join(module)}"
        if room == "protocol":
            assert module[0] not in PURE_FORBIDDEN, f"protocol imports {module[0]}"
        if room == "storage":
            assert module[0] not in {"trio_websocket", "wsproto", "websockets"}
        in_hosts = path.relative_to(ROOT).parts[:2] == ("actors", "hosts")
        assert in_hosts or module[1:3] != ("actors", "hosts"), "nothing imports a host"
        may_serve = in_hosts or path in EDGE_USERS or EDGE in path.parents
        assert may_serve or module[1:3] != ("actors", "edge"), "what is served does not know the edge"


def test_the_package_list_is_complete() -> None:
    listed = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"]
    )
    rooms = (*ROOMS, "bench")  # bench is installed as well: operators load-test what they deploy
    on_disk = {
        ".".join(("session_query", *path.parent.relative_to(ROOT).parts))
        for room in rooms
        for path in (ROOT / room).rglob("__init__.py")
    }
    assert on_disk | {"session_query"} == listed


def test_the_public_door_is_the_written_list() -> None:
    assert sorted(session_query.__all__) == [
        "Aborted",
        "AsyncioClient",
        "Busy",
        "Caller",
        "Client",
        "Code",
        "CorruptLog",
        "Event",
        "EventSearchRequest",
        "Inspected",
        "LiveHandle",
        "PersistenceProvider",
        "QueryError",
        "ServerConfig",
        "Service",
        "ServiceConfig",
        "Serving",
        "SessionHeader",
        "SessionSearchRequest",
        "SessionSnapshot",
        "Signal",
        "Source",
        "ToolError",
        "ToolResult",
        "WireCode",
        "WireError",
        "open_client",
        "open_edge",
        "open_service",
        "serve",
    ]
    for name in session_query.__all__:
        if name != "AsyncioClient":  # needs its extra
            assert getattr(session_query, name) is not None
    with pytest.raises(AttributeError):
        session_query.nothing_of_the_kind  # noqa: B018


def test_importing_the_door_loads_no_database() -> None:
    code = "import sys, session_query; print([m for m in sys.modules if 'sqlite' in m or m == 'trio'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_loads_no_database() -> None:
    code = (
        "import sys; from session_query.actors.hosts.cli.app import app\n"
        "try: app.main(['--help'])\n"
        "except SystemExit: print([m for m in sys.modules if 'sqlite' in m or m in ('trio', 'rich')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")


UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b|raise NotImplementedError")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_left_unfinished(path: Path) -> None:
    assert not UNFINISHED.search(path.read_text("utf-8"))
