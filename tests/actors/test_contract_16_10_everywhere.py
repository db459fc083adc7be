"""SPEC 16.10: forgetting is final, wherever a session lay: journal, log, kept copy, host's store, spill.

What lies on the disk is compressed, so it does not do to look for words. Every value of both databases is
noted before; of those that forgetting took away, no piece may be left in any file of the data directory.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import attrs
import pytest

from session_query import Caller, Code, ServiceConfig, Signal, Source
from session_query.protocol.envelope import encode_event
from session_query.protocol.event import Event
from session_query.protocol.header import header_to_line
from support.doors import World, open_world, program
from support.events import assistant, text_block, tool_call, user
from support.providers import FakeProvider
from support.sessions import HERE, header, log, prompts, title

MARK = "xylophonequagga"
PIECE_BYTES, EVERY_BYTES = 24, 256
"""Pieces of a value that are looked for: a large one lies in several pages, so not as a whole."""


def secret_log(dice: random.Random) -> list[Event]:
    """A log whose words are its own, short and long, in every place that text is taken from."""
    words = [f"{MARK} w{dice.getrandbits(64):016x}" for _ in range(400)]
    return log(
        user(0, text_block(f"{words[0]} in a prompt")),
        assistant(1, text_block(" ".join(words))),
        tool_call(2, "c1", "grep", f'{{"pattern":"{words[1]}"}}'),
        title(f"{words[2]} in a title"),
        user(4, text_block(f"{words[3]} again")),
    )


@attrs.frozen
class House:
    """A world on a disk, the logs that its reader reads, and a host's store."""

    world: World
    data: Path
    logs: Path
    provider: FakeProvider

    async def refresh(self) -> None:
        house = await self.world.service.house()
        await house.freshness.refresh(full=True, progress=None, signal=Signal())

    async def found(self, query: str = MARK) -> list[str]:
        page = await self.world.door.query("search_sessions", {"query": query, "match": "some"})
        assert page.code is None, page
        return page.ids()


def write_log(logs: Path, events: list[Event]) -> Path:
    folder = logs / "--proj-here--" / "x"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [header_to_line(header("x")), *map(encode_event, events)]
    (folder / "session.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return folder


async def in_the_journal(house: House, events: list[Event]) -> None:
    await house.world.publish("x", events, detach=True)


async def in_a_log(house: House, events: list[Event]) -> None:
    write_log(house.logs, events)
    await house.refresh()


async def in_a_kept_copy(house: House, events: list[Event]) -> None:
    folder = write_log(house.logs, events)
    await house.refresh()
    shutil.rmtree(folder)
    await house.refresh()


async def in_a_hosts_store(house: House, events: list[Event]) -> None:
    house.provider.put(header("x"), events)


async def everywhere(house: House, events: list[Event]) -> None:
    await in_a_hosts_store(house, events)
    await in_a_log(house, events)
    await in_the_journal(house, events)


Put = Callable[[House, list[Event]], Awaitable[None]]
PLACES: dict[str, Put] = {
    put.__name__: put for put in (in_the_journal, in_a_log, in_a_kept_copy, in_a_hosts_store, everywhere)
}


def config(tmp_path: Path) -> ServiceConfig:
    return ServiceConfig(
        data_dir=tmp_path / "data",
        sources=(Source(format="dsh", root=tmp_path / "logs"),),
        watch=False,
        retain=True,
        max_inline_bytes=2_000,
    )


@asynccontextmanager
async def open_house(tmp_path: Path, provider: FakeProvider) -> AsyncIterator[House]:
    async with open_world(config(tmp_path), wire=False) as world:
        world.service.mount("p", provider)
        yield House(world, tmp_path / "data", tmp_path / "logs", provider)


def values(data: Path) -> set[bytes]:
    """Every longer value of every table of both databases."""
    found: set[bytes] = set()
    for path in (data / "index.db", data / "journal.db"):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            connection.text_factory = bytes
            tables = connection.execute(
                "SELECT name FROM sqlite_master WHERE rootpage > 0 AND type = 'table'"
            )
            for (name,) in tables.fetchall():
                for row in connection.execute(f'SELECT * FROM "{name.decode()}"'):
                    found.update(value for value in row if isinstance(value, bytes))
    return {value for value in found if len(value) >= PIECE_BYTES}


def pieces(value: bytes) -> Iterator[bytes]:
    for at in range(0, len(value) - PIECE_BYTES + 1, EVERY_BYTES):
        yield value[at : at + PIECE_BYTES]


def contents(data: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(data.rglob("*")) if path.is_file()}


def assert_gone(data: Path, removed: set[bytes], kept: set[bytes]) -> None:
    """No file holds a piece of what was removed, but where what is kept holds the same piece."""
    files = contents(data)
    for name, content in files.items():
        assert MARK.encode() not in content, name
    for value in removed:
        for piece in pieces(value):
            if any(piece in content for content in files.values()):
                assert any(piece in other for other in kept), (piece, value[:80])


async def spill(house: House) -> None:
    """An agent of the workspace reads and searches; what is too long to show lies in a file."""
    caller = Caller(kind="workspace", workspaces=(HERE,))
    for tool, arguments in (
        ("session_event_read", {"session_id": "x", "seq": 1}),
        ("session_event_read", {"session_id": "x", "seq": 0, "after": 4}),
    ):
        result = await house.world.service.call_tool(tool, arguments, caller, owner="tests")
        assert not result.is_error, result.text
        assert result.spilled is not None


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
async def test_16_10_nothing_of_a_forgotten_session_is_left_and_nothing_comes_back(
    place: str, tmp_path: Path
) -> None:
    provider, secret = FakeProvider("p"), secret_log(random.Random(place))
    (tmp_path / "logs").mkdir()
    async with open_house(tmp_path, provider) as house:
        await house.world.publish("y", prompts("kept words of a neighbour", "more of them"), detach=True)
        await PLACES[place](house, secret)
        assert await house.found() == ["x"]
        await spill(house)
        before = values(house.data)
        assert any(MARK.encode() in content for content in contents(house.data).values())
        await house.world.service.forget(program("operator"), "x", signal=Signal())
        after = values(house.data)
        assert before - after, "something was removed"
        assert_gone(house.data, before - after, after)
        assert await house.found() == []
        await house.refresh()
        provider.put(header("x"), provider.sessions["x"].events) if "x" in provider.sessions else None
        assert await house.found() == []
        gone = await house.world.door.query("read_session", {"session_id": "x"})
        assert gone.code == Code.SESSION_NOT_FOUND.value
        assert (await house.world.door.query("list_sessions")).ids() == ["y"]
        assert await house.found("kept words") == ["y"]
    assert_gone(tmp_path / "data", before - after, after)
    async with open_house(tmp_path, provider) as house:
        await house.refresh()
        assert await house.found() == []
        assert (await house.world.door.query("list_sessions")).ids() == ["y"]
    assert_gone(tmp_path / "data", before - after, after)
