"""Hypothesis strategies and deep shapes for JSON values."""

from __future__ import annotations

from hypothesis import strategies as st

from session_query.protocol.json_value import JSON

scalars: st.SearchStrategy[JSON] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: x != 0 or str(x) == "0.0"),
    st.text(st.characters(exclude_categories=()).filter(lambda c: not "\udc00" <= c <= "\udfff"), max_size=8),
)

json_values: st.SearchStrategy[JSON] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def nested_list(depth: int, core: JSON = None) -> JSON:
    """``core`` inside ``depth`` lists."""
    value = core
    for _ in range(depth):
        value = [value]
    return value


def nested_dict(depth: int, core: JSON = None) -> JSON:
    """``core`` inside ``depth`` objects with the key ``k``."""
    value = core
    for _ in range(depth):
        value = {"k": value}
    return value
