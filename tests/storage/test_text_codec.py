"""Packed texts come back, short or long, whole or in part, whichever codec packed them."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from session_query.storage.text_codec import TextCodec
from session_query.storage.text_dictionary import DICTIONARY


@given(st.lists(st.text(max_size=40), max_size=20), st.integers(0, 3))
def test_texts_come_back(texts: list[str], copies: int) -> None:
    codec, other = TextCodec(), TextCodec()
    run = texts * copies
    packed = codec.pack(run)
    found = other.unpack(packed)
    assert len(found) == len(run)
    wanted = list(range(0, len(run) + 3, 2))
    assert other.unpack_some(packed, wanted) == found[::2]
    assert found == [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in run]


def test_long_and_short_data_of_every_kind_come_back() -> None:
    codec, other = TextCodec(), TextCodec()
    rng = random.Random(2)
    for size in (0, 1, 24, 25, 24_000, 60_000, 3_000_000):
        for data in (
            rng.randbytes(size),
            (DICTIONARY * (size // len(DICTIONARY) + 1))[:size],
            (b"words that come again " * (size // 22 + 1))[:size],
            bytes(size),
        ):
            assert other.unpack_bytes(codec.pack_bytes(data)) == data


def test_what_is_packed_tightly_comes_back_whatever_its_length() -> None:
    codec, other = TextCodec(), TextCodec()
    rng = random.Random(3)
    line = " ".join(
        f"{rng.getrandbits(32):x}" for _ in range(5_000)
    )  # 43 KB: more than short data looks back
    for texts in ([""], ["a", "b" * 23_000], ["é" * 99_000], [line], [line * 9], ["x" * 3_000_000, "y"]):
        packed = codec.pack_tightly([7] * (len(texts) - 1), texts)
        steps, data = other.unpack_steps(packed)
        assert steps == [7] * (len(texts) - 1)
        assert other.texts_in(data) == texts
        assert other.count_in(data) == len(texts)
    assert len(codec.pack_tightly([], [line * 9])) < 1.1 * len(codec.pack_tightly([], [line]))


def test_short_texts_of_the_usual_kind_are_half_as_large_for_the_dictionary() -> None:
    text = "Here is a summary of the changes I've made: all tests are passing now. Let me run them again."
    assert len(TextCodec().pack([text])) < len(text) // 2
