"""Peers that are killed, stopped, huge, chatty, deaf or many, on real sockets to a real process.

Each costs itself its connection. Whoever else is connected is answered before, meanwhile and after. Nothing
here is judged by a clock: what must happen is waited for, for as long as the machine takes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from session_query import open_client
from session_query.actors.edge.server_config import ServerConfig
from support.attack import Attacker, Message, attacker, open_peer
from support.raw_websocket import PING, PONG, TEXT, RawPeer, frame
from support.served import Served, served

pytestmark = pytest.mark.slow
WAIT_S = 120.0
"""What is waited for comes in a second or two; this ends a test that would never end."""
HASTY = """
import functools
from session_query.actors.edge import server_config as s
s.ServerConfig = functools.partial(
    s.ServerConfig, keepalive_s=0.2, keepalive_timeout_s=4.0, stall_s=1.0, watch_s=0.1
)
"""
"""For a service that gives up on silent and deaf peers within seconds instead of minutes."""
PEER = """
import sys
sys.path[:0] = {path!r}
import trio
from support.attack import attacker
from support.raw_websocket import TEXT, frame

async def main():
    async with attacker({url!r}, {token!r}) as one:
        await one.told({attach!r})
        await one.told({append!r})
        await one.peer.stream.send_all({rest!r})
        print("here", flush=True)
        await trio.sleep_forever()

trio.run(main)
"""
"""A client as a process of its own: attaches, appends, says something more, and stays."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("peers") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("hasty") / "data", prelude=HASTY) as running:
        yield running


def said(text: str, number: int = 0) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    data = {"id": f"m{number}", "role": "user", "source": {"kind": "user"}, "content": content}
    return {"type": "user/message", "time": 1 + number, "surfaceOp": "append", "data": data}


def attaching(session_id: str) -> Message:
    return {"type": "attach", "session": {"version": 0, "id": session_id, "createdAt": 5, "cwd": "/w"}}


def appending(session_id: str, from_seq: int, *events: dict[str, Any]) -> Message:
    return {"type": "append", "session_id": session_id, "from_seq": from_seq, "events": list(events)}


async def connections(service: Served) -> Any:
    async with attacker(service.url, service.token) as operator:
        told = await operator.told({"type": "query", "method": "statistics"})
    return told["value"]["connections"]


async def until(service: Served, holds: Callable[[Any], bool]) -> None:
    """Wait until the statistics of the connections are as they should be. Others are answered meanwhile."""
    with trio.fail_after(WAIT_S):
        while not holds(await connections(service)):  # noqa: ASYNC110 - another process counts
            await trio.sleep(0.05)


def ended(reason: str, times: int) -> Callable[[Any], bool]:
    return lambda told: told["ends"].get(reason, 0) >= times


@asynccontextmanager
async def client_process(
    service: Served, session_id: str, rest: bytes = b""
) -> AsyncIterator[subprocess.Popen[str]]:
    """A client that has attached a session and had an append acknowledged."""
    code = PEER.format(
        path=sys.path,
        url=service.url,
        token=service.token,
        attach=attaching(session_id),
        append=appending(session_id, 0, said("acknowledged")),
        rest=rest,
    )
    process = await trio.to_thread.run_sync(_started, [sys.executable, "-c", code])
    try:
        assert process.stdout is not None
        assert (await trio.to_thread.run_sync(process.stdout.readline)) == "here\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def _started(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def session(service: Served, session_id: str) -> tuple[bool, int]:
    """(whether it is live, how many events it has)."""
    async with attacker(service.url, service.token) as reader:
        params: Message = {"filters": [{"kind": "id", "values": [session_id]}]}
        listed = await reader.told({"type": "query", "method": "filter_sessions", "params": params})
        (row,) = listed["value"]["sessions"]
        read: Message = {"session_id": session_id}
        log = await reader.told({"type": "query", "method": "list_events", "params": read})
    return row["live"], len(log["value"]["events"])


