"""Appending is safe to repeat: what a batch means, given what is already stored (SPEC 1.3, 16.13).

Pure decisions. Whoever owns the journal asks ``overlap`` which stored events it must look at, compares
them, and lets ``judge`` say which part of the batch is new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import attrs

from ..json_codec import deep_equal
from ..json_value import JSON, SAFE_INTEGER_MAX, is_safe_integer, whole
from .codes import WireCode, WireError

END_SEED: Final = "session/end-seed"

IsStored = Callable[[int, JSON], bool]
"""``is_stored(seq, event)``: is the stored event ``seq`` equal to this one of the batch?"""


@attrs.frozen
class Verdict:
    """``events[skip:]`` are new and start at ``first_new``; ``through_seq`` is what to acknowledge.

    ``skip == len(events)`` means that nothing is to be written: the batch was a repetition.
    """

    skip: int
    first_new: int
    through_seq: int


def overlap(stored_length: int, from_seq: int, count: int) -> range:
    """The seqs of a batch of ``count`` events that are already stored and must be compared."""
    return range(min(from_seq, stored_length), min(from_seq + count, stored_length))


def judge(stored_length: int, from_seq: int, events: Sequence[JSON], is_stored: IsStored) -> Verdict:
    """Decide about a batch.

    Args: stored_length: events in the journal, so the seq a plain append starts at. is_stored: asked only
        for the seqs of ``overlap``, ascending, until the first difference.
    Raises: WireError: INVALID_EVENT (an event's own ``seq`` is not its place in the batch, or the batch
        leaves the range of safe integers), SEQ_GAP (``from_seq`` beyond the end), SEQ_CONFLICT.
    """
    check_seqs(from_seq, events)
    if from_seq > stored_length:
        raise WireError(WireCode.SEQ_GAP, f"the log ends before {from_seq}: next is {stored_length}")
    known = overlap(stored_length, from_seq, len(events))
    _compare(known, events, is_stored)
    return Verdict(len(known), from_seq + len(known), from_seq + len(events) - 1)


def judge_prefix(stored_length: int, events: Sequence[JSON], is_stored: IsStored) -> None:
    """Decide about the ``events`` of an attach to a session that is already stored (a stored prefix).

    Raises: WireError: INVALID_EVENT as ``judge``; SEQ_CONFLICT if they are no stored prefix.
    """
    check_seqs(0, events)
    if len(events) > stored_length:
        raise WireError(WireCode.SEQ_CONFLICT, f"the seed is longer than the log of {stored_length} events")
    _compare(range(len(events)), events, is_stored)


def check_seqs(from_seq: int, events: Sequence[JSON]) -> None:
    """An event may leave ``seq`` out; if it has one it says its place. Raises: WireError: INVALID_EVENT."""
    if from_seq + len(events) - 1 > SAFE_INTEGER_MAX:
        raise WireError(WireCode.INVALID_EVENT, "the batch leaves the range of safe integers")
    for seq, event in enumerate(events, from_seq):
        if isinstance(event, dict) and "seq" in event:
            own = whole(event["seq"])
            if not is_safe_integer(own) or own != seq:
                raise WireError(WireCode.INVALID_EVENT, f"the event at {seq} names another seq")


def needs_end_seed(seed: Sequence[JSON]) -> bool:
    """True if a session created with this seed gets an end-seed marker after it (SPEC 1.3.3)."""
    last = seed[-1] if seed else None
    return not (isinstance(last, dict) and last.get("type") == END_SEED)


def same_event(stored: JSON, sent: JSON) -> bool:
    """Equality of envelopes as JSON; ``sent`` may leave ``seq`` out."""
    if isinstance(stored, dict) and isinstance(sent, dict) and "seq" not in sent:
        stored = {key: value for key, value in stored.items() if key != "seq"}
    return deep_equal(stored, sent)


def _compare(known: range, events: Sequence[JSON], is_stored: IsStored) -> None:
    for place, seq in enumerate(known):
        if not is_stored(seq, events[place]):
            raise WireError(WireCode.SEQ_CONFLICT, f"another event is stored at {seq}")
