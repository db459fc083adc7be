"""One service, two doors: the embedded API and a WebSocket client, asked in the same words.

A test that takes ``door`` says something about both. Answers are compared as the JSON that a program gets:
the embedded door's objects go through ``protocol.wire.values``, its errors become their codes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import attrs
import trio

from session_query import (
    Aborted,
    Busy,
    Caller,
    Client,
    Event,
    EventSearchRequest,
    LiveHandle,
    QueryError,
    ServerConfig,
    Service,
    ServiceConfig,
    SessionSearchRequest,
    Signal,
    ToolError,
    WireError,
    open_client,
    open_edge,
    open_service,
)
from session_query.actors.clients import ServerError
from session_query.actors.edge.server import WebSocketServer
from session_query.actors.family import confined_lineage
from session_query.protocol.filters import parse_event_filters, parse_session_filters
from session_query.protocol.json_value import JSON
from session_query.protocol.limits import check_budget
from session_query.protocol.records import TitleItem
from session_query.protocol.tools.receipts_text import receipt_line
from session_query.protocol.wire import values
from session_query.storage.tokens import StoredToken, hash_token
from support.providers import FakeProvider
from support.sessions import HERE, T0, THERE, head, header, prompts, sent

Who = Literal["operator", "here", "there", "homeless"]
DOORS: tuple[Literal["embedded", "wire"], ...] = ("embedded", "wire")


@attrs.frozen
class Answer:
    """A value or a code. ``reason`` is what an aborted request came back with; ``receipt`` a tool's."""

    value: Any = None
    code: str | None = None
    reason: object = None
    receipt: Any = None

    @property
    def text(self) -> str:
        assert isinstance(self.value, str), self
        return self.value

    def ids(self) -> list[str]:
        """The session ids of a listing or a page of sessions."""
        assert self.code is None, self
        rows = self.value.get("sessions", self.value.get("hits"))
        return [row["header"]["id"] for row in rows]


def token(secret: str, role: str, workspaces: Any, **more: Any) -> StoredToken:
    return StoredToken(
        id=f"id-{secret}",
        name=secret,
        role=role,  # type: ignore[arg-type]
        workspaces=workspaces,
        hash=hash_token(secret),
        created_at=0,
        **more,
    )


TOKENS = (
    token("operator", "operator", "*"),
    token("here", "reader", [HERE]),
    token("there", "reader", [THERE]),
    token("homeless", "reader", [], no_workspace=True),
    token("runtime-here", "runtime", [HERE]),
    token("runtime-there", "runtime", [THERE]),
)

WORKSPACES: dict[str, tuple[str | None, ...] | None] = {
    "operator": None,
    "here": (HERE,),
    "there": (THERE,),
    "homeless": (None,),
}


def program(who: Who) -> Caller:
    """A program with a token of that name, as the embedded door sees it."""
    return Caller(kind="operator", workspaces=WORKSPACES[who])


@attrs.define(eq=False)
class Door(ABC):
    """What both doors can do. ``who`` names the asker of a query; tools name an agent or a workspace."""

    service: Service

    @abstractmethod
    async def query(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        who: Who = "operator",
        signal: Signal | None = None,
    ) -> Answer: ...

    @abstractmethod
    async def call(
        self,
        tool: str,
        arguments: Any,
        *,
        workspace: str | None = None,
        agent: str | None = None,
        signal: Signal | None = None,
    ) -> Answer: ...

    @abstractmethod
    async def publish(self, session_id: str, events: Sequence[Event] = (), **more: Any) -> Published:
        """Attach a session, which then may be named as a calling agent, and append to it."""


@attrs.frozen
class Published:
    """A live session of whichever door."""

    _append: Callable[[list[Any]], Awaitable[object]]
    end: Callable[[], Awaitable[None]]

    async def append(self, events: Sequence[Event]) -> None:
        await self._append(sent(events))


