"""The page for operators is true: its commands exist, its numbers are the code's, its backup works."""

from __future__ import annotations

import configparser
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import trio

from session_query import open_client
from session_query.actors.config import ServiceConfig
from session_query.actors.edge.request_times import RequestTimes
from session_query.actors.edge.server_config import ServerConfig
from session_query.actors.hosts.assembly import INLINE_BYTES
from session_query.actors.hosts.cli.app import app
from session_query.actors.metrics import PREFIX, prometheus_text
from session_query.protocol.limits import DEFAULT_LIMITS
from session_query.protocol.wire.limits import FRAME_VALUES, REQUEST_VALUES
from session_query.storage.spill import SpillRetention
from session_query.storage.tokens import OPERATOR_FILE, TOKEN_FILE
from support.served import served
from support.sessions import prompt_record

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "operations.md").read_text("utf-8")
EDGE = ServerConfig(token_file=Path("tokens.json"))


COMMANDS = "|".join(app.list_commands(click.Context(app)))
USE = re.compile(rf"session-query(?: --data-dir \S+)? ({COMMANDS})\b([^`#\n]*)")


def _check(words: list[str], group: click.Command) -> None:
    """Follow a command's words through the command line; fails on a command or option that is not there."""
    context = click.Context(group)
    while words:
        word = words.pop(0)
        if word.startswith("--"):
            options = [option for option in group.params if word in option.opts]
            assert options, f"{group.name} has no {word}"
            if isinstance(options[0], click.Option) and not options[0].is_flag and words:
                words.pop(0)
        elif isinstance(group, click.Group):
            inner = group.get_command(context, word)
            assert inner is not None, f"no command {word}"
            group = inner


@pytest.mark.parametrize("name", ["operations.md", "session-query.service", "Containerfile"])
def test_every_command_and_option_is_there(name: str) -> None:
    text = (DOCS / name).read_text("utf-8")
    text = re.sub(
        r'\["session-query", (.*?)\]', lambda found: "session-query " + found[1].replace('", "', " "), text
    )
    uses = USE.findall(text.replace('"', ""))
    assert uses
    for command, rest in uses:
        _check([command, *rest.split()], app)


def test_every_option_named_is_one() -> None:
    known = {option for command in _all_commands(app) for one in command.params for option in one.opts}
    assert set(re.findall(r"`(?:[a-z ]*)(--[a-z-]+)", PAGE)) <= known


def _all_commands(group: click.Group) -> Iterator[click.Command]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield command
        if isinstance(command, click.Group):
            yield from _all_commands(command)


def test_the_numbers_are_the_codes() -> None:
    retention, service = SpillRetention(), ServiceConfig()
    for number in (
        f"{EDGE.connections_max:,}",
        f"| {EDGE.unauthenticated_max}, {EDGE.hello_s:.0f} s, 64 KiB each |",
        f"| {EDGE.frame_bytes:,} bytes, {EDGE.frame_containers:,} arrays and objects |",
        f"| {FRAME_VALUES:,} when publishing, else {REQUEST_VALUES:,} |",
        f"| requests running on one connection | {EDGE.in_flight} |",
        f"| searches waiting | {service.max_queued_searches} |",
        f"| {service.search_timeout_ms // 1000} s in the tools;",
        f"a query of {DEFAULT_LIMITS.query_chars_max:,} characters",
        f"| {EDGE.unsent_bytes >> 20} MB | its answers wait; after {EDGE.stall_s:.0f} s",
        f"| one answer | {EDGE.answer_bytes >> 20} MB |",
        f"| {INLINE_BYTES:,} bytes |",
        f"| {EDGE.keepalive_s:.0f} s, then a ping, then {EDGE.keepalive_timeout_s:.0f} s |",
        f"{(retention.max_age_s or 0) / 86_400:.0f} days, {(retention.max_owner_bytes or 0) >> 20} MB",
        f"{(retention.max_total_bytes or 0) >> 30} GB in all",
        f"grows to {EDGE.auth_delay_max_s:.0f} s",
    ):
        assert number in PAGE, number


