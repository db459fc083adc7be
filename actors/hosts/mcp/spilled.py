"""Spilled results as MCP resources: the locator is the URI, the whole text or a piece of it the content."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import attrs
from mcp import MCPError, types

from ....protocol.json_value import JSON
from ....protocol.wire import messages as m
from ....protocol.wire.client_errors import ClientError, ServerError
from .launching import ServiceUnavailable

Fetch: TypeAlias = Callable[[str, int, int | None], Awaitable[m.Chunk]]
"""``fetch(locator, offset_bytes, limit_bytes)``: one piece, as the service cuts it."""

TEMPLATE: Final = "spill:{owner}:{result}{?offset,limit}"
MIME_TYPE: Final = "text/plain"
NOT_FOUND: Final = -32002
"""MCP's code for a resource that is not there."""
PIECE_KEY: Final = "session-query/piece"
_URI: Final = re.compile(r"(spill:[0-9a-f]+:[0-9a-f]+)(?:\?(.*))?")
_NUMBER: Final = re.compile(r"(offset|limit)=([0-9]{1,15})")
_LISTED: Final = 50


def resource_link(spilled: dict[str, JSON]) -> types.ResourceLink:
    """The link that goes with a preview."""
    resource = resource_of(spilled)
    return types.ResourceLink(type="resource_link", **resource.model_dump())


def resource_of(spilled: dict[str, JSON]) -> types.Resource:
    """One spilled result as it is listed. ``spilled`` is what a result says of it."""
    total = spilled.get("total_bytes")
    size = total if isinstance(total, int) else None
    return types.Resource(
        uri=str(spilled.get("locator")),
        name="whole-result",
        title="The whole result",
        description=f"The whole text, {size} bytes of UTF-8; ?offset=BYTES&limit=BYTES reads a part of it.",
        mime_type=MIME_TYPE,
        size=size,
    )


def template() -> types.ResourceTemplate:
    """How every spilled result can be read."""
    return types.ResourceTemplate(
        uri_template=TEMPLATE,
        name="whole-result",
        title="A result too long to show",
        description=(
            "The whole text of a tool result that was shown as a preview. With offset and limit (bytes) a "
            f"part of it; `_meta` {PIECE_KEY} then says where the next part begins."
        ),
        mime_type=MIME_TYPE,
    )


@attrs.define(eq=False)
class Spilled:
    """The spilled results this host has shown, newest last, and how to read any of its owner's."""

    fetch: Fetch
    _shown: deque[types.Resource] = attrs.field(factory=lambda: deque(maxlen=_LISTED), init=False)

    def shown(self, spilled: JSON) -> None:
        """Remember one for the list of resources."""
        if isinstance(spilled, dict):
            self._shown.append(resource_of(spilled))

    def listed(self) -> list[types.Resource]:
        return list(self._shown)

    async def read(self, uri: str) -> types.ReadResourceResult:
        """The whole text, byte for byte, or the part the URI asks for, cut between code points.

        Raises: MCPError: INVALID_PARAMS for a URI of another form or a bad offset; NOT_FOUND for a result
            that is not there (any more) or somebody else's; INTERNAL_ERROR without a service.
        """
        found = _URI.fullmatch(uri)
        if found is None:
            raise MCPError(types.INVALID_PARAMS, f"a resource here is called {TEMPLATE}")
        locator, numbers = found[1], _numbers(found[2])
        try:
            if numbers:
                return await self._part(uri, locator, numbers.get("offset", 0), numbers.get("limit"))
            return _contents(uri, await self._whole(locator))
        except ServerError as exc:
            if exc.code == "INVALID_ARGS":
                raise MCPError(types.INVALID_PARAMS, exc.message) from exc
            raise MCPError(NOT_FOUND, "no such result, or it is not kept any more", {"uri": uri}) from exc
        except (ClientError, ServiceUnavailable) as exc:
            raise MCPError(types.INTERNAL_ERROR, "the session history service is not available") from exc

    async def _whole(self, locator: str) -> str:
        pieces: list[str] = []
        offset, last = 0, False
        while not last:
            chunk = await self.fetch(locator, offset, None)
            pieces.append(chunk.data)
            last, offset = chunk.last or chunk.next_offset <= offset, chunk.next_offset
        return "".join(pieces)

    async def _part(self, uri: str, locator: str, offset: int, limit: int | None) -> types.ReadResourceResult:
        chunk = await self.fetch(locator, offset, limit)
        piece: JSON = {
            "offset": chunk.offset_bytes,
            "next_offset": chunk.next_offset,
            "total_bytes": chunk.total_bytes,
            "last": chunk.last,
        }
        return _contents(uri, chunk.data, piece)


def _contents(uri: str, text: str, piece: JSON = None) -> types.ReadResourceResult:
    meta = None if piece is None else {PIECE_KEY: piece}
    content = types.TextResourceContents(uri=uri, mime_type=MIME_TYPE, text=text, _meta=meta)
    return types.ReadResourceResult(contents=[content])


def _numbers(query: str | None) -> dict[str, int]:
    """``offset`` and ``limit`` of a URI, each at most once. Raises: MCPError: INVALID_PARAMS."""
    numbers: dict[str, int] = {}
    for pair in query.split("&") if query else ():
        found = _NUMBER.fullmatch(pair)
        if found is None or found[1] in numbers or (found[1] == "limit" and int(found[2]) < 1):
            raise MCPError(types.INVALID_PARAMS, "a part is asked for with ?offset=BYTES&limit=BYTES")
        numbers[found[1]] = int(found[2])
    return numbers
