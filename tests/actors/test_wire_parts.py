"""The edge's small parts on their own: lanes, outbox, throttle, what is told of a failure."""

from __future__ import annotations

import random
from collections import deque

import pytest
import trio
import trio.testing

from session_query.actors.counted_stream import CountedStream
from session_query.actors.edge.backpressure import Outbox, OutboxClosed, SlowPeer
from session_query.actors.edge.failures import AbortReason, abort_error, failure_error
from session_query.actors.edge.lanes import Lanes, Ticket
from session_query.actors.edge.tokens import Throttle
from session_query.protocol.errors import Code, QueryError
from session_query.protocol.wire.parts import split_answer


@pytest.mark.parametrize("seed", range(20))
def test_lanes_serve_in_order_whoever_leaves_when(seed: int) -> None:
    rng = random.Random(seed)
    lanes = Lanes()
    model: dict[str, deque[Ticket]] = {"a": deque(), "b": deque()}
    for _ in range(200):
        key = rng.choice("ab")
        line = model[key]
        if rng.random() < 0.5:
            line.append(lanes.enter(key))
        elif line:
            leaving = rng.choice(line)  # the one being served, or one that gave up waiting
            line.remove(leaving)
            leaving.leave()
            leaving.leave()
        for waiting in model.values():
            assert [ticket.ready.is_set() for ticket in waiting] == [n == 0 for n in range(len(waiting))]
    assert len(lanes) == sum(1 for line in model.values() if line)


async def test_the_outbox_makes_answers_wait_and_small_frames_not() -> None:
    box = Outbox(100)
    await box.put(b"x" * 500)  # one frame may be larger than all the room
    assert box.crowded
    order: list[str] = []

    async def answer(name: str) -> None:
        await box.room()
        await box.put(name.encode() * 60)
        order.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer, "a")
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(SlowPeer):
            box.put_nowait(b"small")
        box.sent(await box.take())
        await trio.testing.wait_all_tasks_blocked()
        assert order == ["a"]
        box.put_nowait(b"small")
        nursery.start_soon(answer, "b")
        await trio.testing.wait_all_tasks_blocked()
        assert order == ["a"], "60 and 60 do not fit into 100"
        box.sent(await box.take())
        await trio.testing.wait_all_tasks_blocked()
        assert order == ["a", "b"]
    assert [await box.take(), await box.take()] == [b"small", b"b" * 60]


async def test_a_closed_outbox_wakes_everybody() -> None:
    box = Outbox(10)
    box.put_nowait(b"x" * 20)
    ended: list[str] = []

    async def wait(name: str, *args: bytes) -> None:
        try:
            await getattr(box, name)(*args)
        except OutboxClosed:
            ended.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, "room")
        nursery.start_soon(wait, "put", b"y")
        nursery.start_soon(box.drained)
        await trio.testing.wait_all_tasks_blocked()
        box.close()
    assert sorted(ended) == ["put", "room"]
    with pytest.raises(OutboxClosed):
        box.put_nowait(b"z")
    with pytest.raises(OutboxClosed):
        await box.take()


async def test_a_cancelled_send_breaks_the_stream() -> None:
    ours, _theirs = trio.testing.lockstep_stream_pair()
    stream = CountedStream(ours)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, b"x" * 100_000)
            await trio.testing.wait_all_tasks_blocked()
            assert stream.sending
            assert not stream.broken
            scope.cancel()
    assert stream.broken
    assert stream.sent_bytes == 0
    await stream.aclose()


def test_the_throttle_forgets_hosts_and_time() -> None:
    throttle = Throttle(1.0, 60.0)
    assert [throttle.failed("a", 0) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert throttle.failed("b", 0) == 1
    assert throttle.failed("a", 1000) == 1
    for n in range(5000):
        throttle.failed(f"host{n}", 1000)
    assert len(throttle._recent) <= throttle.HOSTS_MAX
    assert throttle.failures == 5010


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("size", [4, 5, 7, 100])
def test_parts_hold_whole_code_points(text: bool, size: int) -> None:
    data = "a é 你 𝄞 ".encode() * 20
    parts = list(split_answer(1, data, size, text=text))
    pieces = [part.data for part in parts]
    whole = "".join(pieces).encode() if text else b"".join(pieces)  # type: ignore[arg-type]
    assert whole == data
    assert [part.last for part in parts] == [False] * (len(parts) - 1) + [True]
    assert all(len(piece.encode() if text else piece) <= size for piece in pieces)  # type: ignore[union-attr, arg-type]


def test_a_cyclic_cause_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    first, second = QueryError(Code.INDEX_FAILED, "secret"), ValueError("secret")
    first.__cause__, second.__cause__ = second, first
    with caplog.at_level("INFO"):
        error = failure_error(3, first, "query", for_model=False)
    assert error.code == "SESSION_QUERY_INDEX_FAILED"
    (record,) = caplog.records
    message = record.getMessage()
    assert message == (
        "query (request 3) failed with SESSION_QUERY_INDEX_FAILED: QueryError <- ValueError <- (cycle)"
    )


def test_abort_errors() -> None:
    error = abort_error(1, AbortReason.deadline(1500))
    assert (error.code, "1500 ms" in error.message) == ("TOOL_TIMEOUT", True)
    assert abort_error(1, AbortReason("shutdown")).code == "SESSION_QUERY_ABORTED"
