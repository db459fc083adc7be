"""SIGKILL at random moments: what was acknowledged is there, what was built is not built again.

A few rounds usually; SESSION_QUERY_KILL_ROUNDS=50 for a thorough run.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from session_query import Client, open_client
from session_query.actors.clients import NO_RECONNECT, ClientError
from session_query.storage.doctor import examine
from session_query.storage.journal import PUBLISHED
from session_query.storage.readers.registry import READERS
from session_query.storage.store import StoreSettings, open_store
from support.kill import ROUNDS
from support.served import Served, served

pytestmark = pytest.mark.slow
RUNTIMES = 4


@attrs.define
class Told:
    """What one runtime sent, and how many events of it were acknowledged."""

    session_id: str
    sent: list[str] = attrs.field(factory=list)
    acknowledged: int = 0


def said(word: str, seq: int) -> dict[str, Any]:
    content = [{"type": "text", "text": f"{word} of the harbour"}]
    data = {"id": f"m{seq}", "role": "user", "source": {"kind": "user"}, "content": content}
    return {"type": "user/message", "time": 1_000 + seq, "surfaceOp": "append", "data": data}


async def _publish(client: Client, told: Told, dice: random.Random) -> None:
    """Append batches until the line goes."""
    header = {"version": 0, "id": told.session_id, "createdAt": 5, "cwd": "/w"}
    publication = await client.publish(header)
    assert publication.next_seq >= told.acknowledged, "an acknowledged event is missing"
    del told.sent[publication.next_seq :]  # what was sent and not stored is sent anew, as other words
    while True:
        first = len(told.sent)
        words = [f"w{told.session_id}x{seq}x{dice.getrandbits(32):08x}" for seq in range(first, first + 3)]
        told.sent += words[: dice.randint(1, 3)]
        await publication.append([said(told.sent[seq], seq) for seq in range(first, len(told.sent))])
        told.acknowledged = len(told.sent)


async def _publish_until_killed(service: Served, told: list[Told], dice: random.Random) -> None:
    async def runtime(one: Told) -> None:
        try:
            async with open_client(service.url, service.token, backoff=NO_RECONNECT) as client:
                await _publish(client, one, dice)
        except ClientError:
            return  # the line has gone with the service

    async with trio.open_nursery() as nursery:
        for one in told:
            nursery.start_soon(runtime, one)
        await trio.sleep(0.05 + dice.random() * 0.4)
        service.kill()


async def test_acknowledged_appends_survive_kills_at_random_moments(tmp_path: Path) -> None:
    dice = random.Random(ROUNDS)
    data = tmp_path / "data"
    told = [Told(f"s{number}") for number in range(RUNTIMES)]
    for _ in range(ROUNDS):
        with served(data) as service:
            await _publish_until_killed(service, told, dice)
    with served(data) as service:
        async with open_client(service.url, service.token) as client:
            for one in told:
                if one.acknowledged:
                    word = one.sent[one.acknowledged - 1]
                    found = await client.call("session_search", {"query": word}, workspace="/w")
                    assert one.session_id in found.text
    assert sum(one.acknowledged for one in told) > ROUNDS
    _hold_against_files(data, told)


def _hold_against_files(data: Path, told: list[Told]) -> None:
    store = open_store(StoreSettings(data_dir=data))
    reader = store.open_reader()
    stored = {session.key.id: session for session in reader.journal.sessions(PUBLISHED)}
    for one in told:
        if not one.acknowledged:
            continue
        events = reader.journal.read_events(stored[one.session_id].sid, 0, len(one.sent))
        texts = [json.dumps(event.data) for event in events]
        assert one.acknowledged <= len(texts) <= len(one.sent)
        assert all(word in text for word, text in zip(one.sent, texts, strict=False))
    with reader.index.snapshot():
        examined = examine(reader, READERS, samples=len(stored))
    assert examined.healthy, examined.checks
    reader.close()
    store.close()


def _write_logs(root: Path, count: int, events: int) -> None:
    for number in range(count):
        folder = root / "--w--" / f"log-{number:03d}"
        folder.mkdir(parents=True)
        head = {"type": "session", "version": 0, "id": f"log-{number:03d}", "createdAt": 5, "cwd": "/w"}
        rows = [head] + [{"seq": seq, **said(f"n{number}x{seq}", seq)} for seq in range(events)]
        (folder / "session.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


async def _sessions(client: Client) -> int:
    """How many sessions can be searched now."""
    value = await client.query("search_sessions", {"query": "harbour", "limit": 1})
    assert isinstance(value, dict)
    receipt = value["receipt"]
    assert isinstance(receipt, dict)
    count = receipt["sessions_in_reach"]
    assert isinstance(count, int)
    return count


async def test_a_build_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """Killed as soon as some sessions more can be searched; every start has at least what was seen."""
    dice = random.Random(ROUNDS)
    logs, data, count = tmp_path / "logs", tmp_path / "data", 400
    _write_logs(logs, count, 60)
    seen = 0
    for _ in range(ROUNDS):
        with served(data, sources=[f"dsh={logs}"]) as service:
            async with open_client(service.url, service.token, backoff=NO_RECONNECT) as client:
                found = await _sessions(client)
                assert found >= seen, "what was built is built again"
                while found < count and found < seen + dice.randint(1, count // 4):
                    found = await _sessions(client)
                seen = found
                service.kill()
    with served(data, sources=[f"dsh={logs}"]) as service:
        async with open_client(service.url, service.token) as client:
            assert await _sessions(client) >= seen
            await client.query("index")
            assert await _sessions(client) == count
            found = await client.call("session_search", {"query": f"n{count - 1}x59"}, workspace="/w")
            assert f"log-{count - 1:03d}" in found.text
