"""The session header: immutable metadata, never part of the event log (SPEC 1.1)."""

from __future__ import annotations

import re
from typing import Final

import attrs

from .errors import CorruptLog, UnsupportedFormat
from .json_codec import decode_json, encode_json, lossless_defect
from .json_decode import JsonError
from .json_value import JSON, is_safe_integer, whole

VERSION: Final = 0
"""The one header version of this product; readers upgrade others before they get here (SPEC 16.7.1)."""


@attrs.frozen(slots=True, kw_only=True)
class SessionHeader:
    """One session's identity and origin. Absent optional fields are ``None`` here, omitted on disk."""

    id: str
    created_at: int
    cwd: str | None = None
    parent_session: str | None = None
    seed_length: int | None = None
    origin: str | None = None
    delegation_depth: int | None = None
    agent_preset: str | None = None
    version: int = 0


class HeaderError(ValueError):
    """A header breaks a rule of SPEC 1.1. Says nothing about the events behind it."""


RETIRED_KEYS: Final = ("sandboxMode", "approvalPolicy")

_ABSOLUTE: Final = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")


def is_absolute(cwd: str) -> bool:
    """True for an absolute path of any platform: ``/x``, ``C:\\x``, ``C:/x``, ``\\\\host\\x``.

    Only an absolute working directory grants authority (SPEC 16.6.5).
    """
    return _ABSOLUTE.match(cwd) is not None


def header_from_json(value: JSON, *, expected_id: str | None = None) -> SessionHeader:
    """Validate a header record (camelCase keys). Keys that are none of its fields are ignored.

    Args: expected_id: the id the session is addressed by.
    Raises: HeaderError: the first rule of SPEC 1.1 that is broken, in the table's order.
    """
    if not isinstance(value, dict):
        raise HeaderError("the header is no object")
    if defect := lossless_defect(value):
        raise HeaderError(f"the header holds {defect}")
    if whole(value.get("version")) != VERSION or isinstance(value.get("version"), bool):
        raise HeaderError("the header's version is not 0")
    for key in RETIRED_KEYS:
        if key in value:
            raise HeaderError(f"the header carries the retired key {key}")
    return SessionHeader(
        id=_id(value, expected_id),
        created_at=_count(value, "createdAt"),
        cwd=_cwd(value),
        parent_session=_optional_text(value, "parentSession"),
        seed_length=_optional_count(value, "seedLength"),
        origin=_origin(value),
        delegation_depth=_optional_count(value, "delegationDepth"),
        agent_preset=_optional_text(value, "agentPreset"),
    )


def _id(value: dict[str, JSON], expected: str | None) -> str:
    found = value.get("id")
    if not isinstance(found, str) or not found:
        raise HeaderError("id is no non-empty text")
    if expected is not None and found != expected:
        raise HeaderError("id is not the id the session is addressed by")
    return found


def _count(value: dict[str, JSON], key: str) -> int:
    found = whole(value.get(key))
    if not is_safe_integer(found) or found < 0:
        raise HeaderError(f"{key} is no safe integer of at least 0")
    return found


def _optional_count(value: dict[str, JSON], key: str) -> int | None:
    return _count(value, key) if key in value else None


def _optional_text(value: dict[str, JSON], key: str) -> str | None:
    if key not in value:
        return None
    found = value[key]
    if not isinstance(found, str):
        raise HeaderError(f"{key} is no text")
    return found


def _cwd(value: dict[str, JSON]) -> str | None:
    cwd = _optional_text(value, "cwd")
    if cwd is not None and not is_absolute(cwd):
        raise HeaderError("cwd is no absolute path")
    return cwd


def _origin(value: dict[str, JSON]) -> str | None:
    origin = _optional_text(value, "origin")
    if origin is not None and origin != "subagent":
        raise HeaderError("origin is not 'subagent'")
    return origin


def header_to_json(header: SessionHeader) -> dict[str, JSON]:
    """The header as a record with camelCase keys; absent fields are omitted (SPEC 1.1.1)."""
    record: dict[str, JSON] = {"version": header.version, "id": header.id, "createdAt": header.created_at}
    optional: tuple[tuple[str, JSON], ...] = (
        ("cwd", header.cwd),
        ("parentSession", header.parent_session),
        ("seedLength", header.seed_length),
        ("origin", header.origin),
        ("delegationDepth", header.delegation_depth),
        ("agentPreset", header.agent_preset),
    )
    record.update((key, field) for key, field in optional if field is not None)
    return record


def header_from_line(line: bytes, *, expected_id: str | None = None) -> SessionHeader:
    """Read the first line of a dsh log of version 0 (SPEC 1.1.5).

    Raises:
        UnsupportedFormat: another version, before anything else in the line is looked at (SPEC 1.5.3).
        CorruptLog: no JSON, no header, or a header that breaks a rule; the cause is kept.
    """
    try:
        value = decode_json(line)
    except JsonError as exc:
        raise CorruptLog("the header line is no JSON") from exc
    if not isinstance(value, dict) or value.get("type") != "session":
        raise CorruptLog("the first line is no session header")
    version = whole(value.get("version"))
    if is_safe_integer(version) and version != VERSION:
        raise UnsupportedFormat(f"header version {version}: probably written by a newer version")
    try:
        if "delegationDepth" not in value:
            raise HeaderError("delegationDepth is missing")
        return header_from_json(decode_json(line, strict=True), expected_id=expected_id)
    except (HeaderError, JsonError) as exc:
        raise CorruptLog(str(exc)) from exc


def header_to_line(header: SessionHeader) -> bytes:
    """The first line of a dsh log, without its line feed; ``delegationDepth`` is always written."""
    record: dict[str, JSON] = {"type": "session", **header_to_json(header)}
    if "delegationDepth" not in record:
        record["delegationDepth"] = 0
    return encode_json(record)


def compatible(a: SessionHeader, b: SessionHeader) -> bool:
    """True if both may head the same session (SPEC 1.1.3); ``origin`` and ``agentPreset`` take no part."""
    return (
        a.version == b.version
        and a.id == b.id
        and a.created_at == b.created_at
        and a.cwd == b.cwd
        and a.parent_session == b.parent_session
        and a.seed_length == b.seed_length
        and (a.delegation_depth or 0) == (b.delegation_depth or 0)
    )


def same_snapshot(a: SessionHeader, b: SessionHeader) -> bool:
    """True if compatible and of the same ``agentPreset`` (SPEC 1.1.4)."""
    return compatible(a, b) and a.agent_preset == b.agent_preset


def soft_mismatch(a: SessionHeader, b: SessionHeader) -> tuple[str, ...]:
    """The fields in which two compatible headers differ although that breaks no rule (SPEC 14 L17)."""
    found = (("origin", a.origin != b.origin), ("agentPreset", a.agent_preset != b.agent_preset))
    return tuple(name for name, differs in found if differs)
