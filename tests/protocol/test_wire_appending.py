"""Appending is safe to repeat (SPEC 1.3, 16.13), against a model that writes one event at a time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import append_model
from session_query.protocol.wire.appending import (
    Verdict,
    judge,
    judge_prefix,
    needs_end_seed,
    overlap,
    same_event,
)
from session_query.protocol.wire.codes import WireCode, WireError

LETTERS = st.lists(st.sampled_from("ab"), max_size=6)


def outcome(stored: list[Any], from_seq: int, events: list[Any]) -> tuple[str, list[Any]]:
    asked: list[int] = []

    def is_stored(seq: int, event: Any) -> bool:
        asked.append(seq)
        return bool(stored[seq] == event)

    try:
        verdict = judge(len(stored), from_seq, events, is_stored)
    except WireError as error:
        return {WireCode.SEQ_GAP: "gap", WireCode.SEQ_CONFLICT: "conflict"}[error.code], stored
    finally:
        assert asked == list(overlap(len(stored), from_seq, len(events)))[: len(asked)]
    assert verdict.first_new == len(stored) or verdict.skip == len(events)
    assert verdict.through_seq == from_seq + len(events) - 1
    return "ok", stored + events[verdict.skip :]


@given(LETTERS, st.integers(0, 8), LETTERS)
@settings(max_examples=200, deadline=None)
def test_it_does_what_writing_one_by_one_does(stored: list[str], from_seq: int, events: list[str]) -> None:
    assert outcome(stored, from_seq, events) == append_model.append(stored, from_seq, events)


@given(LETTERS, LETTERS)
@settings(max_examples=50, deadline=None)
def test_repeating_changes_nothing(stored: list[str], events: list[str]) -> None:
    said, log = outcome(stored, len(stored), events)
    assert (said, log) == ("ok", stored + events)
    assert outcome(log, len(stored), events) == ("ok", log)


@pytest.mark.parametrize(
    ("stored", "from_seq", "events", "verdict"),
    [
        (0, 0, [], Verdict(0, 0, -1)),
        (3, 3, [], Verdict(0, 3, 2)),
        (3, 1, [], Verdict(0, 1, 0)),
        (3, 3, ["x"], Verdict(0, 3, 3)),
        (3, 2, ["x", "y"], Verdict(1, 3, 3)),
        (3, 0, ["x"], Verdict(1, 1, 0)),
    ],
)
def test_worked_batches(stored: int, from_seq: int, events: list[Any], verdict: Verdict) -> None:
    assert judge(stored, from_seq, events, lambda seq, event: True) == verdict


@pytest.mark.parametrize("own", [1, -1, 4.5, "0", None, True, 2**53])
def test_an_event_that_names_another_place_is_invalid(own: object) -> None:
    with pytest.raises(WireError) as caught:
        judge(0, 0, [{"seq": own}], lambda seq, event: True)  # type: ignore[dict-item]
    assert caught.value.code is WireCode.INVALID_EVENT


def test_a_whole_float_names_its_place() -> None:
    assert judge(4, 4, [{"seq": 4.0}, {"seq": 5}, {}], lambda seq, event: True) == Verdict(0, 4, 6)


def test_the_batch_stays_inside_safe_integers() -> None:
    with pytest.raises(WireError) as caught:
        judge(0, 2**53 - 1, [{}, {}], lambda seq, event: True)
    assert caught.value.code is WireCode.INVALID_EVENT


def test_a_gap_says_where_the_log_ends_and_nothing_else() -> None:
    with pytest.raises(WireError) as caught:
        judge(3, 7, [{"data": "secret"}], lambda seq, event: True)
    assert (caught.value.code, caught.value.message) == (WireCode.SEQ_GAP, "the log ends before 7: next is 3")


def test_a_seed_on_attaching_again_must_be_a_stored_prefix() -> None:
    stored = ["a", "b"]
    for seed in ([], ["a"], ["a", "b"]):
        judge_prefix(2, seed, lambda seq, event: stored[seq] == event)
    for seed in (["b"], ["a", "b", "c"]):
        with pytest.raises(WireError) as caught:
            judge_prefix(2, seed, lambda seq, event: stored[seq] == event)
        assert caught.value.code is WireCode.SEQ_CONFLICT


def test_a_seed_gets_its_marker_unless_it_ends_in_one() -> None:
    assert needs_end_seed([])
    assert needs_end_seed([{"type": "user/message"}])
    assert not needs_end_seed([{"type": "user/message"}, {"type": "session/end-seed"}])


def test_equality_is_json_equality_and_seq_may_be_left_out() -> None:
    stored = {"type": "x", "seq": 3, "time": 4, "data": {"a": 1, "b": [True]}}
    assert same_event(stored, {"data": {"b": [True], "a": 1.0}, "time": 4, "type": "x"})
    assert same_event(stored, stored)
    assert not same_event(stored, {**stored, "data": {"a": 1, "b": [1]}})
    assert not same_event(stored, {**stored, "ignorable": True})
