"""Requests on a connection: aborts and deadlines, order and overlap, parts, progress, fetching."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from session_query.actors.edge.failures import AbortReason
from session_query.protocol.wire import messages as m
from session_query.protocol.wire.codec import ENCODINGS, Encoding
from support.wire_edge import Edge, Peer, event, header, open_edge
from support.wire_fake import FakeService

Clock = trio.testing.MockClock
both_encodings = pytest.mark.parametrize("encoding", ENCODINGS)


def call(request_id: int, do: str = "", tool: str = "read", **more: Any) -> m.Call:
    wish = {"do": do, **{key: more.pop(key) for key in ("s", "n", "code") if key in more}}
    return m.Call(id=request_id, tool=tool, arguments=wish, **({"workspace": "/w"} | more))


# ---------------------------------------------------------------- aborts


@both_encodings
@pytest.mark.parametrize(
    "reason", [None, "user pressed escape", {"kind": "hook", "list": [1, [2]]}, 0, False, ""]
)
async def test_cancel_hands_the_reason_back_unchanged(encoding: Encoding, reason: Any) -> None:
    async with open_edge() as edge, edge.peer(encoding) as peer:
        await peer.send(call(1, "wait"))
        await trio.testing.wait_all_tasks_blocked()
        await peer.send(m.Cancel(id=1, reason=reason))
        error = await peer.receive()
        assert (error.id, error.code) == (1, "SESSION_QUERY_ABORTED")
        assert error.abort == m.Abort(kind="cancelled", reason=reason)
        assert edge.service.signals[0].reason == AbortReason("cancelled", reason)


async def test_the_first_reason_wins(autojump_clock: Clock) -> None:
    service = FakeService(settle_s=5.0)
    async with open_edge(service) as edge, edge.peer() as peer:
        await peer.send(call(1, "wait", deadline_ms=3000))
        await trio.testing.wait_all_tasks_blocked()
        await peer.send(m.Cancel(id=1, reason="first"))
        await peer.send(m.Cancel(id=1, reason="second"))
        error = await peer.receive()
        assert error.abort == m.Abort(kind="cancelled", reason="first")


async def test_a_cancel_overtakes_everything() -> None:
    """The lane is full, the in-flight cap is reached: the cancel still gets through."""
    async with open_edge(in_flight=3) as edge, edge.peer() as peer:
        for request_id in (1, 2, 3):
            await peer.send(call(request_id, "wait", tool="find"))
        await trio.testing.wait_all_tasks_blocked()
        await peer.send(m.Cancel(id=2, reason="queued"))
        error = await peer.receive()
        assert (error.id, error.abort.reason) == (2, "queued")
        assert len(edge.service.signals) == 1, "a request that only waited never reached the service"
        await peer.send(m.Cancel(id=1))
        assert (await peer.receive()).id == 1
        await peer.send(m.Cancel(id=3))
        assert (await peer.receive()).id == 3
        assert len(edge.service.signals) == 2


async def test_a_cancel_for_something_else_is_nothing() -> None:
    async with open_edge() as edge, edge.peer() as peer:
        await peer.send(m.Cancel(id=77))
        await peer.ask(call(1))
        await peer.send(m.Cancel(id=1))
        assert isinstance(await peer.ask(call(1)), m.Result)


@pytest.mark.parametrize(
    ("tool", "deadline_ms", "expected_ms"),
    [("find", None, 30_000), ("find", 1500, 1500), ("find", 60_000, 30_000), ("read", 40, 40)],
)
async def test_the_smaller_deadline_ends_a_call(
    tool: str, deadline_ms: int | None, expected_ms: int, autojump_clock: Clock
) -> None:
    async with open_edge() as edge, edge.peer() as peer:
        before = trio.current_time()
        error = await peer.ask(call(1, "wait", tool=tool, deadline_ms=deadline_ms))
        assert trio.current_time() - before == pytest.approx(expected_ms / 1000)
        assert error.code == "TOOL_TIMEOUT"
        assert str(expected_ms) in error.message
        assert error.abort == m.Abort(kind="deadline", reason={"code": "TOOL_TIMEOUT", "ms": expected_ms})


async def test_a_deadline_only_notifies(autojump_clock: Clock) -> None:
    """The call is awaited to its end, and then the expiry is what is told (SPEC 12.2.2)."""
    async with open_edge() as edge, edge.peer() as peer:
        before = trio.current_time()
        error = await peer.ask(call(1, "stubborn", s=7, deadline_ms=1000))
        assert trio.current_time() - before == pytest.approx(7)
        assert error.code == "TOOL_TIMEOUT"


async def test_a_deadline_counts_the_time_in_line(autojump_clock: Clock) -> None:
    async with open_edge() as edge, edge.peer() as peer:
        await peer.send(call(1, "stubborn", tool="find", s=5))
        await peer.send(call(2, tool="find", deadline_ms=1000))
        error = await peer.receive()
        assert (error.id, error.code) == (2, "TOOL_TIMEOUT")
        assert isinstance(await peer.receive(), m.Result)


async def test_a_tool_without_deadline_may_take_its_time(autojump_clock: Clock) -> None:
    async with open_edge(keepalive_timeout_s=1e6) as edge, edge.peer() as peer:
        assert isinstance(await peer.ask(call(1, "stubborn", s=5000)), m.Result)


async def test_a_write_that_happened_is_told_as_done() -> None:
    class Slow(FakeService):
        async def append(self, *args: Any) -> int:
            through = await super().append(*args)
            with trio.CancelScope(shield=True):
                await self.gate.wait()
            return through

    async with open_edge(Slow()) as edge, edge.peer() as peer:
        await peer.ask(m.Attach(id=1, session=header()))
        await peer.send(m.Append(id=2, session_id="s1", from_seq=0, events=[event("x")]))
        await trio.testing.wait_all_tasks_blocked()
        await peer.send(m.Cancel(id=2))
        await trio.testing.wait_all_tasks_blocked()
        edge.service.gate.set()
        assert await peer.receive() == m.Appended(id=2, through_seq=0)


async def test_a_lost_connection_aborts_what_runs() -> None:
    async with open_edge() as edge:
        async with edge.peer() as peer:
            await peer.send(call(1, "wait"))
            await peer.send(call(2, "wait"))
            await trio.testing.wait_all_tasks_blocked()
            assert edge.service.running == 2
            await trio.aclose_forcefully(peer.stream)
        await edge.settled()
        assert edge.service.running == 0
        assert [signal.reason.kind for signal in edge.service.signals] == ["disconnected"] * 2  # type: ignore[attr-defined]


async def test_a_handler_that_does_not_notice_is_cancelled_in_the_end(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_edge(settle_s=4.0) as edge:
        async with edge.peer() as peer:
            await peer.send(call(1, "deaf"))
            await trio.testing.wait_all_tasks_blocked()
        before = trio.current_time()
        await edge.settled()
        assert trio.current_time() - before == pytest.approx(4.0)
    assert "goes on without its peer" in caplog.text


# ---------------------------------------------------------------- order and limits


async def find_order(edge: Edge, peer: Peer, requests: list[m.Message]) -> list[int]:
    for request in requests:
        await peer.send(request)
    await trio.testing.wait_all_tasks_blocked()
    edge.service.gate.set()
    return [(await peer.receive()).id for _ in requests]


async def test_exclusive_calls_of_one_caller_keep_order_and_never_overlap() -> None:
    async with open_edge() as edge, edge.peer() as peer:
        order = await find_order(edge, peer, [call(n, "gate", tool="find") for n in range(10)])
        assert order == list(range(10))
        assert edge.service.most_running == 1


async def test_parallel_calls_overlap_and_do_not_wait_for_exclusive_ones() -> None:
    async with open_edge() as edge, edge.peer() as peer:
        await peer.send(call(1, "gate", tool="find"))
        await trio.testing.wait_all_tasks_blocked()
        assert isinstance(await peer.ask(call(2)), m.Result)
        for n in range(3, 6):
            await peer.send(call(n, "gate"))
        await trio.testing.wait_all_tasks_blocked()
        assert edge.service.running == 4
        edge.service.gate.set()
        assert {(await peer.receive()).id for _ in range(4)} == {1, 3, 4, 5}


async def test_exclusive_calls_of_different_callers_overlap() -> None:
    async with open_edge() as edge, edge.peer(hello="op") as peer:
        for n, workspace in enumerate(("/a", "/b", "/a")):
            await peer.send(call(n, "gate", tool="find", workspace=workspace))
        await trio.testing.wait_all_tasks_blocked()
        assert edge.service.running == 2
        edge.service.gate.set()
        assert {(await peer.receive()).id for _ in range(3)} == {0, 1, 2}


async def test_searches_by_query_stand_in_line_and_reads_do_not() -> None:
    async with open_edge() as edge, edge.peer(hello="read") as peer:
        held: Any = {"query": {"do": "gate"}}
        for n in (1, 2):
            await peer.send(m.Query(id=n, method="search_sessions", params=held))
        await trio.testing.wait_all_tasks_blocked()
        assert edge.service.running == 1
        assert (await peer.ask(m.Query(id=3, method="read_session", params={"session_id": "s"}))).id == 3
        edge.service.gate.set()
        assert [(await peer.receive()).id for _ in range(2)] == [1, 2]


async def test_above_the_cap_the_answer_is_busy() -> None:
    async with open_edge(in_flight=2) as edge, edge.peer() as peer:
        await peer.send(call(1, "gate"))
        await peer.send(call(2, "gate"))
        await trio.testing.wait_all_tasks_blocked()
        busy = await peer.ask(call(3))
        assert (busy.code, busy.retry_after_ms) == ("BUSY", 100)
        edge.service.gate.set()
        assert {(await peer.receive()).id for _ in range(2)} == {1, 2}
        assert isinstance(await peer.ask(call(3)), m.Result)


async def test_an_id_in_use_is_refused_without_touching_its_owner() -> None:
    async with open_edge() as edge, edge.peer() as peer:
        await peer.send(call(5, "gate"))
        await trio.testing.wait_all_tasks_blocked()
        await peer.send(call(5))
        error = await peer.receive()
        assert (error.code, error.id) == ("BAD_FRAME", None)
        assert "5" in error.message
        edge.service.gate.set()
        assert isinstance(await peer.receive(), m.Result)
        assert isinstance(await peer.ask(call(5)), m.Result)


async def test_progress_comes_to_who_follows_and_not_too_often(autojump_clock: Clock) -> None:
    async with open_edge() as edge, edge.peer() as peer:
        await peer.send(call(1, "count", n=100, s=0.01, follow=True))
        news: list[m.Progress] = []
        while isinstance(message := await peer.receive(), m.Progress):
            news.append(message)
        assert isinstance(message, m.Result)
        assert news[0] == m.Progress(id=1, done=0, total=100, unit="events")
        assert 8 <= len(news) <= 11
        assert [item.done for item in news] == sorted(item.done for item in news)


async def test_nobody_who_does_not_follow_gets_progress(caplog: pytest.LogCaptureFixture) -> None:
    async with open_edge() as edge, edge.peer() as peer:
        assert (await peer.ask(call(1, "count", n=3))).code == "INTERNAL"  # the fake insists on a listener
    caplog.clear()


@both_encodings
async def test_large_answers_come_in_parts_and_small_ones_pass_between(encoding: Encoding) -> None:
    async with open_edge(part_bytes=1000, unsent_bytes=5000) as edge, edge.peer(encoding) as peer:
        await peer.send(call(1, "big", n=40_000))
        await peer.send(call(2))
        frames = []
        parts: list[m.Part] = []
        while not parts or not parts[-1].last:
            frames.append(peer.codec.decode(await peer.socket.get_message()))
            parts += [frames[-1]] if isinstance(frames[-1], m.Part) else []
        assert len(parts) > 80
        assert [part.n for part in parts] == list(range(len(parts)))
        assert not isinstance(frames[-1], m.Result)
        assert any(isinstance(frame, m.Result) and frame.id == 2 for frame in frames[:-1])
        whole = (b"" if encoding == "msgpack" else "").join(part.data for part in parts)  # type: ignore[arg-type, attr-defined]
        answer = peer.codec.decode(whole)
        assert isinstance(answer, m.Result)
        assert answer.text == "é" * 40_000


async def test_an_answer_beyond_all_bounds_is_too_large() -> None:
    async with open_edge(answer_bytes=10_000) as edge, edge.peer() as peer:
        assert (await peer.ask(call(1, "big", n=6_000))).code == "TOO_LARGE"
        assert isinstance(await peer.ask(call(2, "big", n=4_000)), m.Result)


async def test_a_value_too_deep_for_msgpack_is_an_error_and_passes_in_json() -> None:
    deep: list[Any] = []
    for _ in range(3000):
        deep = [deep]
    service = FakeService(values={"list_sessions": deep})
    async with (
        open_edge(service) as edge,
        edge.peer("msgpack", hello="read") as packed,
        edge.peer(hello="read") as plain,
    ):
        assert (await packed.ask(m.Query(id=1, method="list_sessions"))).code == "TOO_LARGE"
        assert isinstance(await plain.ask(m.Query(id=1, method="list_sessions")), m.Value)


async def test_fetch_belongs_to_the_token_and_cuts_on_code_points() -> None:
    service = FakeService(spilled={"loc": ("id-run", "aé𝄞z".encode())})
    async with (
        open_edge(service, fetch_bytes=4) as edge,
        edge.peer() as mine,
        edge.peer(hello="run2") as other,
    ):
        first = await mine.ask(m.Fetch(id=1, locator="loc"))
        assert first == m.Chunk(id=1, offset_bytes=0, next_offset=3, total_bytes=8, last=False, data="aé")
        second = await mine.ask(m.Fetch(id=2, locator="loc", offset_bytes=3, limit_bytes=999))
        assert (second.data, second.last) == ("𝄞", False)
        third = await mine.ask(m.Fetch(id=3, locator="loc", offset_bytes=7))
        assert (third.data, third.next_offset, third.last) == ("z", 8, True)
        refusals = [
            await other.ask(m.Fetch(id=1, locator="loc")),
            await mine.ask(m.Fetch(id=1, locator="none")),
        ]
        assert {error.code for error in refusals} == {"FORBIDDEN"}
        assert len({error.message for error in refusals}) == 1


async def test_hundreds_of_requests_at_once_are_each_answered_once() -> None:
    async with open_edge(in_flight=500) as edge, edge.peer() as peer:
        for n in range(300):
            await peer.send(call(n, "gate" if n % 3 else ""))
        await trio.testing.wait_all_tasks_blocked()
        edge.service.gate.set()
        answers = [await peer.receive() for _ in range(300)]
        assert sorted(answer.id for answer in answers) == list(range(300))
        assert edge.service.running == 0
