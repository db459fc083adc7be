"""Frames to messages and back, in JSON (text frames) and MessagePack (binary frames).

Decoding has a fast way (msgspec, straight into the message type) and, for JSON, a slow one for what
msgspec refuses although it is JSON: any nesting depth, lone surrogates in escapes, ``4.0`` where an
integer is meant. The slow way costs some twenty times as much, so a caller with an event loop runs it in
a thread for large frames: ``decode_quickly`` answers None when only the slow way can tell.
"""

from __future__ import annotations

from typing import Final, Generic, Literal, TypeAlias, TypeVar, cast

import msgspec

from ..json_codec import JsonError, decode_json, encode_json
from ..json_decode import decode_json_slowly
from ..json_value import JSON, is_safe_integer, whole
from .codes import WireCode, WireError
from .limits import SUBPROTOCOL_JSON, SUBPROTOCOL_MSGPACK
from .messages import CLIENT_MESSAGES, SERVER_MESSAGES, ClientMessage, Message, Part, ServerMessage, tag_of
from .plain import encodable, json_defect

Encoding: TypeAlias = Literal["json", "msgpack"]
Frame: TypeAlias = str | bytes
M = TypeVar("M", bound=Message)

_DETAIL_CHARS: Final = 200
"""A defect may quote what the peer sent (an unknown field, say): its own data, but not endlessly."""


class FrameError(WireError):
    """The frame is no message. ``id`` is the request it meant, where that could still be read."""

    def __init__(self, code: WireCode, message: str, frame_id: int | None = None) -> None:
        super().__init__(code, message)
        self.id = frame_id


class Codec(Generic[M]):
    """Decodes one direction's messages and encodes any message, in one encoding. Stateless."""

    def __init__(self, encoding: Encoding, union: object, kinds: tuple[type[Message], ...]) -> None:
        self.encoding: Final = encoding
        self._union = union
        self._tags = frozenset(tag_of(kind) for kind in kinds)
        self._bearing = {kind: _json_fields(kind) for kind in kinds}
        self._encoder: Final = msgspec.json.encode if encoding == "json" else msgspec.msgpack.encode
        self._from_json = cast("msgspec.json.Decoder[M]", msgspec.json.Decoder(union))
        self._from_msgpack = cast("msgspec.msgpack.Decoder[M]", msgspec.msgpack.Decoder(union))

    @property
    def subprotocol(self) -> str:
        return SUBPROTOCOL_JSON if self.encoding == "json" else SUBPROTOCOL_MSGPACK

    def decode(self, frame: Frame) -> M:
        """Decode a whole frame.

        Raises: FrameError: BAD_FRAME (not of this encoding, not a message, a field missing, unknown or
            of the wrong type), or UNKNOWN_MESSAGE (an object whose ``type`` is none of ours).
        """
        message = self.decode_quickly(frame)
        return self.decode_slowly(frame) if message is None else message

    def decode_quickly(self, frame: Frame) -> M | None:
        """As ``decode``, but None if a slow look is needed first. Never raises for a valid message."""
        if isinstance(frame, str) != (self.encoding == "json"):
            raise FrameError(WireCode.BAD_FRAME, "text frames carry JSON, binary frames MessagePack")
        try:
            if isinstance(frame, str):
                return self._from_json.decode(frame)
            message = self._from_msgpack.decode(frame)
        except (msgspec.MsgspecError, RecursionError, UnicodeError, ValueError, TypeError):
            return None
        return self.checked(message)

    def decode_slowly(self, frame: Frame, *, value_by_value: bool = False) -> M:
        """As ``decode``, for a frame that ``decode_quickly`` could not decide. Pure Python, linear.

        Args: value_by_value: do not try the fast decoder first, which would hold up an event loop.
        """
        fields = self._object(frame, value_by_value=value_by_value)
        frame_id = fields.get("id")
        known_id = frame_id if is_safe_integer(frame_id) and frame_id >= 0 else None
        tag = fields.get("type")
        if not isinstance(tag, str):
            raise FrameError(WireCode.BAD_FRAME, "a message is an object with a text `type`", known_id)
        if tag not in self._tags:
            raise FrameError(WireCode.UNKNOWN_MESSAGE, "unknown message type", known_id)
        try:
            message = cast("M", msgspec.convert(fields, self._union))
        except (msgspec.ValidationError, RecursionError) as exc:
            raise FrameError(WireCode.BAD_FRAME, detail(exc), known_id) from None
        return self.checked(message)

    def encode(self, message: Message) -> bytes:
        """The message's bytes: UTF-8 JSON text, or MessagePack. Lone surrogates become U+FFFD.

        Raises: WireError: TOO_LARGE for a value nested too deeply for MessagePack (about 900 levels;
            JSON has no such limit).
        """
        data = self.encode_quickly(message)
        return self.encode_slowly(message) if data is None else data

    def encode_quickly(self, message: Message) -> bytes | None:
        """As ``encode``, but None for lone surrogates, deep nesting, long integers: they take long."""
        try:
            return self._encoder(message)
        except (UnicodeEncodeError, RecursionError, OverflowError):
            return None

    def encode_slowly(self, message: Message) -> bytes:
        """As ``encode``, for any message. Pure Python, linear."""
        try:
            return self._encoder(_careful(message, self.encoding))
        except RecursionError:
            raise WireError(
                WireCode.TOO_LARGE, "nested too deeply for MessagePack; use the JSON encoding"
            ) from None

    def _object(self, frame: Frame, *, value_by_value: bool) -> dict[str, JSON]:
        from_text = decode_json_slowly if value_by_value else decode_json
        try:
            value = from_text(frame) if isinstance(frame, str) else msgspec.msgpack.decode(frame)
        except (JsonError, msgspec.MsgspecError, RecursionError, ValueError, TypeError) as exc:
            raise FrameError(WireCode.BAD_FRAME, f"not {self.encoding}: {detail(exc)}") from None
        if not isinstance(value, dict):
            raise FrameError(WireCode.BAD_FRAME, "a message is an object with a text `type`")
        return {key: cast("JSON", whole(member)) for key, member in value.items()}

    def checked(self, message: M) -> M:
        """The message. Raises: FrameError: BAD_FRAME if MessagePack has put into it what is no JSON."""
        if self.encoding == "json":
            return message
        for name in self._bearing[type(message)]:
            if defect := json_defect(getattr(message, name)):
                raise FrameError(WireCode.BAD_FRAME, f"`{name}` holds {defect}", getattr(message, "id", None))
        return message


