"""A client somebody else could have written from the wire specification: no import of ours.

Run as ``python foreign_client.py URL TOKEN json|msgpack``; prints what it saw as one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import msgspec
import websockets


class Client:
    def __init__(self, socket: Any, packed: bool) -> None:
        self.socket = socket
        self.packed = packed
        self.parts: dict[int, list[Any]] = {}

    async def send(self, **message: Any) -> None:
        await self.socket.send(msgspec.msgpack.encode(message) if self.packed else json.dumps(message))

    async def receive(self) -> dict[str, Any]:
        while True:
            message = self.decode(await self.socket.recv())
            if message["type"] != "part":
                return message
            pieces = self.parts.setdefault(message["id"], [])
            assert message["n"] == len(pieces)
            pieces.append(message["data"])
            if message["last"]:
                whole = (b"" if self.packed else "").join(self.parts.pop(message["id"]))  # type: ignore[attr-defined]
                return self.decode(whole)

    def decode(self, frame: Any) -> dict[str, Any]:
        assert isinstance(frame, bytes) == self.packed
        value: dict[str, Any] = msgspec.msgpack.decode(frame) if self.packed else json.loads(frame)
        return value

    async def ask(self, **message: Any) -> dict[str, Any]:
        await self.send(**message)
        return await self.receive()


async def visit(url: str, token: str, encoding: str) -> dict[str, Any]:
    subprotocol = websockets.Subprotocol(f"session-query.v1.{encoding}")
    seen: dict[str, Any] = {}
    async with websockets.connect(url, subprotocols=[subprotocol], max_size=None) as socket:
        client = Client(socket, encoding == "msgpack")
        seen["subprotocol"] = socket.subprotocol
        welcome = await client.ask(type="hello", token=token, client={"name": "foreign", "version": "0"})
        seen["welcome"] = (welcome["type"], welcome["protocol"], welcome["role"])
        header = {"version": 0, "id": "foreign", "createdAt": 5, "cwd": "/w"}
        seen["attached"] = await client.ask(type="attach", id=1, session=header)
        event = {"type": "user/message", "time": 1, "data": {"text": "grüße 你好 𝄞"}}
        seen["appended"] = await client.ask(
            type="append", id=2, session_id="foreign", from_seq=0, events=[event]
        )
        seen["again"] = await client.ask(
            type="append", id=3, session_id="foreign", from_seq=0, events=[event]
        )
        seen["tools"] = [tool["name"] for tool in (await client.ask(type="tools", id=4))["tools"]]
        arguments = {"do": "big", "n": 300_000}
        big = await client.ask(type="call", id=5, agent="foreign", tool="read", arguments=arguments)
        seen["big"] = (len(big["text"]), set(big["text"]) == {"é"})
        await client.send(type="call", id=6, agent="foreign", tool="find", arguments={"do": "wait"})
        await client.send(type="cancel", id=6, reason={"by": "foreign"})
        seen["cancelled"] = await client.receive()
        seen["unknown"] = (await client.ask(type="nonsense", id=7))["code"]
        seen["detached"] = await client.ask(type="detach", id=8, session_id="foreign")
        pong = await socket.ping()
        await asyncio.wait_for(pong, 10)
    seen["closed"] = socket.close_code
    return seen


if __name__ == "__main__":
    print(json.dumps(asyncio.run(visit(*sys.argv[1:4]))))
