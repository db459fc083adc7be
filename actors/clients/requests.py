"""The requests both client libraries offer, built and taken apart in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...protocol.json_codec import lossless_defect
from ...protocol.json_value import JSON
from ...protocol.wire import messages as m
from ...protocol.wire.client_errors import ClientError, RemoteProtocolError

A = TypeVar("A", bound=m.Message)
Build = Callable[[int], m.Request]


def tools() -> Build:
    return lambda request_id: m.ToolsRequest(id=request_id)


def call(
    tool: str,
    arguments: JSON,
    *,
    agent: str | None,
    workspace: str | None,
    reach: list[str] | m.ReachAll | None,
    call_id: str | None,
    deadline_ms: int | None,
    follow: bool,
) -> Build:
    return lambda request_id: m.Call(
        id=request_id,
        tool=tool,
        arguments=arguments,
        agent=agent,
        workspace=workspace,
        reach=reach,
        call_id=call_id,
        deadline_ms=deadline_ms,
        follow=follow,
    )


def query(
    method: str,
    params: JSON,
    *,
    reach: list[str] | m.ReachAll | None,
    deadline_ms: int | None,
    follow: bool,
) -> Build:
    return lambda request_id: m.Query(
        id=request_id, method=method, params=params, reach=reach, deadline_ms=deadline_ms, follow=follow
    )


def fetch(locator: str, offset_bytes: int, limit_bytes: int | None) -> Build:
    return lambda request_id: m.Fetch(
        id=request_id, locator=locator, offset_bytes=offset_bytes, limit_bytes=limit_bytes
    )


def expect(answer: m.Answer | ClientError | None, kind: type[A]) -> A:
    """The answer, if it is one of the kind asked for. Raises: the error it is; RemoteProtocolError."""
    if isinstance(answer, ClientError):
        raise answer
    if not isinstance(answer, kind):
        raise RemoteProtocolError(f"no {m.tag_of(kind)} where one was expected")
    return answer


def sendable_reason(reason: object) -> JSON:
    """A cancel reason as it can travel: itself if it is JSON, else the name of its type."""
    return type(reason).__name__ if lossless_defect(reason) is not None else reason  # type: ignore[return-value]
