"""The header line (SPEC 1.1.5), versions 0 to 4. What is wrong in it costs that field, with a note."""

from __future__ import annotations

from typing import Final

import attrs

from ....protocol.header import SessionHeader
from ....protocol.json_value import JSON, is_safe_integer, whole
from ..seam import Refusal

NEWEST: Final = 4
_RETIRED: Final = frozenset(("sandboxMode", "approvalPolicy"))


@attrs.frozen(kw_only=True)
class HeaderLine:
    """What a header line says. ``refusal`` ends the session; its header is still shown if it has an id.

    ``is_seeded`` (from version 2): how many events were inherited is told by a marker in the log, not here.
    """

    header: SessionHeader
    version: int
    is_seeded: bool
    notes: tuple[str, ...]
    refusal: Refusal | None


def is_header(obj: dict[str, JSON]) -> bool:
    """True for a dsh header line; other programs' logs begin with ``session`` lines too."""
    own = "createdAt" in obj or "delegationDepth" in obj
    return obj.get("type") == "session" and "version" in obj and own


def parse_header(obj: dict[str, JSON], fallback_id: str) -> HeaderLine:
    notes: list[str] = []
    version = whole(obj["version"])
    session_id = _text(obj, "id", notes)
    header = SessionHeader(
        id=session_id or fallback_id,
        created_at=_count(obj, "createdAt", notes) or 0,
        cwd=_text(obj, "cwd", notes),
        parent_session=_text(obj, "parentSession", notes),
        seed_length=_count(obj, "seedLength", notes),
        origin="subagent" if obj.get("origin") == "subagent" else None,
        delegation_depth=_count(obj, "delegationDepth", notes),
        agent_preset=_text(obj, "agentPreset", notes),
    )
    if not session_id:
        notes.append("the header names no id: the log's place does")
    return HeaderLine(
        header=header,
        version=version if is_safe_integer(version) else 0,
        is_seeded=obj.get("isSeeded") is True,
        notes=tuple(notes),
        refusal=_refusal(obj, version),
    )


def _refusal(obj: dict[str, JSON], version: object) -> Refusal | None:
    if not is_safe_integer(version) or version < 0:
        return Refusal(kind="corrupt", message="the header's version is no format number")
    if version > NEWEST:
        return Refusal(kind="newer-version", message=f"written by a newer version: format {version}")
    if retired := sorted(_RETIRED & obj.keys()):
        return Refusal(kind="corrupt", message=f"a header of a retired draft, with {', '.join(retired)}")
    return None


def _text(obj: dict[str, JSON], key: str, notes: list[str]) -> str | None:
    value = obj.get(key)
    if isinstance(value, str):
        return value
    if value is not None:
        notes.append(f"the header's {key} is no text")
    return None


def _count(obj: dict[str, JSON], key: str, notes: list[str]) -> int | None:
    value = whole(obj.get(key))
    if is_safe_integer(value) and value >= 0:
        return value
    if value is not None:
        notes.append(f"the header's {key} is no count")
    return None
