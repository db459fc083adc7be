"""Raw connections for the bench: frames are made beforehand, so that the client costs as little as it can."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, cast

import attrs
import trio_websocket as ws

from ...protocol.json_value import JSON
from ...protocol.wire.limits import SUBPROTOCOL_JSON
from .child import TOKEN

BUFFER_BYTES: Final = 256 * 1024
FRAME_BYTES_MAX: Final = 64 * 1024 * 1024


class Refused(Exception):
    """An error frame where an answer was due."""


@attrs.define(eq=False)
class Line:
    """One authenticated connection, used by one task: a question, its answer, the next question."""

    socket: ws.WebSocketConnection
    _next: int = attrs.field(default=1, init=False)

    async def send(self, message: dict[str, JSON]) -> str:
        """Ask and return the first frame of the answer as it came."""
        await self.socket.send_message(json.dumps(message))
        return cast(str, await self.socket.get_message())

    async def ask(self, kind: str, **fields: JSON) -> dict[str, JSON]:
        """Ask and return the answer decoded. Raises: Refused."""
        number, self._next = self._next, self._next + 1
        answer = _decoded(await self.send({"type": kind, "id": number, **fields}))
        if answer["type"] == "part":
            pieces = [str(answer["data"])]
            while not answer["last"]:
                answer = _decoded(cast(str, await self.socket.get_message()))
                pieces.append(str(answer["data"]))
            answer = _decoded("".join(pieces))
        if answer["type"] == "error":
            raise Refused(f"{answer.get('code')}: {answer.get('message')}")
        return answer

    async def append(self, session_id: str, from_seq: int, events: list[JSON]) -> None:
        """Append and see that all was taken. Raises: Refused."""
        answer = await self.ask("append", session_id=session_id, from_seq=from_seq, events=events)
        if answer["through_seq"] != from_seq + len(events) - 1:
            raise Refused(f"acknowledged to {answer['through_seq']}")

    async def call(self, tool: str, arguments: dict[str, JSON], workspace: str = "/bench") -> str:
        """Run a tool; its text. Raises: Refused."""
        answer = await self.ask("call", tool=tool, arguments=arguments, workspace=workspace)
        return str(answer["text"])


@asynccontextmanager
async def open_line(url: str, *, hello: bool = True) -> AsyncIterator[Line]:
    """A connection for the length of a block; without ``hello`` for a bare echo."""
    protocols = [SUBPROTOCOL_JSON] if hello else None
    async with ws.open_websocket_url(
        url, subprotocols=protocols, receive_buffer_size=BUFFER_BYTES, max_message_size=FRAME_BYTES_MAX
    ) as socket:
        line = Line(socket)
        if hello:
            greeting: dict[str, JSON] = {"type": "hello", "token": TOKEN}
            answer = json.loads(await line.send(greeting | {"client": {"name": "bench", "version": "1"}}))
            if answer["type"] != "welcome":
                raise Refused(str(answer))
        yield line


def _decoded(frame: str) -> dict[str, JSON]:
    return cast("dict[str, JSON]", json.loads(frame))