@pytest.mark.slow
def test_the_metrics_named_are_told(tmp_path: Path) -> None:
    named = set(re.findall(rf"`({PREFIX}\w+)`", PAGE))
    assert len(named) > 5
    everything = prometheus_text(
        {
            "service": {
                "searches": {"queued": 0, "refused": 0},
                "appends_queued": 0,
                "index": {"unread_sessions": 0, "lost_records": 0},
                "sources": {
                    "checked_ago_s": 1.5,
                    "listed": [{"format": "dsh", "path": "/x", "missing": False}],
                },
                "disk_free_bytes": 1,
                "memory": {"resident_bytes": 1},
            },
            "connections": {
                "failed_logins": 0,
                "unauthenticated_dropped": 0,
                "errors": {"INTERNAL": 1},
                "request_times": RequestTimes().told(),
            },
        }
    )
    told = {line.split()[2] for line in everything.splitlines() if line.startswith("# TYPE")}
    assert named == told


def test_the_unit_is_one() -> None:
    unit = configparser.ConfigParser(strict=True, interpolation=None, delimiters=("=",))
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string((DOCS / "session-query.service").read_text("utf-8"))
    assert unit.sections() == ["Unit", "Service", "Install"]
    service = unit["Service"]
    assert service["ExecStart"].split()[1:2] == ["serve"]
    grace_s = float(service["ExecStart"].rsplit("--grace ", 1)[1])
    bounds_s = 2 * EDGE.settle_s + EDGE.close_s
    assert float(service["TimeoutStopSec"]) > grace_s + bounds_s, "or it is killed while it drains"
    assert int(service["LimitNOFILE"]) > 2 * EDGE.connections_max


def test_the_container_file_ends_in_a_service_of_its_own_user() -> None:
    lines = (DOCS / "Containerfile").read_text("utf-8").splitlines()
    words = [line.split()[0] for line in lines if line and not line.startswith(("#", " "))]
    assert words[0] == "FROM"
    assert words.index("USER") < words.index("CMD")
    assert words[-1] == "CMD"


@pytest.mark.slow
async def test_the_documented_backup_can_be_restored(tmp_path: Path) -> None:
    (line,) = re.findall(r"<!-- command: backup -->\n    (.+)\n", PAGE)
    data, copy = tmp_path / "data", tmp_path / "copy"
    copy.mkdir(mode=0o700)
    with served(data) as running:
        async with open_client(running.url, running.token) as client:
            publication = await client.publish({"version": 0, "id": "kept", "createdAt": 1, "cwd": "/w"})
            await publication.append([_prompt("written before the backup")])
            words = shlex.split(line.replace("DATA", str(data)).replace("COPY", str(copy)))
            words[0] = sys.executable
            await trio.run_process(words)
            await publication.append([_prompt("written after it")])
        for name in (TOKEN_FILE, OPERATOR_FILE):
            (copy / name).write_bytes((data / name).read_bytes())
            (copy / name).chmod(0o600)
        token = running.token
    with served(copy) as restored:
        assert restored.token == token
        async with open_client(restored.url, token) as client:
            found = await client.call(
                "session_search", {"query": "written before the backup"}, workspace="/w"
            )
            assert "kept" in found.text
            # A runtime that was ahead of the backup attaches again and repeats what the copy lacks.
            publication = await client.publish({"version": 0, "id": "kept", "createdAt": 1, "cwd": "/w"})
            assert publication.next_seq == 1
            await publication.append([_prompt("written after it")])


def _prompt(text: str) -> dict[str, object]:
    return prompt_record(text, id_=text)


def test_systemd_itself_finds_nothing_wrong() -> None:
    try:
        done = subprocess.run(
            ["systemd-analyze", "verify", "--recursive-errors=no", str(DOCS / "session-query.service")],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    except FileNotFoundError:
        pytest.skip("systemd is not installed; the unit was looked at by its syntax alone")
    complaints = [line for line in done.stderr.splitlines() if "is not executable" not in line]
    assert not [line for line in complaints if "Unknown" in line or "Failed to parse" in line], complaints
