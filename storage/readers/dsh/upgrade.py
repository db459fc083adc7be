"""Older and newer record shapes become the shapes of SPEC 1.4, before section 2 is applied.

Version 0 changed while it was young (1.8.7); versions 3 and 4 added roles (16.7.1). Only shapes that
differ are touched: what is current passes through as the same object.
"""

from __future__ import annotations

from typing import Final

from ....protocol.json_value import JSON

_ROLES: Final = {
    "steering/message": "user",
    "user/message": "user",
    "system/message": "system",
    "developer/message": "developer",
}
MESSAGE_TYPES: Final = frozenset((*_ROLES, "assistant/message", "tool/result"))
"""Record types that become surface events."""


def upgrade(kind: str, data: JSON, message_id: str, call_id: str) -> tuple[str, JSON]:
    """Return the core type and data of a record.

    ``message_id`` is what a message without identity gets, ``call_id`` the call a result without one
    belongs to. Data that is no object passes through, or is none for a message.
    """
    if not isinstance(data, dict):
        if kind not in MESSAGE_TYPES:
            return kind, data
        data = {}
    if kind in _ROLES:
        return "user/message", _user(kind, data, message_id)
    if kind == "assistant/message":
        return kind, _assistant(data, message_id)
    if kind == "tool/result":
        return kind, _result(data, message_id, call_id)
    if kind == "turn/start" and "trigger" in data:
        return kind, {key: value for key, value in data.items() if key != "trigger"}
    if kind == "turn/end":
        return kind, _turn_end(data)
    return kind, data


def _user(kind: str, data: dict[str, JSON], message_id: str) -> JSON:
    inner = data.get("message")
    if isinstance(inner, dict) and "content" not in data:
        data = {**{key: value for key, value in data.items() if key != "message"}, **inner}
    role = _ROLES[kind]
    source = data.get("source")
    if role != "user":
        source = {**(source if isinstance(source, dict) else {}), "kind": role}
    elif not isinstance(source, dict):
        source = {"kind": "user"}
    return _with(data, {"id": _identity(data, message_id), "role": "user", "source": source})


def _assistant(data: dict[str, JSON], message_id: str) -> JSON:
    message = data.get("message")
    if isinstance(message, dict):
        named = {"id": _identity(message, message_id), "role": "assistant"}
        return _with(data, {"message": _with(message, named)})
    provenance = data.get("provenance")
    source: dict[str, JSON] = {"kind": "model"}
    if isinstance(provenance, dict):
        source |= {key: provenance[key] for key in ("provider", "model") if key in provenance}
    wrapped: JSON = {
        "id": _identity(data, message_id),
        "role": "assistant",
        "content": data.get("content", []),
        "source": source,
    }
    kept = {key: value for key, value in data.items() if key not in ("id", "role", "content", "provenance")}
    return {**kept, "message": wrapped}


def _result(data: dict[str, JSON], message_id: str, call_id: str) -> JSON:
    message = data.get("message")
    if not isinstance(message, dict):
        moved = ("id", "callId", "content", "isError")
        message = {key: data[key] for key in moved if key in data}
        data = {key: value for key, value in data.items() if key not in (*moved, "role")}
    block = _result_block(message)
    source = message.get("source")
    named = source.get("callId") if isinstance(source, dict) else None
    found = next(
        (
            value
            for value in (named, block.get("toolCallId"), message.get("toolCallId"), message.get("callId"))
            if isinstance(value, str)
        ),
        call_id,
    )
    kept = {key: value for key, value in message.items() if key not in ("toolCallId", "isError", "callId")}
    wrapped = _with(
        kept,
        {
            "id": _identity(message, message_id),
            "role": "user",
            "source": _with(source if isinstance(source, dict) else {}, {"kind": "tool", "callId": found}),
            "content": [_with(block, {"toolCallId": found})],
        },
    )
    return _with(data, {"message": wrapped})


def _result_block(message: dict[str, JSON]) -> dict[str, JSON]:
    """The one ``tool-result`` block of a result: as it is, or made from what stands directly in it."""
    content = message.get("content")
    if isinstance(content, list) and len(content) == 1:
        block = content[0]
        if isinstance(block, dict) and block.get("type") == "tool-result":
            return _with(
                block, {"content": block["content"] if isinstance(block.get("content"), list) else []}
            )
    block = {"type": "tool-result", "content": content if isinstance(content, list) else []}
    if "isError" in message:
        block["isError"] = message["isError"]
    return block


def _turn_end(data: dict[str, JSON]) -> JSON:
    reason = data.get("reason")
    if not isinstance(reason, dict):
        return data
    kind = reason.get("kind")
    if kind == "aborted" and "reason" not in reason:
        return {**data, "reason": {"kind": "aborted", "reason": {"kind": "legacy"}}}
    if kind == "disposed":
        return {**data, "reason": {"kind": "aborted", "reason": {"kind": "disposed"}}}
    if kind == "error" and not isinstance(reason.get("error"), dict):
        error: JSON = {"message": reason.get("message", ""), "code": reason.get("code", "UNKNOWN")}
        return {**data, "reason": {"kind": "error", "error": error}}
    return data


def _identity(message: dict[str, JSON], message_id: str) -> JSON:
    known = message.get("id")
    return known if isinstance(known, str) and known else message_id


def _with(data: dict[str, JSON], members: dict[str, JSON]) -> dict[str, JSON]:
    """``data`` itself if it has these members already, else a copy that has them."""
    if all((key in data and data[key] is value) or data.get(key) == value for key, value in members.items()):
        return data
    return {**data, **members}
