"""Tool arguments: decoded once, owned from then on (SPEC 10.3).

Only the JSON shape is judged here (``INVALID_ARGS``); what the values mean is ``checks``' business.
Unknown properties are ignored, ``4.0`` counts as the integer 4, and a boolean is never a number.
"""

from __future__ import annotations

import math
import re
from typing import Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from ..errors import ToolCode, ToolError
from ..event import Surface
from ..filters import Availability
from ..json_value import JSON
from ..records import Match
from .schemas import SPECS

Concurrency = Literal["exclusive", "parallel"]


class _Arguments(msgspec.Struct, frozen=True, kw_only=True):
    """Absent properties are ``UNSET``; a property that is there is never null."""


class SessionSearchArguments(_Arguments, frozen=True, kw_only=True):
    query: str
    match: Match | UnsetType = UNSET
    session_ids: list[str] | UnsetType = UNSET
    created_at_from: str | UnsetType = UNSET
    created_at_to: str | UnsetType = UNSET
    parent_session_ids: list[str] | UnsetType = UNSET
    include_root_sessions: bool | UnsetType = UNSET
    availability: list[Availability] | UnsetType = UNSET
    event_seq_from: int | UnsetType = UNSET
    event_seq_to: int | UnsetType = UNSET
    event_time_from: str | UnsetType = UNSET
    event_time_to: str | UnsetType = UNSET
    event_types: list[str] | UnsetType = UNSET
    event_surfaces: list[Surface] | UnsetType = UNSET


class EventSearchArguments(_Arguments, frozen=True, kw_only=True):
    query: str
    session_id: str | UnsetType = UNSET
    match: Match | UnsetType = UNSET
    seq_from: int | UnsetType = UNSET
    seq_to: int | UnsetType = UNSET
    time_from: str | UnsetType = UNSET
    time_to: str | UnsetType = UNSET
    event_types: list[str] | UnsetType = UNSET
    surfaces: list[Surface] | UnsetType = UNSET


class SessionTraceArguments(_Arguments, frozen=True, kw_only=True):
    session_id: str | UnsetType = UNSET


class EventTraceArguments(_Arguments, frozen=True, kw_only=True):
    seq: int
    session_id: str | UnsetType = UNSET


class EventReadArguments(_Arguments, frozen=True, kw_only=True):
    seq: int
    session_id: str | UnsetType = UNSET
    before: int = 0
    after: int = 0


ARGUMENT_TYPES: Final[dict[str, type[_Arguments]]] = {
    "session_search": SessionSearchArguments,
    "session_event_search": EventSearchArguments,
    "session_trace": SessionTraceArguments,
    "session_event_trace": EventTraceArguments,
    "session_event_read": EventReadArguments,
}
_A = TypeVar("_A", bound=_Arguments)
_FIELD: Final = re.compile(r"\$\.([a-z_]+)")
_MISSING: Final = re.compile(r"missing required field `([a-z_]+)`")


def decode_arguments(tool: str, kind: type[_A], raw: object) -> _A:
    """Return the arguments of ``tool``, detached from ``raw``.

    Raises: ToolError: INVALID_ARGS for anything but an object, a missing or mistyped property, or a
    word outside a closed set. The message names the property, never its value (SPEC 10.3.1, 16.8).
    """
    if not isinstance(raw, dict):
        raise ToolError(ToolCode.INVALID_ARGS, "Invalid arguments: they must be a JSON object.")
    known = {name: raw[name] for name in kind.__struct_fields__ if name in raw}
    for name, value in known.items():
        if _expects_integer(tool, name) and type(value) is float and math.isfinite(value):
            known[name] = int(value) if value.is_integer() else value
    try:
        return msgspec.convert(known, kind)
    except msgspec.ValidationError as error:
        defect = str(error)
    raise ToolError(ToolCode.INVALID_ARGS, f"Invalid arguments: {_explain(tool, defect)}")


def concurrency(tool: str, raw: object) -> Concurrency:
    """Return the scheduling class of one call; invalid arguments are exclusive (SPEC 10.1.2)."""
    try:
        decode_arguments(tool, ARGUMENT_TYPES[tool], raw)
    except ToolError:
        return "exclusive"
    return SPECS[tool].concurrency


def _properties(tool: str) -> dict[str, dict[str, JSON]]:
    return SPECS[tool].properties


def _expects_integer(tool: str, name: str) -> bool:
    return _properties(tool)[name]["type"] == "integer"


def _explain(tool: str, defect: str) -> str:
    missing = _MISSING.search(defect)
    if missing is not None:
        return f"`{missing[1]}` is required."
    field = _FIELD.search(defect)
    if field is None:
        return "they do not fit the schema."
    return f"`{field[1]}` must be {_kind_words(_properties(tool)[field[1]])}."


def _kind_words(schema: dict[str, JSON]) -> str:
    words = schema.get("enum")
    if isinstance(words, list):
        return "one of " + ", ".join(map(str, words))
    if schema["type"] == "array":
        items = schema["items"]
        words = items.get("enum") if isinstance(items, dict) else None
        return "a list of " + (", ".join(map(str, words)) if isinstance(words, list) else "strings")
    return {"string": "a string", "integer": "an integer", "boolean": "true or false"}[str(schema["type"])]
