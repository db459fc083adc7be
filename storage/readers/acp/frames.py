"""JSON-RPC frames as captures hold them: bare, or wrapped with a time and a direction."""

from __future__ import annotations

from typing import Final

import attrs

from ....protocol.json_value import JSON
from ..corelog.shapes import dict_of, text_of
from ..corelog.times import epoch_ms

_WRAPS: Final = ("message", "payload", "data", "msg", "frame", "body")
_TIMES: Final = ("timestamp", "time", "ts", "at")
_UPDATE: Final = "session/update"


@attrs.frozen
class Frame:
    """One frame: a request or notification (``method``), or a response (``result`` or ``error``).

    ``key`` is the frame's id as text, empty for a notification. ``vendor`` tells a method that begins
    with an underscore; its name is given without the vendor's part.
    """

    method: str
    key: str
    params: dict[str, JSON]
    result: JSON
    error: dict[str, JSON] | None
    time_ms: int | None

    @property
    def session_id(self) -> str:
        return text_of(self.params.get("sessionId"))

    @property
    def update(self) -> dict[str, JSON]:
        """The update of ``session/update``, empty for every other frame."""
        return dict_of(self.params.get("update"))


def frame_of(obj: dict[str, JSON]) -> Frame | None:
    """The frame a record holds, or None if it is none."""
    inner = obj
    if not _is_frame(obj):
        inner = next((dict_of(obj.get(key)) for key in _WRAPS if _is_frame(dict_of(obj.get(key)))), {})
    if not inner:
        return None
    key = inner.get("id")
    update = dict_of(dict_of(inner.get("params")).get("update"))
    method = text_of(inner.get("method"))
    if method.startswith("_") and method.endswith(_UPDATE):
        method = _UPDATE
    if not method and "sessionUpdate" in update:
        method = _UPDATE
    return Frame(
        method=method,
        key="" if key is None else f"{type(key).__name__}:{key}",
        params=dict_of(inner.get("params")),
        result=inner.get("result"),
        error=dict_of(inner["error"]) if "error" in inner else None,
        time_ms=_time(obj) if inner is obj else _first_time(obj, inner),
    )


def _is_frame(obj: dict[str, JSON]) -> bool:
    if "sessionUpdate" in dict_of(dict_of(obj.get("params")).get("update")):
        return True
    if isinstance(obj.get("method"), str) and isinstance(obj.get("params"), dict):
        return obj.get("jsonrpc") == "2.0" or "/" in text_of(obj["method"]) or "." in text_of(obj["method"])
    return obj.get("jsonrpc") == "2.0" and ("method" in obj or "result" in obj or "error" in obj)


def _time(obj: dict[str, JSON]) -> int | None:
    return next((time for key in _TIMES if (time := epoch_ms(obj.get(key))) is not None), None)


def _first_time(outer: dict[str, JSON], inner: dict[str, JSON]) -> int | None:
    time = _time(outer)
    return time if time is not None else _time(inner)
