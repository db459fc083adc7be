"""session-query: search, trace and read what earlier agent sessions did.

The public door. Names are imported when they are first used, so that ``import session_query`` costs little
and a host that only needs the client never loads a database.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .actors.clients import Client, open_client
    from .actors.clients.asyncio_client import AsyncioClient
    from .actors.config import ServiceConfig, Source
    from .actors.edge.server_config import ServerConfig
    from .actors.providers import Inspected, PersistenceProvider, SessionSnapshot
    from .actors.serve import Serving, open_edge, serve
    from .actors.service import LiveHandle, Service, open_service
    from .actors.tools.registry import ToolResult
    from .protocol.collected import Caller
    from .protocol.errors import Busy, Code, CorruptLog, QueryError, ToolError
    from .protocol.event import Event
    from .protocol.header import SessionHeader
    from .protocol.records import EventSearchRequest, SessionSearchRequest
    from .protocol.signal import Aborted, Signal
    from .protocol.wire.codes import WireCode, WireError

_HOMES = {
    "Aborted": "protocol.signal",
    "AsyncioClient": "actors.clients.asyncio_client",
    "Busy": "protocol.errors",
    "Caller": "protocol.collected",
    "Client": "actors.clients",
    "Code": "protocol.errors",
    "CorruptLog": "protocol.errors",
    "Event": "protocol.event",
    "EventSearchRequest": "protocol.records",
    "Inspected": "actors.providers",
    "LiveHandle": "actors.service",
    "PersistenceProvider": "actors.providers",
    "QueryError": "protocol.errors",
    "ServerConfig": "actors.edge.server_config",
    "Service": "actors.service",
    "ServiceConfig": "actors.config",
    "Serving": "actors.serve",
    "SessionHeader": "protocol.header",
    "SessionSearchRequest": "protocol.records",
    "SessionSnapshot": "actors.providers",
    "Signal": "protocol.signal",
    "Source": "actors.config",
    "ToolError": "protocol.errors",
    "ToolResult": "actors.tools.registry",
    "WireCode": "protocol.wire.codes",
    "WireError": "protocol.wire.codes",
    "open_client": "actors.clients",
    "open_edge": "actors.serve",
    "open_service": "actors.service",
    "serve": "actors.serve",
}

__all__ = [
    "Aborted",
    "AsyncioClient",
    "Busy",
    "Caller",
    "Client",
    "Code",
    "CorruptLog",
    "Event",
    "EventSearchRequest",
    "Inspected",
    "LiveHandle",
    "PersistenceProvider",
    "QueryError",
    "ServerConfig",
    "Service",
    "ServiceConfig",
    "Serving",
    "SessionHeader",
    "SessionSearchRequest",
    "SessionSnapshot",
    "Signal",
    "Source",
    "ToolError",
    "ToolResult",
    "WireCode",
    "WireError",
    "open_client",
    "open_edge",
    "open_service",
    "serve",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
