"""The client's core without any I/O: requests, parts, reconnects, publications over a line that breaks."""

from __future__ import annotations

import random
from typing import Any

import attrs
import pytest

from session_query.protocol.wire import client_errors as ce
from session_query.protocol.wire import messages as m
from session_query.protocol.wire.appending import judge, same_event
from session_query.protocol.wire.client_core import ClientCore
from session_query.protocol.wire.codec import ENCODINGS, SERVER_CODECS, Encoding
from session_query.protocol.wire.codes import WireError
from session_query.protocol.wire.parts import Assembly, split_answer
from session_query.protocol.wire.publication import Publication

ME = m.Software(name="tests", version="1")
both_encodings = pytest.mark.parametrize("encoding", ENCODINGS)


def welcome(in_flight: int = 64, frame_bytes: int = 1_000_000) -> m.Welcome:
    limits = m.Limits(
        frame_bytes=frame_bytes,
        frame_containers=1000,
        part_bytes=1000,
        fetch_bytes=1000,
        in_flight=in_flight,
        keepalive_ms=1000,
    )
    return m.Welcome(protocol=1, server=ME, instance="i", role="runtime", limits=limits, features=[])


@attrs.define(eq=False)
class Line:
    """A core and the other end of its line; nothing moves unless told."""

    encoding: Encoding = "json"
    core: ClientCore = attrs.field(init=False)
    later: list[Any] = attrs.field(factory=list)
    settled: dict[str, Any] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.core = ClientCore(
            self.encoding,
            "secret",
            ME,
            wake=lambda: None,
            schedule=lambda seconds, callback: self.later.append((seconds, callback)),
        )

    def up(self, **limits: int) -> None:
        self.core.connected()
        assert self.sent() == [m.Hello(client=ME, token="secret")]
        self.hear(welcome(**limits))

    def sent(self) -> list[Any]:
        """What the core has sent since the last look."""
        codec = SERVER_CODECS[self.encoding]
        frames = [self.core.outgoing.popleft() for _ in range(len(self.core.outgoing))]
        return [codec.decode(frame.decode() if self.encoding == "json" else frame) for frame in frames]

    def hear(self, message: m.Message) -> None:
        data = SERVER_CODECS[self.encoding].encode(message)
        self.core.received(data.decode() if self.encoding == "json" else data)

    def ask(self, name: str, **more: Any) -> int:
        return self.core.request(
            lambda request_id: m.Query(id=request_id, method=name),
            lambda a: self.settled.update({name: a}),
            **more,
        )


def event(n: int) -> dict[str, Any]:
    return {"type": "x", "time": n, "data": {"n": n}}


# ---------------------------------------------------------------- requests


@both_encodings
def test_requests_wait_for_the_welcome(encoding: Encoding) -> None:
    line = Line(encoding)
    first = line.ask("a")
    line.core.connected()
    assert [type(message) for message in line.sent()] == [m.Hello]
    line.ask("b")
    line.hear(welcome())
    assert [message.method for message in line.sent()] == ["a", "b"]
    line.hear(m.Value(id=first, value=[1]))
    assert line.settled == {"a": m.Value(id=first, value=[1])}


def test_the_token_does_not_stand_in_the_repr() -> None:
    assert "secret" not in repr(Line().core)


def test_unanswered_requests_are_sent_again_and_answered_ones_are_not() -> None:
    line = Line()
    line.up()
    first, second = line.ask("a"), line.ask("b")
    assert len(line.sent()) == 2
    line.hear(m.Value(id=first, value=1))
    line.core.lost()
    line.up()
    assert [message.id for message in line.sent()] == [second]


def test_the_in_flight_bound_of_the_server_is_kept() -> None:
    line = Line()
    line.up(in_flight=2)
    ids = [line.ask(str(n)) for n in range(5)]
    assert [message.id for message in line.sent()] == ids[:2]
    line.hear(m.Value(id=ids[1], value=1))
    assert [message.id for message in line.sent()] == [ids[2]]


def test_errors_are_typed() -> None:
    line = Line()
    line.up()
    for name, error, kind in (
        ("a", {"code": "FORBIDDEN"}, ce.ServerError),
        ("b", {"code": "BUSY", "retry_after_ms": 7}, ce.ServerBusy),
        (
            "c",
            {"code": "SESSION_QUERY_ABORTED", "abort": m.Abort(kind="cancelled", reason=[1])},
            ce.RequestAborted,
        ),
        ("d", {"code": "UNAUTHENTICATED"}, ce.Unauthenticated),
    ):
        request_id = line.ask(name)
        line.hear(m.Error(id=request_id, message="m", **error))  # type: ignore[arg-type]
        assert type(line.settled[name]) is kind
    assert line.settled["b"].retry_after_ms == 7
    assert (line.settled["c"].kind, line.settled["c"].reason) == ("cancelled", [1])


