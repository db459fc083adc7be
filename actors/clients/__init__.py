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
from .trio_client import Client, open_client
from .trio_publication import TrioPublication

__all__ = [
    "NO_RECONNECT",
    "Backoff",
    "Client",
    "ClientError",
    "ConnectionLost",
    "LocalProtocolError",
    "PublicationFull",
    "RemoteProtocolError",
    "RequestAborted",
    "ServerBusy",
    "ServerError",
    "TrioPublication",
    "Unauthenticated",
    "open_client",
]
