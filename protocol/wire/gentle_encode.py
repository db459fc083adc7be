"""Encoding a value that holds very much beside an event loop, without holding that up.

As in decoding (``gentle``): an encoder written in C keeps the interpreter to itself until it has ended, also
in a thread, 60 to 100 ms for the 44 MB of a session of 60,000 events. So the value is encoded in runs of
members that hold some thousands of values together; between them everybody else has a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import attrs
import msgspec

from ..json_value import JSON
from ..weight import is_heavy, weigh
from .codec import Codec, Encoding
from .messages import Answer, ClientMessage, Value

STEP_VALUES: Final = 20_000
"""What one call into C may go through: some ms."""


DEPTH_MAX: Final = 64
"""Heavy values inside each other, each weighed anew, that are taken apart; below it, value by value."""

_Members: TypeAlias = Iterator[tuple[bytes, list[JSON]]]
"""Members of a container, some at a time, with what stands before them."""


@attrs.frozen
class _Form:
    """How an encoding joins members. ``head``: what begins a list (or a mapping) of so many members."""

    encode: Callable[[object], bytes]
    head: Callable[[int, bool], bytes]
    between: bytes
    after_key: bytes
    list_end: bytes
    mapping_end: bytes


def holds_much(answer: Answer) -> bool:
    """Whether an encoder in C would hold an event loop up with it. Only values of queries are that large."""
    return type(answer) is Value and is_heavy((answer.value,), STEP_VALUES)


def encode_gently(codec: Codec[ClientMessage], answer: Answer) -> bytes:
    """As ``codec.encode``, in steps of a few milliseconds; for a thread. Raises: as ``codec.encode``."""
    if not isinstance(answer, Value):
        return codec.encode_slowly(answer)
    try:
        value = b"".join(_pieces(_FORMS[codec.encoding], answer.value))
    except (UnicodeEncodeError, RecursionError, OverflowError):
        return codec.encode_slowly(answer)
    raw: object = msgspec.Raw(value)
    return codec.encode(Value(id=answer.id, value=raw))  # type: ignore[arg-type]  # it is encoded already


def _pieces(form: _Form, value: JSON) -> Iterator[bytes]:
    """The value's bytes, none of them from more than a step's work. Raises: RecursionError: it is deep."""
    open_: list[tuple[_Members, bytes]] = []
    heavy = _heavy(value)
    if heavy is None:
        yield form.encode(value)
    while heavy is not None or open_:
        if heavy is not None:
            if len(open_) == DEPTH_MAX:
                raise RecursionError("heavy members inside heavy members inside ...")
            members, end = _opened(form, heavy)
            yield form.head(len(heavy), isinstance(heavy, dict))
        else:
            members, end = open_.pop()
        heavy = None
        for before, run in members:
            yield before
            heavy = _heavy(run[0]) if len(run) == 1 else None
            if heavy is not None:
                open_.append((members, end))
                break
            yield _bare(form, run)
        if heavy is None:
            yield end


def _heavy(value: JSON) -> list[JSON] | dict[str, JSON] | None:
    """The value if it is to be taken apart."""
    return value if isinstance(value, (list, dict)) and is_heavy((value,), STEP_VALUES) else None


def _opened(form: _Form, value: list[JSON] | dict[str, JSON]) -> tuple[_Members, bytes]:
    if isinstance(value, dict):
        return _keyed(form, value), form.mapping_end
    return _runs(form, value), form.list_end


def _keyed(form: _Form, mapping: dict[str, JSON]) -> _Members:
    """Each member with its key before it."""
    between = b""
    for key, member in mapping.items():
        yield between + form.encode(key) + form.after_key, [member]
        between = form.between


def _runs(form: _Form, members: list[JSON]) -> _Members:
    """Members of a list, as many together as make one step; a heavy one alone."""
    between = b""
    run: list[JSON] = []
    held = 0
    for member in members:
        weight = weigh((member,), STEP_VALUES)
        if run and held + weight > STEP_VALUES:
            yield between, run
            between = form.between
            run, held = [], 0
        run.append(member)
        held += weight
    if run:
        yield between, run


def _bare(form: _Form, run: list[JSON]) -> bytes:
    """The members of a list without what begins and ends it."""
    data = form.encode(run)
    return data[len(form.head(len(run), False)) : len(data) - len(form.list_end)]


def _json_head(_: int, is_mapping: bool) -> bytes:
    return b"{" if is_mapping else b"["


def _msgpack_head(size: int, is_mapping: bool) -> bytes:
    if size < 16:
        return bytes(((0x80 if is_mapping else 0x90) | size,))
    if size < 65_536:
        return bytes((0xDE if is_mapping else 0xDC,)) + size.to_bytes(2, "big")
    return bytes((0xDF if is_mapping else 0xDD,)) + size.to_bytes(4, "big")


_FORMS: Final[dict[Encoding, _Form]] = {
    "json": _Form(msgspec.json.encode, _json_head, b",", b":", b"]", b"}"),
    "msgpack": _Form(msgspec.msgpack.encode, _msgpack_head, b"", b"", b"", b""),
}