def test_progress_reaches_who_asked() -> None:
    line, news = Line(), []
    line.up()
    request_id = line.ask("a", on_progress=news.append)
    line.ask("b")
    for known in (request_id, request_id + 1, 999):
        line.hear(m.Progress(id=known, done=1, unit="x"))
    assert [item.id for item in news] == [request_id]


def test_cancelling() -> None:
    line = Line()
    line.up(in_flight=1)
    sent, waiting = line.ask("sent"), line.ask("waiting")
    line.sent()
    line.core.cancel(waiting, "why")
    assert line.sent() == []
    assert (line.settled["waiting"].kind, line.settled["waiting"].reason) == ("cancelled", "why")
    line.core.cancel(sent, "why")
    assert line.sent() == [m.Cancel(id=sent, reason="why")]
    assert "sent" not in line.settled, "the server's word is waited for"
    line.core.cancel(12345)
    line.core.forget(sent)
    line.hear(m.Value(id=sent, value=1))
    assert "sent" not in line.settled


@both_encodings
def test_parts_are_put_together(encoding: Encoding) -> None:
    line = Line(encoding)
    line.up()
    request_id = line.ask("a")
    answer = m.Value(id=request_id, value="é" * 500)
    data = SERVER_CODECS[encoding].encode(answer)
    for part in split_answer(request_id, data, 7, text=encoding == "json"):
        assert "a" not in line.settled
        line.hear(part)
    assert line.settled["a"] == answer


@both_encodings
def test_parts_that_do_not_fit_are_the_servers_fault(encoding: Encoding) -> None:
    good: Any = "x" if encoding == "json" else b"x"
    bad: Any = b"x" if encoding == "json" else "x"
    for parts in ([(1, good)], [(0, good), (0, good)], [(0, bad)] if encoding == "msgpack" else [(5, good)]):
        line = Line(encoding)
        line.up()
        request_id = line.ask("a")
        messages = [m.Part(id=request_id, n=n, last=False, data=data) for n, data in parts]
        for message in messages[:-1]:
            line.hear(message)
        with pytest.raises(ce.RemoteProtocolError):
            line.hear(messages[-1])


def test_parts_are_bounded() -> None:
    assembly = Assembly(True, bytes_max=10)
    assembly.add(m.Part(id=1, n=0, last=False, data="x" * 10))
    with pytest.raises(WireError):
        assembly.add(m.Part(id=1, n=1, last=True, data="x"))


def test_a_new_line_forgets_half_an_answer() -> None:
    line = Line()
    line.up()
    request_id = line.ask("a")
    line.hear(m.Part(id=request_id, n=0, last=False, data='{"type":'))
    line.core.lost()
    line.up()
    line.hear(m.Value(id=request_id, value=1))
    assert line.settled["a"].value == 1


@pytest.mark.parametrize("frame", ["{", "[]", '{"type":"hello"}', b"\x80", '{"type":"welcome"}'])
def test_a_server_without_manners_is_found_out(frame: Any) -> None:
    line = Line()
    line.up()
    with pytest.raises(ce.RemoteProtocolError):
        line.core.received(frame)


def test_a_second_welcome_is_out_of_order() -> None:
    line = Line()
    line.up()
    with pytest.raises(ce.RemoteProtocolError):
        line.hear(welcome())


def test_refusals_are_final_and_complaints_are_kept() -> None:
    line = Line()
    line.core.connected()
    with pytest.raises(ce.Unauthenticated):
        line.hear(m.Error(code="UNAUTHENTICATED", message="no"))
    line = Line()
    line.up()
    line.hear(m.Error(code="BAD_FRAME", message="m"))
    assert [error.code for error in line.core.complaints] == ["BAD_FRAME"]
    with pytest.raises(ce.Unauthenticated):
        line.hear(m.Error(code="UNAUTHENTICATED", message="revoked"))


