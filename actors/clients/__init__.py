"""Client libraries for the wire protocol, one for Trio and one for asyncio, over one core.

``open_client`` needs nothing but the package; ``session_query.actors.clients.asyncio_client`` needs the
``asyncio`` extra (the ``websockets`` library) and is imported from its module.
"""

from ...protocol.wire.client_errors import (
    ClientError,
    ConnectionLost,
    LocalProtocolError,
    PublicationFull,
    RemoteProtocolError,
    RequestAborted,
    ServerBusy,
    ServerError,
    Unauthenticated,
)
from .backoff import NO_RECONNECT, Backoff
from .publication import ClientPublication
from .trio_client import Client, open_client

__all__ = [
    "NO_RECONNECT",
    "Backoff",
    "Client",
    "ClientError",
    "ClientPublication",
    "ConnectionLost",
    "LocalProtocolError",
    "PublicationFull",
    "RemoteProtocolError",
    "RequestAborted",
    "ServerBusy",
    "ServerError",
    "Unauthenticated",
    "open_client",
]
