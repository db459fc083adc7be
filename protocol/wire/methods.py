"""The operations a ``query`` may name, with their parameters (SPEC 4-9).

Only the shape is judged here: a known method, an object, no missing or unknown parameter, session ids
that are text. Filters, queries, limits, cursors and windows stay raw; the service judges them in its own
order and with its own codes (SPEC 6.1.1). Presence is kept: a ``null`` cursor is not an absent one.
"""

from __future__ import annotations

from typing import Final

import attrs

from ..json_value import JSON
from .codes import WireCode, WireError


@attrs.frozen(kw_only=True)
class Method:
    """``searches``: runs on the search engine, one at a time and in order for each connection (SPEC 16.5).

    ``operator_only``: other roles are answered ``FORBIDDEN``.
    """

    name: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    searches: bool = False
    operator_only: bool = False
    known: frozenset[str] = attrs.field(init=False, repr=False)

    @known.default
    def _known(self) -> frozenset[str]:
        return frozenset((*self.required, *self.optional))


SESSION_IDS_MAX: Final = 10_000
"""Ids of one batch: each takes some 50 us, and a program may ask again."""

_SEARCH: Final = ("event_filters", "match", "limit", "cursor")
_FIND: Final = ("event_filters", "match", "limit")
_FIND_SESSIONS: Final = ("session_filters", "workspaces", *_FIND)

METHODS: Final[dict[str, Method]] = {
    method.name: method
    for method in (
        Method(name="list_sessions"),
        Method(name="filter_sessions", required=("filters",)),
        Method(name="filter_events", required=("session_id", "filters")),
        Method(
            name="search_sessions", required=("query",), optional=("session_filters", *_SEARCH), searches=True
        ),
        Method(name="search_events", required=("session_id", "query"), optional=_SEARCH, searches=True),
        Method(name="trace_session", required=("session_id",)),
        Method(name="trace_event", required=("session_id", "seq")),
        Method(name="list_events", required=("session_id",)),
        Method(name="read_surface", required=("session_id",)),
        Method(name="read_session", required=("session_id",)),
        Method(name="read_event", required=("session_id", "seq"), optional=("before", "after")),
        Method(name="read_title", required=("session_id",)),
        Method(name="read_titles", required=("session_ids",)),
        Method(name="health"),
        Method(name="statistics", operator_only=True),
        Method(name="metrics", operator_only=True),
        Method(name="workspaces", operator_only=True),
        Method(name="sessions", optional=("workspaces", "limit"), operator_only=True),
        Method(name="find_sessions", required=("query",), optional=_FIND_SESSIONS, operator_only=True),
        Method(name="find_events", required=("session_id", "query"), optional=_FIND, operator_only=True),
        Method(name="lineage", required=("session_id",), operator_only=True),
        Method(name="events", required=("session_id",), operator_only=True),
        Method(name="event_trace", required=("session_id", "seq"), operator_only=True),
        Method(
            name="event", required=("session_id", "seq"), optional=("before", "after"), operator_only=True
        ),
        Method(name="index", optional=("full",), operator_only=True),
        Method(name="sources", operator_only=True),
        Method(name="add_source", required=("format", "path"), operator_only=True),
        Method(name="drop_source", required=("format", "path"), operator_only=True),
        Method(name="doctor", optional=("samples",), operator_only=True),
        Method(name="forget", required=("session_id",), operator_only=True),
    )
}


def find_method(name: str) -> Method:
    """The method called ``name``. Raises: WireError: UNKNOWN_MESSAGE."""
    method = METHODS.get(name)
    if method is None:
        raise WireError(WireCode.UNKNOWN_MESSAGE, "unknown query method")
    return method


def check_params(method: Method, params: JSON) -> dict[str, JSON]:
    """The parameters as a mapping; null counts as no parameters.

    Raises: WireError: INVALID_ARGS: not an object; a parameter missing, then unknown; a session id that
        is no text, or ``session_ids`` that is no list of at most 10,000 of them. (``search_events`` leaves
        its target to the service, whose code for that is its own: SPEC 6.1.1.)
    """
    given = {} if params is None else params
    if not isinstance(given, dict):
        raise WireError(WireCode.INVALID_ARGS, "`params` must be an object")
    for name in method.required:
        if name not in given:
            raise WireError(WireCode.INVALID_ARGS, f"`params.{name}` is missing")
    if not given.keys() <= method.known:
        raise WireError(WireCode.INVALID_ARGS, f"`{method.name}` has no such parameter")
    if "session_id" in given and not method.searches and not isinstance(given["session_id"], str):
        raise WireError(WireCode.INVALID_ARGS, "`params.session_id` must be text")
    ids = given.get("session_ids", [])
    if isinstance(ids, list) and len(ids) > SESSION_IDS_MAX:
        raise WireError(WireCode.INVALID_ARGS, f"at most {SESSION_IDS_MAX} `params.session_ids` at once")
    if not isinstance(ids, list) or not all(isinstance(item, str) for item in ids):
        raise WireError(WireCode.INVALID_ARGS, "`params.session_ids` must be a list of texts")
    return given