def test_going_away_holds_requests_back_for_the_next_line() -> None:
    line = Line()
    line.up()
    first = line.ask("first")
    line.sent()
    line.hear(m.Goaway(reason="r", grace_ms=5))
    second = line.ask("second")
    assert line.sent() == []
    third = line.ask("third")
    line.hear(m.Error(id=first, code="SHUTTING_DOWN", message="m"))
    stopped = m.Abort(kind="shutdown")
    line.hear(m.Error(id=third, code="SESSION_QUERY_ABORTED", message="m", abort=stopped))
    assert line.settled == {}
    line.core.lost()
    line.up()
    assert {message.id for message in line.sent()} == {first, second, third}


def test_giving_up_settles_everything_once() -> None:
    line = Line()
    line.up()
    line.ask("a")
    publication = line.core.publish({"id": "s"})
    told: list[Any] = []
    publication.wait_all(told.append)
    line.core.give_up()
    line.core.give_up()
    assert isinstance(line.settled["a"], ce.ConnectionLost)
    assert [type(item) for item in told] == [ce.ConnectionLost]
    with pytest.raises(ce.ConnectionLost):
        line.ask("b")
    with pytest.raises(ce.ConnectionLost):
        publication.put([event(1)])


def test_what_cannot_be_sent_is_refused_here() -> None:
    line = Line()
    line.up(frame_bytes=1000)
    with pytest.raises(ce.LocalProtocolError, match="1000 are allowed"):
        line.core.request(lambda n: m.Query(id=n, method="x" * 2000), print)
    with pytest.raises(ce.LocalProtocolError):
        line.core.request(lambda n: m.Query(id=n, method="m", params=object()), print)  # type: ignore[arg-type]


# ---------------------------------------------------------------- publishing


@both_encodings
def test_a_publication_from_seed_to_detach(encoding: Encoding) -> None:
    line = Line(encoding)
    line.up()
    publication = line.core.publish({"id": "s", "createdAt": 1}, [event(0)])
    (attach,) = line.sent()
    assert (attach.session, attach.events) == ({"id": "s", "createdAt": 1}, [event(0)])
    assert publication.next_seq == -1
    told: list[Any] = []
    publication.put([event(1), event(2)], told.append)
    line.core.pump(publication)
    assert line.sent() == [], "nothing is appended before the attach is answered"
    line.hear(m.Attached(id=attach.id, session_id="s", next_seq=2))
    (append,) = line.sent()
    assert (append.from_seq, append.events) == (2, [event(1), event(2)])
    assert publication.next_seq == 4
    publication.put([event(3)], told.append)
    line.core.pump(publication)
    assert line.sent() == [], "one batch at a time"
    line.hear(m.Appended(id=append.id, through_seq=3))
    assert told == [None]
    (append,) = line.sent()
    assert append.from_seq == 4
    line.hear(m.Appended(id=append.id, through_seq=4))
    assert told == [None, None]
    assert (publication.acknowledged_seq, publication.queued_bytes) == (5, 0)
    gone: list[Any] = []
    line.core.unpublish(publication, gone.append)
    (detach,) = line.sent()
    line.hear(m.Detached(id=detach.id))
    assert gone == [m.Detached(id=detach.id)]


def test_handing_nothing_over_is_told_when_all_before_it_is_committed() -> None:
    line = Line()
    line.up()
    publication = line.core.publish({"id": "s", "createdAt": 1})
    told: list[Any] = []
    publication.put([], lambda error: told.append(("attached", error)))
    assert told == [], "the session is not there yet"
    (attach,) = line.sent()
    line.hear(m.Attached(id=attach.id, session_id="s", next_seq=0))
    publication.put([], lambda error: told.append(("nothing", error)))
    assert told == [("attached", None), ("nothing", None)]
    publication.put([event(1)])
    publication.put([], lambda error: told.append(("behind one", error)))
    line.core.pump(publication)
    assert len(told) == 2
    (append,) = line.sent()
    line.hear(m.Appended(id=append.id, through_seq=0))
    assert told[2:] == [("behind one", None)]


def test_events_are_copied_and_checked_when_handed_over() -> None:
    publication = Publication({"id": "s"}, "json", 1000)
    mine: dict[str, Any] = {"type": "x", "time": 1, "data": {"list": [1]}}
    publication.put([mine])
    mine["data"]["list"].append(2)
    publication.attached("s", 0)
    message = publication.append_message(1)
    assert message is not None
    assert (
        SERVER_CODECS["json"]
        .encode(message)
        .endswith(b'"events":[{"type":"x","time":1,"data":{"list":[1]}}]}')
    )
    for bad in (float("nan"), -0.0, object(), {1: 2}, b"x", "y" * 2000):
        with pytest.raises(ce.LocalProtocolError):
            publication.put([event(1), {"type": "x", "time": 1, "data": bad}])  # type: ignore[dict-item]
    assert publication.next_seq == 1, "a refused batch is refused whole"


