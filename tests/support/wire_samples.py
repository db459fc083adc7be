"""One well-formed sample of every wire message, and a seeded source of hostile frames."""

from __future__ import annotations

import random
from typing import Any

from session_query.protocol.wire import messages as m

SOFTWARE = m.Software(name="tests", version="1")
LIMITS = m.Limits(frame_bytes=1, frame_containers=6, part_bytes=2, fetch_bytes=3, in_flight=4, keepalive_ms=5)
HEADER = {"version": 0, "id": "s1", "createdAt": 1, "cwd": "/w"}
EVENT = {
    "type": "user/message",
    "seq": 0,
    "time": 1,
    "data": {"content": [{"type": "text", "text": "héllo 你好"}]},
}

CLIENT_SAMPLES: dict[type[m.Message], m.Message] = {
    m.Hello: m.Hello(client=SOFTWARE, token="t"),
    m.Attach: m.Attach(id=1, session=HEADER, events=[EVENT]),
    m.Append: m.Append(id=2, session_id="s1", from_seq=0, events=[EVENT]),
    m.Detach: m.Detach(id=3, session_id="s1"),
    m.ToolsRequest: m.ToolsRequest(id=4),
    m.Call: m.Call(
        id=5, tool="session_search", arguments={"query": "x"}, agent="s1", deadline_ms=5, follow=True
    ),
    m.Query: m.Query(id=6, method="list_sessions", params={}, reach=["/w"]),
    m.Cancel: m.Cancel(id=7, reason={"why": ["user", None]}),
    m.Fetch: m.Fetch(id=8, locator="loc", offset_bytes=3, limit_bytes=4),
}

SERVER_SAMPLES: dict[type[m.Message], m.Message] = {
    m.Welcome: m.Welcome(
        protocol=1, server=SOFTWARE, instance="i", role="reader", limits=LIMITS, features=["follow"]
    ),
    m.Attached: m.Attached(id=1, session_id="s1", next_seq=2),
    m.Appended: m.Appended(id=2, through_seq=-1),
    m.Detached: m.Detached(id=3),
    m.Tools: m.Tools(
        id=4,
        tools=[
            m.ToolDescription(
                name="t", description="d", parameters={"type": "object"}, concurrency="parallel"
            )
        ],
        prompt="p",
    ),
    m.Result: m.Result(id=5, text="text", card={"kind": "read"}, receipt={"sessions_in_reach": 1}),
    m.Value: m.Value(id=6, value=[1, {"a": None}]),
    m.Chunk: m.Chunk(id=8, offset_bytes=0, next_offset=4, total_bytes=9, last=False, data="abcd"),
    m.Progress: m.Progress(id=5, done=1, unit="bytes", total=2),
    m.Part: m.Part(id=5, n=0, last=True, data="{}"),
    m.Goaway: m.Goaway(reason="stop", grace_ms=1000),
    m.Error: m.Error(
        id=5,
        code="SESSION_QUERY_ABORTED",
        message="m",
        abort=m.Abort(kind="cancelled", reason=[1]),
        retry_after_ms=5,
    ),
}


def mutilated(frame: bytes, rng: random.Random) -> bytes:
    """The frame with a few bytes changed, removed, doubled or put in at random places."""
    data = bytearray(frame)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(4):
            case 0:
                data[at:at] = rng.randbytes(rng.randint(1, 4))
            case 1:
                del data[at : at + rng.randint(1, 8)]
            case 2:
                data[at : at + 1] = rng.choice(
                    [b'"', b"{", b"}", b"[", b"\\", b"\x00", b"\xff", b"9", b"\xc1"]
                )
            case _:
                data[at:at] = data[at : at + rng.randint(1, 16)]
    return bytes(data)


def hostile_value(rng: random.Random, depth: int = 3) -> Any:
    """JSON-like values with surrogates, huge numbers and odd keys."""
    if depth and rng.random() < 0.4:
        if rng.random() < 0.5:
            return [hostile_value(rng, depth - 1) for _ in range(rng.randrange(4))]
        return {
            rng.choice(["", "type", "id", "\ud800", "é", "a"]): hostile_value(rng, depth - 1)
            for _ in range(3)
        }
    return rng.choice(
        [
            None,
            True,
            False,
            0,
            -1,
            2**53,
            -(2**63),
            2**64,
            10**30,
            1.5,
            -0.0,
            1e308,
            "",
            "\x00",
            "\udfff",
            "𝄞",
            "x" * 50,
        ]
    )