@attrs.define(eq=False)
class EmbeddedDoor(Door):
    async def query(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        who: Who = "operator",
        signal: Signal | None = None,
    ) -> Answer:
        ask = getattr(self, f"_{method}")
        return await _answered(lambda: ask(program(who), params or {}, signal or Signal()))

    async def call(
        self,
        tool: str,
        arguments: Any,
        *,
        workspace: str | None = None,
        agent: str | None = None,
        signal: Signal | None = None,
    ) -> Answer:
        async def ask() -> Answer:
            caller = await self.caller(workspace, agent)
            result = await self.service.call_tool(tool, arguments, caller, signal=signal)
            receipt = None
            if result.receipt is not None:
                line = receipt_line(result.receipt, within_session=tool == "session_event_search")
                receipt = values.receipt_value(result.receipt) | {"text": line}
            return Answer(value=result.text, code=result.code, receipt=receipt)

        answer = await _answered(ask)
        return answer if answer.value is None else answer.value

    async def publish(self, session_id: str, events: Sequence[Event] = (), **more: Any) -> Published:
        handle = await self.service.attach(head(session_id, **more))
        published = Published(handle.append, handle.detach)
        await published.append(events)
        return published

    async def caller(self, workspace: str | None, agent: str | None) -> Caller:
        """As a host says it: an agent by its own record."""
        if agent is None:
            return Caller(kind="workspace", workspaces=(workspace or HERE,))
        records = await self.service.filter_sessions(program("operator"), (), signal=Signal())
        (record,) = [r for r in records if r.header.id == agent]
        return Caller(kind="agent", header=record.header, source=record.source)

    async def _list_sessions(self, caller: Caller, params: Any, signal: Signal) -> JSON:
        return values.session_records_value(await self.service.filter_sessions(caller, (), signal=signal))

    async def _filter_sessions(self, caller: Caller, params: Any, signal: Signal) -> JSON:
        clauses = parse_session_filters(params["filters"])
        check_budget(clauses)
        return values.session_records_value(
            await self.service.filter_sessions(caller, clauses, signal=signal)
        )

    async def _filter_events(self, caller: Caller, params: Any, signal: Signal) -> JSON:
        clauses = parse_event_filters(params["filters"], allow_text=True)
        check_budget(clauses)
        exact = await self.service.exact()
        found = await exact.filter_events(caller, params["session_id"], clauses, signal=signal)
        return values.event_documents_value(params["session_id"], found)

    async def _search_sessions(self, caller: Caller, params: Any, signal: Signal) -> JSON:
        request = SessionSearchRequest(**_request(params))
        page = await self.service.search_sessions(request, caller=caller, lane="tests", signal=signal)
        return values.session_page_value(page)

    async def _search_events(self, caller: Caller, params: Any, signal: Signal) -> JSON:
        request = EventSearchRequest(session_id=params["session_id"], **_request(params))
        page = await self.service.search_events(request, caller=caller, lane="tests", signal=signal)
        return values.event_page_value(page)

    async def _trace_session(self, caller: Caller, params: Any, signal: Signal) -> JSON:
        found = await self.service.trace_session(caller, params["session_id"], signal=signal)
        return values.lineage_value(confined_lineage(caller, found))

    async def _trace_event(self, caller: Caller, params: Any, signal: Signal) -> JSON:
        found = await self.service.trace_event(caller, params["session_id"], params["seq"], signal=signal)
        return values.event_trace_value(found)

    async def _list_events(self, caller: Caller, params: Any, signal: Signal) -> JSON:
        exact = await self.service.exact()
        found = await exact.list_events(caller, params["session_id"], signal=signal)
        return values.event_records_value(params["session_id"], found)

    async def _read_surface(self, caller: Caller, params: Any, signal: Signal) -> JSON:
        exact = await self.service.exact()
        return values.surface_value(await exact.read_surface(caller, params["session_id"], signal=signal))

    async def _read_session(self, caller: Caller, params: Any, signal: Signal) -> JSON:
        exact = await self.service.exact()
        return values.session_log_value(await exact.read_session(caller, params["session_id"], signal=signal))

    async def _read_event(self, caller: Caller, params: Any, signal: Signal) -> JSON:
        window = {name: params[name] for name in ("before", "after") if name in params}
        exact = await self.service.exact()
        return values.event_window_value(
            await exact.read_event(caller, params["session_id"], params["seq"], **window, signal=signal)
        )

    async def _read_title(self, caller: Caller, params: Any, signal: Signal) -> JSON:
        exact = await self.service.exact()
        return values.title_value(await exact.read_title(caller, params["session_id"], signal=signal))

    async def _read_titles(self, caller: Caller, params: Any, signal: Signal) -> JSON:
        found = await self.service.read_titles(caller, params["session_ids"], signal=signal)
        return values.title_items_value(found)


def _request(params: Any) -> dict[str, Any]:
    names = ("query", "session_filters", "event_filters", "match", "limit", "cursor")
    fields: dict[str, Any] = {name: params[name] for name in names if name in params}
    return {"query": None} | fields | {"has_cursor": "cursor" in params}