def test_the_queue_is_bounded() -> None:
    publication = Publication({"id": "s"}, "json", 1000, queued_bytes_max=200)
    publication.put([event(1)] * 3)
    with pytest.raises(ce.PublicationFull):
        publication.put([event(1)] * 3)
    publication.attached("s", 0)
    publication.append_message(1)
    publication.appended(2)
    publication.put([event(1)] * 30)  # one call may be larger than the bound: else it could never be sent


def test_busy_is_tried_again_and_everything_else_is_final() -> None:
    line = Line()
    line.up()
    publication = line.core.publish({"id": "s"})
    (attach,) = line.sent()
    line.hear(m.Error(id=attach.id, code="BUSY", message="m", retry_after_ms=250))
    ((seconds, retry),) = line.later
    assert seconds == 0.25
    retry()
    (attach,) = line.sent()
    line.hear(m.Attached(id=attach.id, session_id="s", next_seq=0))
    told: list[Any] = []
    publication.put([event(0)], told.append)
    line.core.pump(publication)
    (append,) = line.sent()
    line.hear(m.Error(id=append.id, code="BUSY", message="m", retry_after_ms=10))
    line.later[-1][1]()
    (append,) = line.sent()
    line.hear(m.Error(id=append.id, code="SEQ_CONFLICT", message="m"))
    assert [error.code for error in told] == ["SEQ_CONFLICT"]
    with pytest.raises(ce.ServerError):
        publication.put([event(1)])
    line.core.lost()
    line.up()
    assert line.sent() == [], "a publication that ended is not attached again"


@pytest.mark.parametrize("next_seq", [1, 5])
def test_a_log_that_cannot_be_ours_ends_the_publication(next_seq: int) -> None:
    line = Line()
    line.up()
    publication = line.core.publish({"id": "s"})
    line.hear(m.Attached(id=line.sent()[0].id, session_id="s", next_seq=0))
    publication.put([event(0), event(1)])
    line.core.pump(publication)
    line.hear(m.Appended(id=line.sent()[0].id, through_seq=1))
    publication.put([event(2), event(3)])
    line.core.lost()
    line.up()
    line.hear(m.Attached(id=line.sent()[0].id, session_id="s", next_seq=next_seq))
    assert publication.state == "failed"


@both_encodings
@pytest.mark.parametrize("seed", range(20))
def test_over_a_line_that_breaks_anywhere_every_event_arrives_once_in_order(
    seed: int, encoding: Encoding
) -> None:
    """The server applies, or loses, each frame; the line breaks before or after any of them."""
    rng = random.Random(seed)
    line = Line(encoding)
    log: list[Any] = []
    told: list[Any] = []

    def serve(message: Any) -> m.Message | None:
        if isinstance(message, m.Attach):
            return m.Attached(id=message.id, session_id="s", next_seq=len(log))
        if isinstance(message, m.Append):
            verdict = judge(
                len(log), message.from_seq, message.events, lambda seq, item: same_event(log[seq], item)
            )
            log.extend(message.events[verdict.skip :])
            return m.Appended(id=message.id, through_seq=verdict.through_seq)
        return None

    line.up()
    publication = line.core.publish({"id": "s"})
    total = 0
    for _ in range(400):
        if rng.random() < 0.4 and total < 120:
            count = rng.randint(1, 4)
            publication.put([event(n) for n in range(total, total + count)], told.append)
            total += count
            line.core.pump(publication)
        broken = False
        for message in line.sent():
            if rng.random() < 0.1:
                broken = True  # before it arrived
            if broken:
                break
            answer = serve(message)
            if answer is not None and rng.random() < 0.15:
                broken = True  # applied, and the answer lost
                break
            if answer is not None:
                line.hear(answer)
        if broken:
            line.core.lost()
            line.up()
    for _ in range(50):
        for message in line.sent():
            answer = serve(message)
            if answer is not None:
                line.hear(answer)
    assert publication.error is None
    assert log == [event(n) for n in range(total)]
    assert set(told) == {None}
    assert publication.acknowledged_seq == total
