"""From the bytes of one record to a JSON value that is safe to keep.

Real logs hold what JSON writers should not write: half a UTF-8 character, a lone surrogate, a raw
control character, ``NaN``. None of it may cost the record, and none of it may leave here: a decoded
value holds no surrogate and no non-finite number, so every later encoder takes it.
"""

from __future__ import annotations

import json
import math
from typing import Final, cast

import msgspec

from ...protocol.json_codec import decode_json
from ...protocol.json_value import JSON

_SURROGATES: Final = dict.fromkeys(range(55296, 57344), "�")
_fast = msgspec.json.Decoder()


def _null(_: str) -> None:
    """``NaN`` and ``Infinity`` have no JSON value; ``null`` is what JSON writers put in their place."""
    return


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


# strict=False admits raw control characters inside strings (binary tool output written unescaped).
LENIENT: Final = json.JSONDecoder(parse_constant=_null, parse_float=_finite, strict=False)


def lenient_text(raw: bytes) -> str:
    """Decode so that nothing fails and byte offsets can be had back (``surrogateescape``)."""
    return raw.decode("utf-8", "surrogateescape")


def decode_record(raw: bytes) -> JSON:
    """Return the JSON value that ``raw`` holds, and nothing but it.

    Bytes that are no UTF-8 and lone surrogates become U+FFFD; numbers out of range become null.

    Raises: ValueError: ``raw`` is not one whole JSON value.
    """
    try:
        return cast(JSON, _fast.decode(raw))
    except (msgspec.DecodeError, RecursionError):
        return _slowly(lenient_text(raw))


def _slowly(text: str) -> JSON:
    try:
        return clean(cast(JSON, LENIENT.decode(text)))
    except RecursionError:
        return clean(decode_json(text))  # iterative, so as deep as it gets


def clean(value: JSON) -> JSON:
    """Replace every surrogate inside ``value`` by U+FFFD, in place where it can. Never recursive."""
    if isinstance(value, str):
        return value.translate(_SURROGATES)
    stack: list[list[JSON] | dict[str, JSON]] = []
    if isinstance(value, (list, dict)):
        stack.append(value)
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            dirty = [key for key in node if not _is_clean(key)]
            if dirty:
                whole = {key.translate(_SURROGATES): item for key, item in node.items()}
                node.clear()
                node.update(whole)
        for key, item in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(item, str):
                if not _is_clean(item):
                    node[key] = item.translate(_SURROGATES)  # type: ignore[index]
            elif isinstance(item, (list, dict)):
                stack.append(item)
    return value


def _is_clean(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
