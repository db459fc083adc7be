"""Cursors: opaque page continuations (SPEC 6.9, 16.1.6).

A cursor is URL-safe base64 over a JSON object. It is no secret and grants nothing: whoever presents it
sends the whole request again, and every filter and authority check runs again.
"""

from __future__ import annotations

import base64
import json
import math
from typing import Final, NoReturn, TypeAlias

import attrs
import msgspec

from .errors import Code, QueryError
from .fingerprint import Scope
from .json_value import is_safe_integer
from .records import TIERS, Tier

RankKey: TypeAlias = int | float | str
_VERSION: Final = 1
_CURSOR_CHARS_MAX: Final = 65_536  # session ids have no length limit; this bounds the decoding work


class Position(msgspec.Struct, frozen=True):
    """The last hit of a page: its tier and its rank keys, as the engine ordered by them."""

    tier: Tier
    keys: tuple[RankKey, ...]


@attrs.frozen
class Binding:
    """What a cursor is valid for: one engine instance, one scope, one request."""

    instance: str
    scope: Scope
    fingerprint: str


@attrs.frozen
class Cursor:
    """A cursor that belongs to the present request. ``generation`` is still to be compared."""

    generation: str
    position: Position

    def at(self, generation: str) -> Position:
        """Return the position if the corpus has not moved.

        Raises: QueryError: STALE_CURSOR if ``generation`` differs (SPEC 6.9.5).
        """
        if self.generation != generation:
            raise QueryError(Code.STALE_CURSOR, "the history changed between two pages")
        return self.position


def encode_cursor(binding: Binding, generation: str, position: Position) -> str:
    """Return the text of a cursor that continues after ``position``."""
    payload = {
        "v": _VERSION,
        "i": binding.instance,
        "s": binding.scope,
        "f": binding.fingerprint,
        "g": generation,
        "t": position.tier,
        "k": list(position.keys),
    }
    text = json.dumps(payload, ensure_ascii=True, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode("ascii")).decode("ascii").rstrip("=")


def decode_cursor(text: str, binding: Binding) -> Cursor:
    """Return the cursor in ``text`` if it was made for ``binding``.

    Raises: QueryError: INVALID_CURSOR for text that does not decode, a payload of another shape, or
    another version, instance, scope or request (SPEC 6.9.4); never anything else, whatever the text.
    """
    payload = _payload(text)
    bound = {"v": _VERSION, "i": binding.instance, "s": binding.scope, "f": binding.fingerprint}
    if any(
        type(payload.get(key)) is not type(value) or payload[key] != value for key, value in bound.items()
    ):
        _refuse()
    generation, tier, keys = payload.get("g"), payload.get("t"), payload.get("k")
    if type(generation) is not str or type(tier) is not str or tier not in TIERS or type(keys) is not list:
        _refuse()
    if not all(_is_rank_key(key) for key in keys):
        _refuse()
    return Cursor(generation, Position(tier, tuple(keys)))


def _payload(text: str) -> dict[str, object]:
    if len(text) > _CURSOR_CHARS_MAX or not text.isascii():
        _refuse()
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        payload = json.loads(raw.decode("ascii"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise QueryError(Code.INVALID_CURSOR, "the cursor does not decode") from error
    if type(payload) is not dict:
        _refuse()
    return payload


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _is_rank_key(key: object) -> bool:
    return type(key) is str or is_safe_integer(key) or (type(key) is float and math.isfinite(key))


def _refuse() -> NoReturn:
    raise QueryError(Code.INVALID_CURSOR, "the cursor belongs to another engine, scope or request")
