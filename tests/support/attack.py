"""What attackers need: a peer that shows the very bytes of an answer, and every way to name something.

``requests_about`` builds, from the lists of messages, tools and query methods themselves, one request for
each place of the protocol where a session, a workspace or a word can be named. Asked once about something
hidden and once about what does not exist, the answers must be the same bytes but for the names.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import attrs
import msgspec
import trio

from session_query.protocol.tools.schemas import SPECS
from session_query.protocol.wire import messages as m
from session_query.protocol.wire.methods import METHODS, Method
from support.raw_websocket import PING, PONG, TEXT, RawPeer, frame

Message = dict[str, Any]

_UPTIME: Final = re.compile(rb'"uptime_s":[0-9.]+')


@attrs.frozen
class Names:
    """Something to ask about. The parts of two of them are equally long, so that answers can be compared."""

    session: str
    workspace: str
    word: str
    locator: str

    def masked(self, answer: bytes) -> bytes:
        """The answer with these names, and how long the service has run, replaced by placeholders."""
        for name, mark in (
            (self.session, b"SESSION"),
            (self.workspace, b"WORKSPACE"),
            (self.word, b"WORD"),
            (self.locator, b"LOCATOR"),
        ):
            answer = answer.replace(name.encode(), mark)
        return _UPTIME.sub(b'"uptime_s":0', answer)


@attrs.define
class Attacker:
    """One authenticated connection that asks one thing after the other."""

    peer: RawPeer
    welcome: Any = None

    async def ask(self, message: Message) -> bytes:
        """The answer to ``message`` as it came, parts put together; ``id`` is always 7."""
        text = json.dumps({"id": 7, **message})  # lone surrogates as escapes
        await self.peer.stream.send_all(frame(TEXT, text.encode()))
        pieces: list[str] = []
        while True:
            opcode, payload = await self.peer.next_frame()
            if opcode == PING:
                await self.peer.stream.send_all(frame(PONG, payload))
                continue
            assert opcode == TEXT, (opcode, payload)
            told = msgspec.json.decode(payload)
            if told["type"] == "part":
                pieces.append(told["data"])
                if told["last"]:
                    return "".join(pieces).encode()
            elif told["type"] != "progress":
                return payload

    async def told(self, message: Message) -> Any:
        """The answer to ``message``, decoded."""
        return msgspec.json.decode(await self.ask(message))


@asynccontextmanager
async def attacker(url: str, token: str) -> AsyncIterator[Attacker]:
    """Connect with a token that is good."""
    async with await open_peer(url) as stream:
        peer = RawPeer(stream)
        await peer.handshake()
        welcome = await peer.hello(token)
        assert welcome["type"] == "welcome", welcome
        yield Attacker(peer, welcome)


async def open_peer(url: str) -> trio.SocketStream:
    """A bare line to the server."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return await trio.open_tcp_stream(parts.hostname, parts.port)


# ---------------------------------------------------------------- every request


def requests_about(names: Names, own_session: str, own_workspace: str) -> Iterator[tuple[str, Message]]:
    """(what it is, the request) for every message type, tool argument and query parameter.

    Requests that would change anything are left to tests of their own.
    """
    yield "attach elsewhere", {"type": "attach", "session": _header(names.session, names.workspace)}
    yield "attach nowhere", {"type": "attach", "session": _header(names.session, None)}
    yield "append", {"type": "append", "session_id": names.session, "from_seq": 0, "events": []}
    yield "detach", {"type": "detach", "session_id": names.session}
    yield "tools", {"type": "tools"}
    yield "fetch", {"type": "fetch", "locator": names.locator}
    yield "hello again", {"type": "hello", "token": names.word, "client": {"name": "x", "version": "1"}}
    yield from _calls(names, own_session, own_workspace)
    for method in METHODS.values():
        for what, params in _params(method, names):
            ask = {"type": "query", "method": method.name, "params": params}
            yield f"{method.name} {what}", ask
            yield f"{method.name} {what} in own", ask | {"reach": [own_workspace]}
            yield f"{method.name} {what} in named", ask | {"reach": [names.workspace]}
            yield f"{method.name} {what} in both", ask | {"reach": [own_workspace, names.workspace]}
            yield f"{method.name} {what} in all", ask | {"reach": "all"}


