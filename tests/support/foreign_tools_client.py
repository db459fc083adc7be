"""A foreign client (websockets, asyncio, no import of ours) that goes through all five tools.

Run as ``python foreign_tools_client.py URL TOKEN json|msgpack``; prints what it saw as one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import websockets
from foreign_client import Client

PROMPT = "Why does the 结账 checkout of LargeCart time out? 𝄞 don't panic"


def _event(text: str, seq: int) -> dict[str, Any]:
    return {
        "type": "user/message",
        "seq": seq,
        "time": 1_700_000_000_000 + seq,
        "surfaceOp": "append",
        "data": {
            "id": f"m{seq}",
            "role": "user",
            "source": {"kind": "user"},
            "content": [{"type": "text", "text": text}],
        },
    }


async def visit(url: str, token: str, encoding: str) -> dict[str, Any]:
    subprotocol = websockets.Subprotocol(f"session-query.v1.{encoding}")
    seen: dict[str, Any] = {}
    async with websockets.connect(url, subprotocols=[subprotocol], max_size=None) as socket:
        client = Client(socket, encoding == "msgpack")
        welcome = await client.ask(type="hello", token=token, client={"name": "f", "version": "0"})
        seen["welcome"], seen["server"] = welcome["type"], welcome["server"]
        header = {"version": 0, "id": f"asker-{encoding}", "createdAt": 5, "cwd": "/w"}
        seen["attached"] = (await client.ask(type="attach", id=1, session=header))["next_seq"]
        header = {"version": 0, "id": f"teller-{encoding}", "createdAt": 4, "cwd": "/w"}
        events = [_event(PROMPT, 0), _event("unrelated words", 1)]
        seen["seeded"] = (await client.ask(type="attach", id=2, session=header, events=events))["next_seq"]
        told = await client.ask(
            type="append", id=3, session_id=f"teller-{encoding}", from_seq=3, events=[_event("more of it", 3)]
        )
        seen["through"] = told["through_seq"]
        seen["tools"] = [tool["name"] for tool in (await client.ask(type="tools", id=4))["tools"]]

        async def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
            return await client.ask(
                type="call", id=number, agent=f"asker-{encoding}", tool=tool, arguments=arguments
            )

        target = f"teller-{encoding}"
        seen["search"] = await call(5, "session_search", query="checkout of LargeCart")
        seen["chinese"] = await call(6, "session_search", query="结账")
        seen["events"] = await call(7, "session_event_search", session_id=target, query="don't panic")
        seen["trace"] = await call(8, "session_trace", session_id=target)
        seen["event_trace"] = await call(9, "session_event_trace", session_id=target, seq=0)
        seen["read"] = await call(10, "session_event_read", session_id=target, seq=0, after=1)
        seen["own"] = await call(11, "session_trace")
        seen["unknown_tool"] = (await call(12, "session_delete"))["code"]
        seen["wrong_arguments"] = (await call(13, "session_search", query=7))["code"]
        seen["unauthorised"] = (await call(14, "session_trace", session_id="somebody-else"))["code"]
        seen["page"] = await client.ask(
            type="query", id=15, method="search_sessions", params={"query": "checkout", "limit": 1}
        )
    return seen


if __name__ == "__main__":
    print(json.dumps(asyncio.run(visit(*sys.argv[1:4]))))
