"""How one event lies in the journal: its JSON, compressed by itself so that one event is one point read.

The first byte of a body says how to read the rest: ``RAW``, or the number of the dictionary it was
compressed with. Dictionaries are stored in the journal itself and never change, so that an old file
stays readable when the built-in one is improved.

Measured on 591 mixed real events, mean 1.7 KB: level 1 with this dictionary 0.25 of the text, 7 us to
write and 2.4 us to read; without one 0.30, the same time; level 3 0.249 and 9.5 us; level 6 0.23, 21 us.
"""

from __future__ import annotations

from typing import Final, TypeVar

import attrs
import msgspec
import zstandard
from msgspec import UNSET

from ...protocol.event import Event
from ...protocol.header import SessionHeader
from ...protocol.json_codec import decode_json, encode_json
from ...protocol.json_value import JSON
from ...protocol.records import Title

LEVEL: Final = 1
RAW: Final = 0
RAW_BELOW_BYTES: Final = 64
"""A body this short gains nothing worth the time."""
HEAD_BYTES: Final = 19
"""The dictionary's number and the longest header of a zstd frame, which tells its content's size."""
EVENT_MAX_BYTES: Final = 512 * 1024 * 1024
"""A stored event that claims to be larger is damage: SQLite itself ends at 1 GB a value."""

DICTIONARY: Final = (
    b'"todos":[{"content":"","status":"pending"},{"content":"","status":"in_progress"},{"content":"",'
    b'"status":"completed"}]}}{"type":"session/title","seq":1,"time":17,"data":{"title":"","messageSeqs":[]'
    b',"source":{"kind":"model"}}}{"type":"request/header","seq":1,"time":17,"data":{"header":{"config":{'
    b'"provider":"","model":""},"system":""},"reason":"initial"}}"usage":{"inputTokens":,"outputTokens":,'
    b'"cacheReadTokens":}"native":{"type":"","uuid":"","parentUuid":"","sessionId":"","timestamp":"2026-0'
    b'{"type":"turn/start","seq":1,"time":17,"data":{"turn":1}}{"type":"step/start","seq":1,"time":17,'
    b'"data":{"turn":1,"step":1}}{"type":"step/end","seq":1,"time":17,"data":{"turn":1,"step":1}}{"type":'
    b'"turn/end","seq":1,"time":17,"data":{"turn":1,"reason":{"kind":"completed"}}}{"type":'
    b'"assistant/chunk","seq":1,"time":17,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","text":""}}}'
    b'{"type":"tool/call","seq":1,"time":17,"data":{"turn":1,"step":1,"callId":"call_","name":"bash",'
    b'"arguments":"{\\"command\\":\\"\\",\\"file_path\\":\\"/home/"}}{"type":"tool/result","seq":1,"time":17,'
    b'"data":{"turn":1,"step":1,"message":{"id":"","role":"user","source":{"kind":"tool","callId":"call_"},'
    b'"content":[{"type":"tool-result","toolCallId":"call_","content":[{"type":"text","text":""}],'
    b'"isError":false}]},"error":{"name":"Error","code":""}},"surfaceOp":"append","sourceEventSeqs":[]}'
    b'{"type":"assistant/message","seq":1,"time":17,"data":{"turn":1,"step":1,"message":{"id":"","role":'
    b'"assistant","content":[{"type":"reasoning","text":""},{"type":"text","text":""},{"type":"tool-call",'
    b'"id":"call_","name":"","arguments":"{}"}],"source":{"kind":"model","provider":"","model":""}}},'
    b'"surfaceOp":"append","sourceEventSeqs":[]}{"type":"user/message","seq":1,"time":17,"data":{"id":"",'
    b'"role":"user","content":[{"type":"text","text":""}],"source":{"kind":"user"}},"surfaceOp":"append"}'
)

T = TypeVar("T")

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Event)


class Packer:
    """Compresses and restores bodies. Not for two threads at once: every connection has its own."""

    def __init__(self, dictionaries: dict[int, bytes], current: int) -> None:
        self._current = current
        self._loaded = {
            number: zstandard.ZstdCompressionDict(body, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
            for number, body in dictionaries.items()
        }
        self._loaded[current].precompute_compress(level=LEVEL)
        self._compress = zstandard.ZstdCompressor(
            level=LEVEL, dict_data=self._loaded[current], write_checksum=False
        ).compress
        self._decompress = {
            number: zstandard.ZstdDecompressor(dict_data=loaded).decompress
            for number, loaded in self._loaded.items()
        }

    def pack(self, plain: bytes) -> bytes:
        """The stored form of ``plain``."""
        if len(plain) >= RAW_BELOW_BYTES:
            packed = self._compress(plain)
            if len(packed) < len(plain):
                return bytes((self._current,)) + packed
        return bytes((RAW,)) + plain

    def unpack(self, body: bytes) -> bytes:
        """The bytes ``pack`` was given.

        Raises: ValueError: the body is damaged, or was compressed with a dictionary that is missing.
        """
        if not body:
            raise ValueError("an empty body")
        if body[0] == RAW:
            return body[1:]
        try:
            return self._decompress[body[0]](body[1:], max_output_size=EVENT_MAX_BYTES)
        except (KeyError, zstandard.ZstdError) as exc:
            raise ValueError(f"a body that cannot be restored: {exc}") from exc


def plain_size(head: bytes, stored_bytes: int) -> int:
    """The size of a body once restored, by its first ``HEAD_BYTES``; of a damaged one, what is stored."""
    if not head or head[0] == RAW:
        return max(0, stored_bytes - 1)
    try:
        size = zstandard.frame_content_size(head[1:])
    except zstandard.ZstdError:
        return stored_bytes
    return size if size >= 0 else stored_bytes


def encode_event(event: Event) -> bytes:
    """An event's JSON, keys in the order of its fields; any depth, lone surrogates kept as escapes."""
    try:
        return _encoder.encode(event)
    except (RecursionError, UnicodeEncodeError, OverflowError):
        fields: dict[str, JSON] = {
            name: value
            for name, value in (
                ("type", event.type),
                ("seq", event.seq),
                ("time", event.time),
                ("data", event.data),
                ("surfaceOp", event.surface_op),
                ("sourceEventSeqs", event.source_event_seqs),
                ("ignorable", event.ignorable),
            )
            if value is not UNSET
        }
        return encode_json(fields)


def decode_event(plain: bytes) -> Event:
    """The event that ``encode_event`` wrote.

    Raises: ValueError: the bytes are no event of ours; the file was damaged.
    """
    try:
        return _decoder.decode(plain)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return _convert(plain, Event)


def encode_header(header: SessionHeader) -> bytes:
    """All fields of a header, absent ones left out; no field is forgotten (SPEC 14 L17)."""
    return encode_json({name: value for name, value in attrs.asdict(header).items() if value is not None})


def decode_header(plain: bytes) -> SessionHeader:
    """The header that ``encode_header`` wrote."""
    return _convert(plain, SessionHeader)


def encode_title(title: Title | None) -> bytes | None:
    """A source's title beside the log (SPEC 16.6.7), or None."""
    if title is None:
        return None
    return encode_json({**attrs.asdict(title, recurse=False), "message_seqs": list(title.message_seqs)})


def decode_title(plain: bytes | None) -> Title | None:
    """The title that ``encode_title`` wrote."""
    return None if plain is None else _convert(plain, Title)


def _convert(plain: bytes, kind: type[T]) -> T:
    try:
        return msgspec.convert(decode_json(plain), kind)
    except msgspec.MsgspecError as exc:
        raise ValueError(f"a body that is no {kind.__name__}") from exc