async def test_a_client_killed_in_the_middle_of_a_frame_loses_that_frame_alone(service: Served) -> None:
    before = (await connections(service))["ends"].get("lost", 0)
    whole = frame(TEXT, json.dumps(appending("killed", 1, said("never said whole", 1)) | {"id": 9}).encode())
    async with client_process(service, "killed", whole[: len(whole) // 2]) as process:
        assert await session(service, "killed") == (True, 1)
        process.kill()
        await until(service, ended("lost", before + 1))
    assert await session(service, "killed") == (False, 1)
    async with attacker(service.url, service.token) as again:
        assert (await again.told(attaching("killed")))["next_seq"] == 1
        assert (await again.told(appending("killed", 1, said("said again", 1))))["through_seq"] == 1


async def test_a_client_that_neither_speaks_nor_ends_is_given_up(hasty: Served) -> None:
    """Half open: the process is stopped, its machine acknowledges bytes, and no pong ever comes."""
    before = (await connections(hasty))["ends"].get("keepalive timeout", 0)
    async with client_process(hasty, "stopped") as process:
        os.kill(process.pid, signal.SIGSTOP)
        await until(hasty, ended("keepalive timeout", before + 1))
        assert await session(hasty, "stopped") == (False, 1)


async def test_a_frame_of_a_hundred_megabytes_is_not_taken_in(service: Served) -> None:
    size = 100 * 2**20
    async with attacker(service.url, service.token) as other, attacker(service.url, service.token) as peer:
        told = await other.told({"type": "query", "method": "statistics"})
        before = told["value"]["service"]["memory"]["resident_bytes"]
        await peer.peer.stream.send_all(bytes([0x81, 0x80 | 127]) + size.to_bytes(8, "big") + b"\0\0\0\0")
        with trio.fail_after(WAIT_S):
            try:
                for _ in range(size // 2**16):
                    await peer.peer.stream.send_all(b"x" * 2**16)
            except trio.BrokenResourceError:
                pass  # it has stopped listening, as it should
            code, _ = await peer.peer.end()
        assert code in (1009, 0), "the close frame may be lost behind bytes that nobody reads"
        told = await other.told({"type": "query", "method": "statistics"})
        assert told["value"]["service"]["memory"]["resident_bytes"] < before + size // 2
    await until(service, ended("frame too large", 1))


async def test_ten_thousand_pings_are_answered_and_nobody_waits(service: Served) -> None:
    count, pongs = 10_000, 0
    async with attacker(service.url, service.token) as other, attacker(service.url, service.token) as peer:

        async def ping() -> None:
            pings = b"".join(frame(PING, number.to_bytes(4, "big")) for number in range(count))
            await peer.peer.stream.send_all(pings)

        with trio.fail_after(WAIT_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ping)
                while pongs < count:
                    opcode, payload = await peer.peer.next_frame()
                    assert (opcode, payload) == (PONG, pongs.to_bytes(4, "big"))
                    pongs += 1
                    if pongs % 1_000 == 0:
                        assert (await other.told({"type": "query", "method": "health"}))["type"] == "value"
        assert (await peer.told({"type": "tools"}))["type"] == "tools"


async def _ask_without_reading(peer: Attacker, session_id: str, times: int) -> None:
    """Publish a large session and ask for it again and again."""
    await peer.told(attaching(session_id))
    for number in range(8):
        assert "code" not in await peer.told(appending(session_id, number, said("x" * 1_000_000, number)))
    for number in range(times):
        ask = {
            "type": "query",
            "id": 100 + number,
            "method": "read_session",
            "params": {"session_id": session_id},
        }
        await peer.peer.stream.send_all(frame(TEXT, json.dumps(ask).encode()))


async def test_a_peer_that_does_not_read_is_cut_off_and_nobody_waits(hasty: Served) -> None:
    before = (await connections(hasty))["ends"].get("slow reader", 0)
    async with attacker(hasty.url, hasty.token) as deaf:
        await _ask_without_reading(deaf, "deaf", 20)
        await until(hasty, ended("slow reader", before + 1))
    assert await session(hasty, "deaf") == (False, 8)


async def test_a_stop_does_not_wait_for_a_peer_that_does_not_read(tmp_path: Path) -> None:
    """What is being sent is given up in the middle: unknown bytes are on the wire, and the line just ends."""
    with served(tmp_path / "data", "--grace", "0.2") as running:
        async with attacker(running.url, running.token) as deaf:
            await _ask_without_reading(deaf, "deaf", 20)
            status = await trio.to_thread.run_sync(running.terminate)
    assert status == 0
    assert " ERROR " not in running.log.read_text()
    assert "Traceback" not in running.log.read_text()


async def test_a_client_that_gives_up_sending_sends_everything_once(service: Served) -> None:
    """Appends are cancelled at any moment, in the middle of a frame included; the publication goes on."""
    number = 0
    async with open_client(service.url, service.token) as client:
        publication = await client.publish(attaching("hesitant")["session"])
        for round_number in range(12):
            with trio.move_on_after(0.001 * round_number):
                for _ in range(3):
                    event = said(f"number {number} " + "x" * 500_000, number)
                    number += 1
                    await publication.append([event])
        await publication.flush()
        value: Any = await client.query("read_session", {"session_id": "hesitant"})
    texts = [event["data"]["content"][0]["text"].split()[1] for event in value["events"]]
    assert texts == sorted(set(texts), key=int), "nothing is doubled, and the order is kept"
    assert number - len(texts) <= 12, "what is missing was given up before it was taken"


async def test_idle_peers_at_the_door_keep_no_client_out(service: Served) -> None:
    """More peers than the door has places for connect, shake hands, and say nothing."""
    places = ServerConfig(token_file=Path("t")).unauthenticated_max
    before = (await connections(service))["unauthenticated_dropped"]
    with ExitStack() as lines:
        peers = [RawPeer(await open_peer(service.url)) for _ in range(places + 20)]
        for peer in peers:
            assert isinstance(peer.stream, trio.SocketStream)
            lines.callback(peer.stream.socket.close)
        for peer in peers[20:]:
            await peer.stream.send_all(b"GET / HTTP/1.1\r\n")
        async with open_client(service.url, service.token) as client:
            await client.query("health")
        told = await connections(service)
        assert told["unauthenticated_dropped"] > before
        assert told["unauthenticated"] <= places
        assert await peers[0].end() == (0, ""), "the oldest is gone"


HANGING = """
import time
from session_query.storage.index.reader import Reader
usual = Reader.search_sessions

def search_sessions(self, spec, reach):
    if spec.query == "hang":
        print("hangs", flush=True)
        time.sleep(3600)
    return usual(self, spec, reach)

Reader.search_sessions = search_sessions
"""


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_stops_at_once_whatever_hangs(tmp_path: Path, second: signal.Signals) -> None:
    """The first one waits for what runs, an hour if told so; what runs does not notice that it is aborted."""
    with served(tmp_path / "data", "--grace", "3600", prelude=HANGING) as running:
        async with attacker(running.url, running.token) as peer:
            await peer.told(attaching("kept"))
            assert (await peer.told(appending("kept", 0, said("acknowledged"))))["through_seq"] == 0
            ask = {"type": "query", "id": 8, "method": "search_sessions", "params": {"query": "hang"}}
            await peer.peer.say(ask)
            assert running.process.stdout is not None
            assert await trio.to_thread.run_sync(running.process.stdout.readline) == "hangs\n"
            running.process.send_signal(signal.SIGTERM)
            assert (await peer.peer.hear())["type"] == "goaway"
            assert running.process.poll() is None
            running.process.send_signal(second)
            with trio.fail_after(WAIT_S):
                status = await trio.to_thread.run_sync(running.process.wait)
            assert status == -second
            assert await peer.peer.end() == (0, "")
        assert "Traceback" not in running.log.read_text()
    with served(tmp_path / "data") as after:
        assert await session(after, "kept") == (False, 1)
