"""What a client's caller sees when something goes wrong: by whose fault, and whether to try again."""

from __future__ import annotations

from ..json_value import JSON
from .messages import Abort, AbortKind, Error


class ClientError(Exception):
    """Anything a client raises on purpose."""


class LocalProtocolError(ClientError):
    """The caller asked for what cannot be sent: an event that is no lossless JSON, a frame too large."""


class RemoteProtocolError(ClientError):
    """The server broke the rules of the wire; its connection is given up."""


class ConnectionLost(ClientError):
    """There is no connection, and no further attempt will be made."""


class PublicationFull(ClientError):
    """More is queued than the publication may hold; nothing of this append was taken."""


class ServerError(ClientError):
    """The server's answer was an ``error``. ``code`` is of the tables of SPEC 13 and 16.13."""

    def __init__(self, error: Error) -> None:
        super().__init__(f"{error.code}: {error.message}")
        self.code = error.code
        self.message = error.message
        self.retry_after_ms = error.retry_after_ms


class Unauthenticated(ServerError):
    """The token is not accepted (any more)."""


class ServerBusy(ServerError):
    """Nothing was started; ask again after ``retry_after_ms``."""


class RequestAborted(ServerError):
    """The request ended early. ``reason`` is the canceller's own, unchanged."""

    def __init__(self, error: Error, abort: Abort) -> None:
        super().__init__(error)
        self.kind: AbortKind = abort.kind
        self.reason: JSON = abort.reason


def typed_error(error: Error) -> ServerError:
    """The exception for an ``error`` message."""
    if error.abort is not None:
        return RequestAborted(error, error.abort)
    if error.code == "UNAUTHENTICATED":
        return Unauthenticated(error)
    if error.code == "BUSY":
        return ServerBusy(error)
    return ServerError(error)
