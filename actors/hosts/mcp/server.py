"""The MCP server: the five tools and the spilled results, over a link to the shared service."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Final, TypeAlias

import attrs
import trio
from mcp import MCPError, types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from ....protocol.errors import QueryError
from ....protocol.json_value import JSON
from ....protocol.signal import Signal
from ....protocol.tools.prompt import PROMPT_TEXT
from ....protocol.tools.schemas import SPECS, ToolSpec
from ....protocol.wire import messages as m
from ....protocol.wire.client_errors import ClientError, LocalProtocolError, ServerError
from ....protocol.wire.codes import WireCode
from ...clients import Client
from . import results
from .callers import CallerSource, NoWorkspace, WireCaller
from .cancelling import Cancellations
from .indexing import Report, follow_first_index
from .launching import ServiceUnavailable
from .link import Link
from .spilled import Spilled, template

logger = logging.getLogger(__name__)

Context: TypeAlias = ServerRequestContext[dict[str, object]]

TITLES: Final = {
    "session_search": "Search earlier sessions",
    "session_event_search": "Search inside one session",
    "session_trace": "Trace a session's parents and sub-agents",
    "session_event_trace": "Trace what an event replaced and was made from",
    "session_event_read": "Read an event in full",
}
READ_ONLY: Final = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
ROOTS_S: Final = 5.0
"""How long a client may take to tell its roots."""
SERVER_TITLE: Final = "Session history"


@attrs.define(eq=False)
class McpHost:
    """One MCP connection's handlers. ``search_timeout_ms`` lowers the searches' deadline, if given."""

    link: Link
    callers: CallerSource
    search_timeout_ms: int | None = None
    cancellations: Cancellations = attrs.field(factory=Cancellations, init=False)
    spilled: Spilled = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.spilled = Spilled(self._fetch)

    def server(self, version: str) -> Server[dict[str, object]]:
        """The SDK's server with our handlers."""
        return Server(
            "session-query",
            version=version,
            title=SERVER_TITLE,
            instructions=PROMPT_TEXT,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
        )

    async def list_tools(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """The five tools, on one page. Asks nobody, so that a host starts at once."""
        return types.ListToolsResult(tools=[_tool(spec) for spec in SPECS.values()])

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Run one tool. What a model can act on is a result; a tool that is not there is the host's error.

        Cancellation: the service is told the client's reason and not waited for.
        """
        if params.name not in SPECS:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool called {params.name[:100]!r}")
        try:
            with self.cancellations.signal(context.request_id) as signal:
                caller = await self.callers.caller(partial(_roots, context))
                result = await self._call(context, params, caller, signal)
        except NoWorkspace as exc:
            return results.unavailable(str(exc))
        except ServerError as exc:
            return results.server_failed(exc)
        except LocalProtocolError as exc:
            return results.failed(WireCode.INVALID_ARGS.value, f"These arguments cannot be sent: {exc}.")
        except (ClientError, QueryError, ServiceUnavailable) as exc:
            logger.warning("%s: %s", params.name, exc)
            return results.unavailable(str(exc))
        self.spilled.shown(result.spilled)
        return results.call_result(result, context.protocol_version)

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """The results that were too long to show here, newest last."""
        return types.ListResourcesResult(resources=self.spilled.listed())

    async def list_templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[template()])

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """A spilled result, whole or in part."""
        return await self.spilled.read(str(params.uri))

    # ------------------------------------------------------------ inside

    async def _call(
        self, context: Context, params: types.CallToolRequestParams, caller: WireCaller, signal: Signal
    ) -> m.Result:
        try:
            result = await self._ask(context, params, caller, signal)
        except ServerError as exc:
            if caller.agent is None or exc.code != WireCode.FORBIDDEN.value:
                raise
            await self._index()  # the agent's log may be younger than the index
            result = await self._ask(context, params, caller, signal)
        wanted = _is_indexing(result.receipt) and _wants_progress(context)
        if wanted and await follow_first_index(self.link, _reporter(context)):
            return await self._ask(context, params, caller, signal)
        return result

    async def _ask(
        self, context: Context, params: types.CallToolRequestParams, caller: WireCaller, signal: Signal
    ) -> m.Result:
        deadline_ms = self.search_timeout_ms if SPECS[params.name].has_deadline else None

        async def work(client: Client) -> m.Result:
            return await client.call(
                params.name,
                params.arguments or {},
                agent=caller.agent,
                workspace=caller.workspace,
                call_id=str(context.request_id),
                deadline_ms=deadline_ms,
                signal=signal,
            )

        return await self.link.ask(work)

    async def _index(self) -> None:
        await self.link.ask(lambda client: client.query("index", {"full": False}))

    async def _fetch(self, locator: str, offset_bytes: int, limit_bytes: int | None) -> m.Chunk:
        return await self.link.ask(lambda client: client.fetch(locator, offset_bytes, limit_bytes))


def _tool(spec: ToolSpec) -> types.Tool:
    schema = spec.parameters()
    assert isinstance(schema, dict)
    return types.Tool(
        name=spec.name,
        title=TITLES[spec.name],
        description=spec.description,
        input_schema=schema,
        annotations=READ_ONLY,
    )


def _is_indexing(receipt: JSON) -> bool:
    return isinstance(receipt, dict) and receipt.get("indexing") is not None


def _wants_progress(context: Context) -> bool:
    return context.meta is not None and context.meta.get("progress_token") is not None


def _reporter(context: Context) -> Report:
    async def report(done: int, total: int | None, message: str) -> None:
        await context.session.report_progress(done, total, message)

    return report


async def _roots(context: Context) -> Sequence[str]:
    """The client's roots, if it declares any. Of those that newer clients do not have, none."""
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.roots is None or not context.session.can_send_request:
        return ()
    with trio.move_on_after(ROOTS_S):
        try:
            # Not `list_roots()`, which warns that roots are deprecated: they are a hint from older clients.
            answer = await context.session.send_request(types.ListRootsRequest(), types.ListRootsResult)
        except (MCPError, ValueError):  # it refused, or what it said is no list of roots
            return ()
        return [str(root.uri) for root in answer.roots]
    return ()
