"""Starting, ending and coming back: one owner of a data directory, dead owners, runtimes that go on."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trio

from session_query import open_client
from session_query.actors.clients import Backoff
from support.attack import Attacker, Message, attacker, open_peer
from support.kill import ROUNDS
from support.raw_websocket import HANDSHAKE, RawPeer
from support.served import Served, served
from support.sessions import prompt_record

pytestmark = pytest.mark.slow

HEADER = {"version": 0, "id": "s1", "createdAt": 1, "cwd": "/w"}
STARTED_AT_ONCE = 4
END_S = 60.0


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("lived") / "data", "--origin", "https://ok.example") as running:
        yield running


def _event(number: int) -> Message:
    return prompt_record(f"event number {number}", id_=f"m{number}", time=number)


# ---------------------------------------------------------------- one owner


def test_of_services_started_at_once_one_lives_and_the_others_say_who(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    command = [sys.executable, "-m", "session_query.actors.hosts.cli", "--data-dir", str(data_dir), "serve"]
    environ = os.environ | {"SESSION_QUERY_SOURCES": ""}
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ)
        for _ in range(STARTED_AT_ONCE)
    ]
    try:
        refused = [process for process in started if _ends_within(process, END_S, until_left=1, of=started)]
        (winner,) = [process for process in started if process not in refused]
        assert winner.stdout is not None
        ready = json.loads(winner.stdout.readline())
        assert ready["pid"] == winner.pid
        for process in refused:
            out, err = process.communicate()
            assert (process.returncode, out) == (4, "")
            assert f"process {winner.pid} " in err
            assert "SESSION_QUERY_INDEX_FAILED" in err
            assert "Traceback" not in err
    finally:
        for process in started:
            process.kill()
            process.communicate()


def _ends_within(
    process: subprocess.Popen[str], seconds: float, *, until_left: int, of: list[subprocess.Popen[str]]
) -> bool:
    """Whether a process ends while more than ``until_left`` of them still run."""
    while sum(other.poll() is None for other in of) > until_left:
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            seconds -= 0.05
            assert seconds > 0, "more than one service lives"
        else:
            return True
    return process.poll() is not None


def test_a_killed_owner_holds_nothing(tmp_path: Path) -> None:
    with served(tmp_path / "data") as first:
        first.kill()
        killed = first.process.pid
    with served(tmp_path / "data") as second:
        assert f"(process {killed}) did not close it" in second.log.read_text()


# ---------------------------------------------------------------- runtimes that outlive it


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_a_runtime_goes_on_through_kills_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """SIGKILL at random moments of a stream of appends; the client attaches again and goes on at next_seq."""
    data_dir, port = tmp_path / "data", str(_free_port())
    rng = random.Random(13)
    number, acknowledged = 0, -1
    with ExitStack() as services:
        service = services.enter_context(served(data_dir, "--port", port))
        backoff = Backoff(first_s=0.02, most_s=0.1, give_up_after_s=END_S)
        async with open_client(service.url, service.token, backoff=backoff) as client:
            publication = await client.publish(HEADER)
            for _ in range(ROUNDS):
                for _ in range(rng.randint(1, 60)):
                    publication.append_nowait([_event(number)])
                    number += 1
                    if rng.random() < 0.1:
                        await publication.flush()
                        acknowledged = number - 1
                await trio.sleep(rng.random() * 0.02)
                await trio.to_thread.run_sync(service.kill)
                service = services.enter_context(served(data_dir, "--port", port))
                stored = await _stored(service)
                assert stored == list(range(len(stored)))
                assert acknowledged < len(stored) <= number, "before the client came back, at least"
                await publication.flush()
                assert await _stored(service) == list(range(number))
                acknowledged = number - 1


async def _stored(service: Served) -> list[int]:
    """The numbers of the stored events, in order."""
    async with attacker(service.url, service.token) as reader:
        told = await reader.told({"type": "query", "method": "read_session", "params": {"session_id": "s1"}})
    texts = [event["data"]["content"][0]["text"] for event in told["value"]["events"]]
    return [int(text.removeprefix("event number ")) for text in texts]


async def _append(peer: Attacker, from_seq: int, *numbers: int) -> Any:
    events = [_event(number) for number in numbers]
    return await peer.told({"type": "append", "session_id": "s1", "from_seq": from_seq, "events": events})


async def test_resuming_and_repeating(service: Served) -> None:
    attach: Message = {"type": "attach", "session": HEADER}
    async with attacker(service.url, service.token) as first:
        assert (await first.told(attach))["next_seq"] == 0
        assert (await _append(first, 0, 0, 1, 2))["through_seq"] == 2
    async with attacker(service.url, service.token) as second:
        assert (await second.told(attach))["next_seq"] == 3
        assert (await _append(second, 0, 0, 1, 2))["through_seq"] == 2, "repeated whole"
        assert (await _append(second, 1, 1, 2, 3))["through_seq"] == 3, "repeated in part"
        assert (await _append(second, 2, 7))["code"] == "SEQ_CONFLICT"
        assert (await _append(second, 9, 9))["code"] == "SEQ_GAP"
        assert (await _append(second, 4))["through_seq"] == 3, "an empty batch is acknowledged"
        seeded = attach | {"events": [_event(0), _event(1)]}
        assert (await second.told(seeded))["next_seq"] == 4, "a stored prefix is no second seed"
        assert (await second.told(attach | {"events": [_event(5)]}))["code"] == "SEQ_CONFLICT"
        other = HEADER | {"createdAt": 2}
        assert (await second.told({"type": "attach", "session": other}))["code"] == "INVALID_HEADER"
        assert (await _append(second, 4, 4))["through_seq"] == 4, "none of this took the session away"


# ---------------------------------------------------------------- getting in, and the end


async def test_browser_origins_are_refused_but_for_the_listed_one(service: Served) -> None:
    for origin, status in (
        ("https://evil.example", b"403"),
        ("null", b"403"),
        ("https://ok.example", b"101"),
    ):
        async with await open_peer(service.url) as stream:
            request = HANDSHAKE.removesuffix("\r\n") + f"Origin: {origin}\r\n\r\n"
            assert (await RawPeer(stream).handshake(request)).split()[1] == status, origin


async def test_sigterm_says_goodbye_to_everyone_and_waits_for_nobody_idle(tmp_path: Path) -> None:
    with served(tmp_path / "data", "--grace", "3600") as running:
        async with (
            attacker(running.url, running.token) as peer,
            attacker(running.url, running.token) as other,
        ):
            running.process.send_signal(signal.SIGTERM)
            for one in (peer, other):
                goodbye = await one.peer.hear()
                assert (goodbye["type"], goodbye["grace_ms"]) == ("goaway", 3_600_000)
                assert "SIGTERM" in goodbye["reason"]
        # Nobody had anything running, so the grace was not needed at all.
        assert await trio.to_thread.run_sync(running.process.wait, END_S) == 0
        text = running.log.read_text()
    assert "stopping: SIGTERM" in text
    assert " ERROR " not in text