def _json_fields(kind: type[Message]) -> tuple[str, ...]:
    """Names of the fields that hold any JSON; MessagePack may have put more than JSON into them.

    A part's data is left out: there it is bytes, and whoever puts parts together looks at its type.
    """
    return tuple(
        field.name
        for field in msgspec.structs.fields(kind)
        if kind is not Part and "AnyType()" in repr(msgspec.inspect.type_info(field.type))
    )


def _careful(node: object, encoding: Encoding) -> object:
    """``node`` with its plain values made encodable. Recurses over our own message types only."""
    if isinstance(node, msgspec.Struct):
        fields = {name: _careful(getattr(node, name), encoding) for name in node.__struct_fields__}
        return msgspec.structs.replace(node, **fields)
    if isinstance(node, list) and node and isinstance(node[0], msgspec.Struct):
        return [_careful(item, encoding) for item in node]
    plain = encodable(cast("JSON", node), int64=encoding == "msgpack")
    if encoding == "msgpack":
        return plain
    return msgspec.Raw(encode_json(plain)) if isinstance(plain, (dict, list)) else plain


def detail(exc: BaseException) -> str:
    """What a decoder says is wrong, cut to a size that may be sent."""
    if isinstance(exc, RecursionError):
        return "nested too deeply"
    text = str(exc)
    return text if len(text) <= _DETAIL_CHARS else text[:_DETAIL_CHARS] + "…"


ENCODINGS: Final[tuple[Encoding, ...]] = ("json", "msgpack")

SERVER_CODECS: Final[dict[Encoding, Codec[ClientMessage]]] = {
    encoding: Codec(encoding, ClientMessage, CLIENT_MESSAGES) for encoding in ENCODINGS
}
"""What the server uses: it decodes clients' messages."""

CLIENT_CODECS: Final[dict[Encoding, Codec[ServerMessage]]] = {
    encoding: Codec(encoding, ServerMessage, SERVER_MESSAGES) for encoding in ENCODINGS
}
"""What a client uses: it decodes the server's messages."""


def choose_encoding(offered: tuple[str, ...]) -> Encoding | None:
    """The encoding of the first subprotocol we speak; JSON if none is asked for; None if all are foreign."""
    if not offered:
        return "json"
    for name in offered:
        if name == SUBPROTOCOL_JSON:
            return "json"
        if name == SUBPROTOCOL_MSGPACK:
            return "msgpack"
    return None
