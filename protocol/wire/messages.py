"""Every message of the wire protocol, both directions: frozen, tagged by ``type``, strict.

Requests carry a client-chosen ``id``; answers carry it back and may come in any order. Headers and
events travel as the plain JSON of SPEC 1.1 and 1.2 and are judged by the service, not here. Optional
fields may be left out or null.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from ..json_value import JSON, SAFE_INTEGER_MAX
from .identity import Role
from .limits import DEADLINE_MS_MAX, NAME_CHARS_MAX, TOKEN_CHARS_MAX

Id: TypeAlias = Annotated[int, Meta(ge=0, le=SAFE_INTEGER_MAX)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=SAFE_INTEGER_MAX)]
DeadlineMs: TypeAlias = Annotated[int, Meta(ge=1, le=DEADLINE_MS_MAX)]
Name: TypeAlias = Annotated[str, Meta(max_length=NAME_CHARS_MAX)]
Token: TypeAlias = Annotated[str, Meta(max_length=TOKEN_CHARS_MAX)]
AbortKind: TypeAlias = Literal["cancelled", "deadline", "disconnected", "shutdown"]
ReachAll: TypeAlias = Literal["all"]
PartData: TypeAlias = Annotated[JSON, Meta(extra_json_schema={"type": "string"})]


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all messages have in common."""


# ---------------------------------------------------------------- client to server


class Software(Message, frozen=True):
    """Name and version of a program, for logs and statistics only."""

    name: Name
    version: Name


class Hello(Message, tag="hello", frozen=True):
    """The first message of a connection. Answer: ``welcome``."""

    client: Software
    token: Token | None = None


class Attach(Message, tag="attach", frozen=True):
    """Make ``session`` (a header, SPEC 1.1) live. ``events``: its seed, or a stored prefix (SPEC 1.3.3)."""

    id: Id
    session: JSON
    events: list[JSON] | None = None


class Append(Message, tag="append", frozen=True):
    """Append ``events`` from ``from_seq`` on. Safe to repeat. Answer: ``appended``, after the commit."""

    id: Id
    session_id: str
    from_seq: Count
    events: list[JSON]


class Detach(Message, tag="detach", frozen=True):
    id: Id
    session_id: str


class ToolsRequest(Message, tag="tools", frozen=True):
    id: Id


class Call(Message, tag="call", frozen=True):
    """Run a tool for exactly one caller: ``agent``, ``workspace`` or (operator only) ``reach``."""

    id: Id
    tool: str
    arguments: JSON
    agent: str | None = None
    workspace: str | None = None
    reach: list[str] | ReachAll | None = None
    call_id: str | None = None
    deadline_ms: DeadlineMs | None = None
    follow: bool = False


class Query(Message, tag="query", frozen=True):
    """Run a service operation (see ``methods``). ``reach`` narrows; absent: all that the token lists."""

    id: Id
    method: str
    params: JSON = None
    reach: list[str] | ReachAll | None = None
    deadline_ms: DeadlineMs | None = None
    follow: bool = False


class Cancel(Message, tag="cancel", frozen=True):
    """Abort the request ``id``. No answer of its own; ``reason`` comes back in that request's error."""

    id: Id
    reason: JSON = None


class Fetch(Message, tag="fetch", frozen=True):
    """Read a spilled result piece by piece. Answer: ``chunk``."""

    id: Id
    locator: str
    offset_bytes: Count = 0
    limit_bytes: Annotated[int, Meta(ge=1, le=SAFE_INTEGER_MAX)] | None = None


# ---------------------------------------------------------------- server to client


class Limits(Message, frozen=True):
    """What this server refuses above. Sizes in bytes of the encoded frame, times in milliseconds."""

    frame_bytes: Count
    frame_containers: Count
    part_bytes: Count
    fetch_bytes: Count
    in_flight: Count
    keepalive_ms: Count


class Welcome(Message, tag="welcome", frozen=True):
    """``instance`` is fresh for each run of the server; cursors and locators of another are void."""

    protocol: int
    server: Software
    instance: str
    role: Role
    limits: Limits
    features: list[str]


class Attached(Message, tag="attached", frozen=True):
    id: Id
    session_id: str
    next_seq: Count


class Appended(Message, tag="appended", frozen=True):
    """``through_seq`` is the last seq of the batch; ``from_seq - 1`` (so possibly -1) for an empty one."""

    id: Id
    through_seq: Annotated[int, Meta(ge=-1, le=SAFE_INTEGER_MAX)]


class Detached(Message, tag="detached", frozen=True):
    id: Id


class ToolDescription(Message, frozen=True):
    name: str
    description: str
    parameters: JSON
    concurrency: Literal["exclusive", "parallel"]
    deadline_ms: DeadlineMs | None = None


class Tools(Message, tag="tools", frozen=True):
    id: Id
    tools: list[ToolDescription]
    prompt: str


class Result(Message, tag="result", frozen=True):
    id: Id
    text: str
    card: JSON
    receipt: JSON = None
    spilled: JSON = None


class Value(Message, tag="value", frozen=True):
    id: Id
    value: JSON


class Chunk(Message, tag="chunk", frozen=True):
    """Whole code points of a spilled text. Offsets and sizes in UTF-8 bytes."""

    id: Id
    offset_bytes: Count
    next_offset: Count
    total_bytes: Count
    last: bool
    data: str


class Progress(Message, tag="progress", frozen=True):
    """News of a request sent with ``follow``. ``total`` absent: not known."""

    id: Id
    done: Count
    unit: str
    total: Count | None = None


class Part(Message, tag="part", frozen=True):
    """Piece ``n`` (from 0) of the encoded answer to ``id``: text in JSON frames, bytes in MessagePack."""

    id: Id
    n: Count
    last: bool
    data: PartData


class Goaway(Message, tag="goaway", frozen=True):
    """The server stops: no new requests; what runs has ``grace_ms`` to finish."""

    reason: str
    grace_ms: Count


class Abort(Message, frozen=True):
    """Why a request ended early: the first reason there was. ``reason`` is the peer's own, unchanged."""

    kind: AbortKind
    reason: JSON = None


class Error(Message, tag="error", frozen=True):
    """``id`` absent: about the connection, or about a frame whose id could not be read."""

    code: str
    message: str
    id: Id | None = None
    abort: Abort | None = None
    retry_after_ms: Count | None = None


Request: TypeAlias = Attach | Append | Detach | ToolsRequest | Call | Query | Fetch
"""Messages that get an answer with their id."""

ClientMessage: TypeAlias = Hello | Request | Cancel

Answer: TypeAlias = Attached | Appended | Detached | Tools | Result | Value | Chunk | Error
"""Messages that end a request."""

ServerMessage: TypeAlias = Welcome | Answer | Progress | Part | Goaway

CLIENT_MESSAGES: Final[tuple[type[Message], ...]] = (
    Hello, Attach, Append, Detach, ToolsRequest, Call, Query, Cancel, Fetch,
)  # fmt: skip
SERVER_MESSAGES: Final[tuple[type[Message], ...]] = (
    Welcome, Attached, Appended, Detached, Tools, Result, Value, Chunk, Progress, Part, Goaway, Error,
)  # fmt: skip


TAGS: Final[dict[type[Message], str]] = {
    kind: str(kind.__struct_config__.tag) for kind in (*CLIENT_MESSAGES, *SERVER_MESSAGES)
}


def tag_of(kind: type[Message]) -> str:
    """The value of ``type`` in this message's frames."""
    return TAGS[kind]
