"""JSON Schema for every message, generated from the message types.

``schema.json`` beside this module is the checked-in copy of ``schema_text()``; a test holds one against
the other, so a change of a message is a visible change of the file.
"""

from __future__ import annotations

from typing import Final, cast

import msgspec

from ..json_value import JSON
from .messages import CLIENT_MESSAGES, SERVER_MESSAGES

SCHEMA_ID: Final = "urn:session-query:wire:v1"


def wire_schema() -> dict[str, JSON]:
    """The schema of both directions (JSON Schema 2020-12).

    ``$defs`` holds one entry per message, ``ClientMessage`` and ``ServerMessage`` the two unions. A frame
    of the JSON encoding is valid against the union of its direction. A MessagePack frame has the same
    shape, except that ``part.data`` is raw bytes.
    """
    _, defs = msgspec.json.schema_components(
        [*CLIENT_MESSAGES, *SERVER_MESSAGES], ref_template="#/$defs/{name}"
    )
    unions = {"ClientMessage": CLIENT_MESSAGES, "ServerMessage": SERVER_MESSAGES}
    for name, kinds in unions.items():
        defs[name] = {"oneOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in kinds]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "session-query wire protocol, version 1",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in unions],
        "$defs": cast("JSON", dict(sorted(defs.items()))),
    }


def schema_text() -> str:
    """``wire_schema()`` as it is checked in: two spaces of indent, one newline at the end."""
    return msgspec.json.format(msgspec.json.encode(wire_schema()), indent=2).decode() + "\n"
