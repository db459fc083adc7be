"""SPEC 1.2.2: lossless JSON, without recursion on its depth."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_query.protocol.json_codec import (
    JsonError,
    _defect,
    canonical_json,
    decode_json,
    deep_copy,
    deep_equal,
    encode_json,
    indent_chars,
    lossless_defect,
    pretty_json,
    to_utf8,
    to_utf8_text,
)
from session_query.protocol.json_decode import _decode_slowly
from session_query.protocol.json_value import JSON
from support.json_values import json_values, nested_dict, nested_list

DEEP = 100_000

MALFORMED = [
    b"",
    b" ",
    b"{",
    b"[",
    b"[1,]",
    b"[1 2]",
    b'{"a":1,}',
    b'{"a"}',
    b'{"a" 1}',
    b"{1:2}",
    b"{,}",
    b"[,]",
    b"]",
    b"}",
    b"[1}",
    b'{"a":1]',
    b"01",
    b"-",
    b"1.",
    b".5",
    b"1e",
    b"+1",
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"nul",
    b"True",
    b"'a'",
    b'"',
    b'"a',
    b'"\\x"',
    b'"\\u12"',
    b'"\t"',
    b'"\x00"',
    b"1 2",
    b"[1] x",
    b"null,",
    b"\xef\xbb\xbf{}",
    b'"\xff"',
    b'"\xc3"',
    b"1e999",
    b"-1e999",
    b"1" * 5000,
]


@pytest.mark.parametrize("data", MALFORMED, ids=lambda d: repr(d[:12]))
def test_malformed_text_is_refused_by_both_parsers(data: bytes) -> None:
    with pytest.raises(JsonError):
        decode_json(data)
    with pytest.raises(JsonError):
        _decode_slowly(data, strict=False)
    with pytest.raises(JsonError):
        decode_json(b"[" * 1500 + data)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b" \t\r\n[ ] ", []),
        (b"{ }", {}),
        (b'[{},[],"",0]', [{}, [], "", 0]),
        (b'{"a":{"b":[1,2.5,-3e2,true,false,null]}}', {"a": {"b": [1, 2.5, -300.0, True, False, None]}}),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
        (b'"\\ud83d\\ude00 \\u00e9\\n"', "\U0001f600 é\n"),
        (b'"\\ud800x"', "\ud800x"),
        (b'"\xed\xa0\x80"', "\ud800"),
    ],
    ids=lambda v: repr(v)[:24],
)
def test_values_survive_in_both_parsers(data: bytes, value: JSON) -> None:
    for got in (decode_json(data), _decode_slowly(data, strict=False), decode_json(data, strict=True)):
        assert got == value
        assert repr(got) == repr(value)  # types and key order too


def test_text_input_is_the_same_as_bytes() -> None:
    assert decode_json('{"é":[1,"\ud800"]}') == {"é": [1, "\ud800"]}
    with pytest.raises(JsonError, match="negative zero"):
        decode_json('{"é":-0}', strict=True)


@pytest.mark.parametrize("parse", [decode_json, lambda d: _decode_slowly(d, strict=False)])
def test_of_duplicate_keys_the_last_wins(parse: object) -> None:
    assert callable(parse)
    value = parse(b'{"a":1,"b":2,"a":3}')
    assert list(value.items()) == [("a", 3), ("b", 2)]


@pytest.mark.parametrize(
    "data",
    [b"-0", b"[-0]", b'{"a":-0.0}', b"-0e5", b"[1,-0.000e-3 ]", b"-1e-400", b"-0." + b"0" * 400 + b"1"],
)
def test_negative_zero_is_refused_where_losslessness_counts(data: bytes) -> None:
    assert deep_equal(decode_json(data), decode_json(data))
    with pytest.raises(JsonError, match="negative zero"):
        decode_json(data, strict=True)


@pytest.mark.parametrize(
    "data", [b'"-0"', b'["a -0, b"]', b"-0.5", b"[0,0.0,1e-400]", b"-1e-12", b'{"-0":1}']
)
def test_false_alarms_of_negative_zero_pass(data: bytes) -> None:
    assert decode_json(data, strict=True) == decode_json(data)


@given(json_values)
@settings(max_examples=150)
def test_encode_then_decode_gives_the_same_value(value: JSON) -> None:
    data = encode_json(value)
    for got in (decode_json(data), _decode_slowly(data, strict=True), json.loads(data)):
        assert repr(got) == repr(value)
    assert canonical_json(value) == canonical_json(decode_json(data))


@given(json_values)
@settings(max_examples=100)
def test_pretty_is_the_standard_indented_form(value: JSON) -> None:
    plain = json.loads(to_utf8_text(json.dumps(value, ensure_ascii=False)))
    pretty = pretty_json(plain)
    lines = pretty.split("\n")
    assert all((len(line) - len(line.lstrip(" "))) % 2 == 0 for line in lines)
    assert repr(decode_json(pretty)) == repr(plain)
    assert "".join(line.strip(" ") for line in lines).count("\n") == 0


def test_pretty_examples() -> None:
    value: dict[str, JSON] = {"b": [], "a": {}, "é": [1, {"x": "日本"}], "n": None}
    want = (
        '{\n  "b": [],\n  "a": {},\n  "é": [\n    1,\n    {\n      "x": "日本"\n    }\n  ],\n  "n": null\n}'
    )
    assert pretty_json(value) == want
    assert pretty_json({**value, "z": "\ud800"}) == want[:-2] + ',\n  "z": "\ufffd"\n}'


def test_pretty_at_a_depth_that_msgspec_refuses_is_still_the_standard_form() -> None:
    lines = pretty_json(nested_dict(2000, [1])).split("\n")
    assert lines[0] == "{"
    assert lines[1] == '  "k": {'
    assert lines[2000] == " " * 4000 + '"k": ['
    assert lines[2001] == " " * 4002 + "1"
    assert lines[2002] == " " * 4000 + "]"
    assert lines[-1] == "}"
    assert len(lines) == 2000 * 2 + 3


def test_a_pretty_bomb_stays_within_a_small_multiple_of_its_size() -> None:
    for bomb in (nested_list(DEEP), nested_list(900, [1] * 100_000)):
        assert indent_chars(bomb) > 100_000_000
        text = pretty_json(bomb)
        assert len(text) < 2_000_000
        assert deep_equal(decode_json(text), bomb)
        assert text.startswith("[\n  [\n    [")


@pytest.mark.parametrize("build", [nested_list, nested_dict])
def test_depth_is_no_limit(build: object) -> None:
    assert callable(build)
    depth = DEEP if build is nested_list else 20_000
    a, b = build(depth, "x"), build(depth, "y")
    data = encode_json(a)
    assert len(data) >= depth * 2
    assert deep_equal(decode_json(data), a)
    assert deep_equal(decode_json(data, strict=True), a)
    assert not deep_equal(a, b)
    copied = deep_copy(a)
    assert copied is not a
    assert deep_equal(copied, a)
    assert lossless_defect(a) is None
    assert canonical_json(a) == data


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (4, 4.0, True),
        (1, True, False),
        (0, False, False),
        (1.0, True, False),
        (True, True, True),
        (None, False, False),
        (None, 0, False),
        ("1", 1, False),
        ([], {}, False),
        ({}, [], False),
        ([1], [1, 2], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": None}, {}, False),
        ([1, 2], [2, 1], False),
        ({"a": [4]}, {"a": [4.0]}, True),
        ("", [], False),
        (0, [], False),
        (2**53 + 1, float(2**53), False),
        ({"a": True}, {"a": 1}, False),
    ],
)
def test_equality(a: JSON, b: JSON, same: bool) -> None:
    assert deep_equal(a, b) is same
    assert deep_equal(b, a) is same
    assert (canonical_json(a) == canonical_json(b)) is same


def test_a_copy_shares_no_container() -> None:
    inner: list[JSON] = [1]
    value: dict[str, JSON] = {"a": inner, "b": {"c": inner}}
    copied = deep_copy(value)
    inner.append(2)
    assert copied == {"a": [1], "b": {"c": [1]}}
    assert deep_copy("text") == "text"


def test_canonical_leaves_its_argument_alone() -> None:
    value: JSON = {"b": 1.0, "a": [{"d": 1, "c": 2}]}
    assert canonical_json(value) == b'{"a":[{"c":2,"d":1}],"b":1}'
    assert repr(value) == "{'b': 1.0, 'a': [{'d': 1, 'c': 2}]}"


class _Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "defect"),
    [
        (math.nan, "a number that is not finite"),
        (math.inf, "a number that is not finite"),
        (-0.0, "a negative zero"),
        ({"a": [-0.0]}, "a negative zero"),
        ((1,), "a value of type tuple"),
        (b"x", "a value of type bytes"),
        ({1: 2}, "a key that is not text"),
        (_Text("x"), "a value of type _Text"),
        ([{"a": object()}], "a value of type object"),
        (10**5000, "an integer too long"),
        ({_Text("a"): 1}, "a key that is not text"),
    ],
    ids=[*"abcdefghijk"],
)
def test_what_is_not_lossless(value: object, defect: str) -> None:
    assert lossless_defect(value) == defect


def test_cycles_are_refused_and_shared_parts_are_not() -> None:
    shared: list[JSON] = [1]
    assert lossless_defect({"a": shared, "b": [shared, shared]}) is None
    loop: list[JSON] = []
    loop.append({"a": loop})
    assert lossless_defect(loop) == "a cycle"


_HOSTILE = st.sampled_from(
    [math.nan, -0.0, 0.5, 1 << 14_100, 1 << 63, -(1 << 64), (1,), b"x", _Text("x"), object()]
)
_HOSTILE_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | _HOSTILE,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2) | st.integers(), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(_HOSTILE_VALUES)
@settings(max_examples=200)
def test_the_quick_look_and_the_close_one_agree(value: object) -> None:
    assert lossless_defect(value) == _defect(value)


@pytest.mark.parametrize("count", [9_999, 10_000, 10_001, 30_000])
def test_values_too_large_for_the_quick_look_are_judged_alike(count: int) -> None:
    values: list[object] = [[] for _ in range(count)]
    assert lossless_defect(values) is None
    assert lossless_defect([*values, [math.nan]]) == "a number that is not finite"


@given(json_values)
@settings(max_examples=100)
def test_every_json_value_is_lossless(value: JSON) -> None:
    assert lossless_defect(value) is None
    assert deep_equal(deep_copy(value), value)


def test_lone_surrogates_when_encoding() -> None:
    assert encode_json({"\ud800": 'a"\udfff\n'}) == b'{"\\ud800":"a\\"\\udfff\\n"}'
    assert to_utf8_text("a\ud800b\udc00") == "a\ufffdb\ufffd"
    assert to_utf8("a\ud800é") == "a\ufffdé".encode()
    assert to_utf8_text("plain") == "plain"
