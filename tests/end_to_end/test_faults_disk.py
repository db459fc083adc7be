"""A disk that is full, a folder that may not be written, an index that is deleted under a running service."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from session_query import Client, open_client
from session_query.actors.clients import ClientPublication, ServerError
from support.limits import OBEY_MODES, files_of_at_most
from support.served import served

pytestmark = pytest.mark.slow
HEADER = {"version": 0, "id": "s", "createdAt": 5, "cwd": "/w"}


def said(text: str, seq: int) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    data = {"id": f"m{seq}", "role": "user", "source": {"kind": "user"}, "content": content}
    return {"type": "user/message", "time": 1_000 + seq, "surfaceOp": "append", "data": data}


async def _finds(client: Client, word: str) -> bool:
    return "1 session found" in (await client.call("session_search", {"query": word}, workspace="/w")).text


def _noise(dice: random.Random) -> str:
    """Words that no compression makes small."""
    return " ".join(dice.randbytes(8).hex() for _ in range(2_000))


async def _refusal(publication: ClientPublication, event: dict[str, Any]) -> str | None:
    """The code with which an append was refused; None if it was stored."""
    try:
        await publication.append([event])
    except ServerError as error:
        return error.code
    return None


async def test_a_full_disk_refuses_appends_and_nothing_else(tmp_path: Path) -> None:
    """No file may grow beyond 2 MB: at some append the journal's log cannot be extended any more."""
    data = tmp_path / "data"
    stored, dice = 0, random.Random(1)
    with served(data, prelude=files_of_at_most(2_000_000)) as service:
        async with open_client(service.url, service.token) as client:
            publication = await client.publish(HEADER)
            code = None
            while code is None and stored < 200:
                code = await _refusal(publication, said(f"word{stored} {_noise(dice)}", stored))
                stored += code is None
            assert code == "SESSION_QUERY_PERSISTENCE_FAILED"
            assert stored > 3
            read = await client.call(
                "session_event_read", {"session_id": "s", "seq": stored - 1}, workspace="/w"
            )
            assert f"word{stored - 1}" in read.text
            assert await _finds(client, "word0"), "what is indexed is found"
            await client.query("statistics")
        assert service.process.poll() is None
    with served(data) as service:
        async with open_client(service.url, service.token) as client:
            publication = await client.publish(HEADER)
            assert publication.next_seq == stored
            await publication.append([said("room again", stored)])
            for word in ("word0", f"word{stored - 1}", "room again"):
                assert await _finds(client, word), word


OPENING = """
import sys, trio
from pathlib import Path
from session_query import ServiceConfig, open_service
from session_query.protocol.errors import QueryError

async def main():
    async with open_service(ServiceConfig(data_dir=Path(sys.argv[1]))):
        print("opened")

try:
    trio.run(main)
except QueryError as error:
    print(error.code.value, error)
"""


def _opened(directory: Path) -> str:
    code = OBEY_MODES + OPENING
    done = subprocess.run(
        [sys.executable, "-c", code, str(directory)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="gives the superuser's powers up as Linux knows them")
def test_a_folder_that_may_not_be_written_is_refused_with_a_code_and_left_as_it_is(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert _opened(data) == "opened"
    before = {path.name: path.read_bytes() for path in data.iterdir()}
    for path in data.iterdir():
        path.chmod(0o400)
    data.chmod(0o500)
    try:
        told = _opened(data)
        assert told.startswith("SESSION_QUERY_"), told
        assert str(data) in told
        assert {path.name: path.read_bytes() for path in data.iterdir()} == before
        told = _opened(data / "below")
        assert told.startswith("SESSION_QUERY_"), told
    finally:
        data.chmod(0o700)
        for path in data.iterdir():
            path.chmod(0o600)
    assert _opened(data) == "opened"


async def test_an_index_deleted_while_it_is_used_is_built_again_at_the_next_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with served(data) as service:
        async with open_client(service.url, service.token) as client:
            publication = await client.publish(HEADER)
            await publication.append([said("before the deletion", 0)])
            assert await _finds(client, "before the deletion")
            for path in data.glob("index.db*"):
                path.unlink()
            await publication.append([said("after the deletion", 1)])
            assert await _finds(client, "before the deletion")
            assert await _finds(client, "after the deletion")
            await publication.close()
    with served(data) as service:
        async with open_client(service.url, service.token) as client:
            for word in ("before the deletion", "after the deletion"):
                assert await _finds(client, word), word
