"""The published schema is the messages' own, and frames are valid against it."""

from __future__ import annotations

from importlib import resources

import jsonschema
import msgspec
import pytest

from session_query.protocol.wire import messages as m
from session_query.protocol.wire.codec import CLIENT_CODECS
from session_query.protocol.wire.schema import schema_text, wire_schema
from support.wire_samples import CLIENT_SAMPLES, SERVER_SAMPLES


def validator(direction: str) -> jsonschema.Draft202012Validator:
    schema = wire_schema()
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{direction}", "$defs": schema["$defs"]})


def test_the_checked_in_schema_is_the_generated_one() -> None:
    checked_in = (
        resources.files("session_query.protocol.wire").joinpath("schema.json").read_text(encoding="utf-8")
    )
    assert checked_in == schema_text()


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(wire_schema())


def test_it_names_every_message_once() -> None:
    definitions = wire_schema()["$defs"]
    assert isinstance(definitions, dict)
    for kind in (*m.CLIENT_MESSAGES, *m.SERVER_MESSAGES):
        entry = definitions[kind.__name__]
        assert entry["properties"]["type"] == {"enum": [m.tag_of(kind)]}
        assert entry["additionalProperties"] is False


@pytest.mark.parametrize("message", CLIENT_SAMPLES.values(), ids=lambda s: type(s).__name__)
def test_client_frames_are_valid(message: m.Message) -> None:
    validator("ClientMessage").validate(msgspec.json.decode(CLIENT_CODECS["json"].encode(message)))


@pytest.mark.parametrize("message", SERVER_SAMPLES.values(), ids=lambda s: type(s).__name__)
def test_server_frames_are_valid(message: m.Message) -> None:
    validator("ServerMessage").validate(msgspec.json.decode(CLIENT_CODECS["json"].encode(message)))


@pytest.mark.parametrize(
    "frame", [{"type": "detach", "id": -1, "session_id": "s"}, {"type": "detach"}, {"type": "x"}]
)
def test_what_the_server_refuses_is_invalid(frame: object) -> None:
    assert not validator("ClientMessage").is_valid(frame)