@attrs.define(eq=False)
class WireDoor(Door):
    """``clients`` by token, connected when first used, in tasks of ``nursery``."""

    server: WebSocketServer
    nursery: trio.Nursery
    clients: dict[str, Client] = attrs.field(factory=dict)

    async def client(self, secret: str) -> Client:
        if secret not in self.clients:
            self.clients[secret] = await self.nursery.start(_connected, self.server.url, secret)
        return self.clients[secret]

    async def query(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        who: Who = "operator",
        signal: Signal | None = None,
    ) -> Answer:
        client = await self.client(who)
        return await _answered(lambda: client.query(method, params, signal=signal))

    async def call(
        self,
        tool: str,
        arguments: Any,
        *,
        workspace: str | None = None,
        agent: str | None = None,
        signal: Signal | None = None,
    ) -> Answer:
        client = await self.client("operator")
        place: dict[str, Any]
        place = {"agent": agent} if agent is not None else {"workspace": workspace or HERE}

        async def ask() -> Answer:
            result = await client.call(tool, arguments, **place, signal=signal)
            return Answer(value=result.text, receipt=result.receipt)

        answer = await _answered(ask)
        return answer if answer.value is None else answer.value

    async def publish(self, session_id: str, events: Sequence[Event] = (), **more: Any) -> Published:
        client = await self.client("operator")
        publication = await client.publish(head(session_id, **more))
        published = Published(publication.append, publication.close)
        await published.append(events)
        return published


async def _connected(url: str, secret: str, *, task_status: trio.TaskStatus[Client]) -> None:
    async with open_client(url, secret) as client:
        task_status.started(client)
        await trio.sleep_forever()


async def _answered(ask: Callable[[], Awaitable[Any]]) -> Answer:
    try:
        return Answer(value=await ask())
    except (QueryError, ToolError, WireError) as exc:
        return Answer(code=exc.code.value)
    except Aborted as exc:
        return Answer(code="aborted", reason=exc.reason)
    except Busy:
        return Answer(code="BUSY")
    except ServerError as exc:
        return Answer(code=exc.code, reason=getattr(exc, "reason", None))


@attrs.define(eq=False)
class World:
    """An open service with its doors; ``door`` is the one a test is about. ``handles``: published last."""

    service: Service
    doors: dict[str, Door]
    handles: dict[str, LiveHandle] = attrs.field(factory=dict)

    @property
    def door(self) -> Door:
        return self.doors.get("wire", self.doors["embedded"])

    async def publish(
        self, session_id: str, events: Sequence[Event] = (), *, detach: bool = False, **more: Any
    ) -> LiveHandle:
        """Attach a session through the embedded door and append ``events``. See ``sessions.head``."""
        handle = self.handles[session_id] = await self.service.attach(head(session_id, **more))
        if events:
            await handle.append(sent(events))
        if detach:
            await handle.detach()
        return handle

    def mounted(self, *ids: str, name: str = "p") -> FakeProvider:
        """A provider with a session for each id, newer ones later, whose one prompt is ``stored ID``."""
        provider = FakeProvider(name)
        for number, session_id in enumerate(ids):
            provider.put(header(session_id, at=T0 + number), prompts(f"stored {session_id}"))
        self.service.mount(name, provider)
        return provider

    async def text_of(self, session_id: str) -> str:
        """The text of a session's first prompt, by an exact read."""
        exact = await self.service.exact()
        window = await exact.read_event(program("operator"), session_id, 0, signal=Signal())
        data: Any = window.target.data
        return str(data["content"][0]["text"])

    async def titles(self, *ids: str) -> list[TitleItem]:
        return await self.service.read_titles(program("operator"), ids, signal=Signal())


@asynccontextmanager
async def open_world(config: ServiceConfig | None = None, *, wire: bool = True) -> AsyncIterator[World]:
    """A service; with ``wire`` also an edge on a free loopback port."""
    async with open_service(config or ServiceConfig()) as service:
        doors: dict[str, Door] = {"embedded": EmbeddedDoor(service)}
        if not wire:
            yield World(service, doors)
            return
        async with open_edge(service, ServerConfig(tokens=TOKENS)) as edge, trio.open_nursery() as clients:
            doors["wire"] = WireDoor(service, edge, clients)
            yield World(service, doors)
            clients.cancel_scope.cancel()