def covered(requests: list[tuple[str, Message]]) -> None:
    """Fail if a message type, tool or method is missing: whoever adds one must be caught here."""
    types = {request["type"] for _, request in requests}
    assert types | {"cancel"} == {m.tag_of(kind) for kind in m.CLIENT_MESSAGES}
    assert {request["tool"] for _, request in requests if request["type"] == "call"} == set(SPECS)
    assert {request["method"] for _, request in requests if request["type"] == "query"} == set(METHODS)


def _calls(names: Names, own_session: str, own_workspace: str) -> Iterator[tuple[str, Message]]:
    callers: tuple[tuple[str, Message], ...] = (
        ("own agent", {"agent": own_session}),
        ("own workspace", {"workspace": own_workspace}),
        ("named agent", {"agent": names.session}),
        ("named workspace", {"workspace": names.workspace}),
        ("named reach", {"reach": [names.workspace]}),
        ("all", {"reach": "all"}),
        ("nobody", {}),
    )
    for tool, spec in SPECS.items():
        least = {name: _argument(name, names) for name in spec.required}
        for who, caller in callers:
            yield f"{tool} by {who}", {"type": "call", "tool": tool, "arguments": least, **caller}
        for name in spec.properties:
            arguments = least | {name: _argument(name, names)}
            if "session_id" in spec.properties:
                arguments |= {"session_id": names.session}
            for who, caller in callers[:2]:
                what = f"{tool} {name} by {who}"
                yield what, {"type": "call", "tool": tool, "arguments": arguments, **caller}


def _argument(name: str, names: Names) -> Any:
    """A value for a tool's argument, naming something where it can."""
    values: dict[str, Any] = {
        "query": names.word,
        "match": "some",
        "session_id": names.session,
        "session_ids": [names.session],
        "parent_session_ids": [names.session],
        "include_root_sessions": True,
        "availability": ["live"],
        "event_types": ["user/message"],
        "event_surfaces": ["current"],
        "surfaces": ["current"],
    }
    if name in values:
        return values[name]
    return "1970-01-01T00:00Z" if "time" in name or "created" in name else 0


def _params(method: Method, names: Names) -> Iterator[tuple[str, Message]]:
    """The parameters of a method: the least, then each optional one added, in each of its forms."""
    forms = {name: list(_forms(method.name, name, names)) for name in (*method.required, *method.optional)}
    least = {name: forms[name][0] for name in method.required}
    yield "least", least
    for name, values in forms.items():
        for number, value in enumerate(values):
            yield f"{name} {number}", least | {name: value}


def _forms(method: str, name: str, names: Names) -> Iterator[Any]:
    """Values for a parameter of a query method, naming something where they can."""
    of_sessions = name == "session_filters" or (name == "filters" and method == "filter_sessions")
    if of_sessions:
        yield [{"kind": "id", "values": [names.session]}]
        yield [{"kind": "id", "values": [f"journal:{names.session}"]}]
        yield [{"kind": "id", "values": [f"journal/{names.workspace}:{names.session}"]}]
        yield [{"kind": "parent", "values": [names.session]}]
        yield [{"kind": "parent", "values": [names.session, None]}]
        yield [{"kind": "cwd", "values": [names.workspace]}]
        yield []
    elif name in ("filters", "event_filters"):
        yield [{"kind": "type", "values": ["user/message"]}]
        yield [{"kind": "text", "query": names.word}]
    elif name == "session_id":
        yield names.session
        yield f"journal:{names.session}"
        yield f"journal/{names.workspace}:{names.session}"
    elif name == "session_ids":
        yield [names.session]
        yield [names.session, f"journal:{names.session}", f"journal/{names.workspace}:{names.session}"]
    elif name == "query":
        yield names.word
        yield f"{names.word} {names.session}"
    elif name == "match":
        yield from ("exact", "words", "some", "auto")
    elif name == "workspaces":
        yield [names.workspace]
    elif name == "path":
        yield names.workspace
    else:
        yield {"format": "dsh", "cursor": "eyJ2IjoxfQ", "limit": 5, "full": True}.get(name, 0)


def _header(session_id: str, cwd: str | None) -> Message:
    header: Message = {"version": 0, "id": session_id, "createdAt": 1_700_000_000_000}
    return header if cwd is None else header | {"cwd": cwd}
