"""SPEC 12.1: results too long to show."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from session_query.actors.policies.compose import compose
from session_query.actors.policies.spill import SpillPolicy, with_spill
from session_query.actors.policies.stage import ToolCall
from session_query.actors.tools.registry import ToolRegistry, ToolResult
from session_query.protocol.errors import Code, QueryError
from session_query.protocol.event import Event
from session_query.protocol.records import Receipt
from session_query.protocol.signal import Signal
from session_query.storage.spill import PlannedSpill, SpillStore, path_hint
from support.fake_tools import agent, corpus

CALL = ToolCall(
    tool="session_event_read", arguments={"seq": 1}, caller=agent(), signal=Signal(), owner="session:me"
)
LIMIT = 400


@attrs.frozen(kw_only=True)
class BrokenStore(SpillStore):
    error: Exception = attrs.field(factory=lambda: OSError(28, "no space left"))

    def write(self, plan: PlannedSpill, data: bytes) -> None:
        raise self.error


def result(text: str, **changes: Any) -> ToolResult:
    return attrs.evolve(ToolResult(text=text, card={"kind": "read"}), **changes)


async def applied(
    store: SpillStore | None, given: ToolResult, limit: int = LIMIT, **changes: Any
) -> ToolResult:
    policy = SpillPolicy(store=store, max_inline_bytes=limit)

    async def inner(call: ToolCall) -> ToolResult:
        return given

    return await with_spill(inner, policy)(attrs.evolve(CALL, **changes))


def files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


async def test_12_1_2_exactly_the_limit_is_shown_whole(tmp_path: Path) -> None:
    given = result("é" * (LIMIT // 2))
    assert await applied(SpillStore(root=tmp_path), given) is given
    assert files(tmp_path) == []
    over = await applied(SpillStore(root=tmp_path), result(given.text + "x"))
    assert over.spilled is not None
    assert len(files(tmp_path)) == 1


async def test_12_1_5_the_preview_names_what_is_missing_and_the_store_has_it_all(tmp_path: Path) -> None:
    store = SpillStore(root=tmp_path)
    text = "".join(f"line {number} 修复 🙂\n" for number in range(200))
    over = await applied(store, result(text))
    assert over.spilled is not None
    assert len(over.text.encode()) <= LIMIT
    assert over.text.startswith("line 0 ")
    shown, notice = over.text.rsplit("\n\n", 1)
    assert str(over.spilled.omitted_bytes) in notice
    assert over.spilled.locator in notice
    assert "Fetch it through the host" in notice
    assert len(shown.encode()) == len(text.encode()) - over.spilled.omitted_bytes
    whole = store.read_range(over.spilled.locator, 0, 10**9, owner="session:me")
    assert whole.data == text
    assert whole.total_bytes == over.spilled.total_bytes == len(text.encode())


async def test_12_1_7_everything_but_the_text_stays(tmp_path: Path) -> None:
    receipt = Receipt(sessions_in_reach=3)
    given = result("x" * 1000, receipt=receipt, is_error=True, code="SESSION_QUERY_ABORTED")
    over = await applied(SpillStore(root=tmp_path), given)
    assert attrs.evolve(over, text=given.text, spilled=None) == given


@pytest.mark.parametrize("limit", [0, 1, 100])
async def test_12_1_6_a_notice_that_does_not_fit_keeps_the_text_and_writes_nothing(
    tmp_path: Path, limit: int, caplog: pytest.LogCaptureFixture
) -> None:
    given = result("secret " * 100)
    assert await applied(SpillStore(root=tmp_path), given, limit) is given
    assert files(tmp_path) == []
    assert [entry.levelname for entry in caplog.records] == ["WARNING"]
    assert "secret" not in caplog.text


@pytest.mark.parametrize("case", ["no store", "no owner", "full disk", "strange"])
async def test_12_1_7_a_spill_problem_never_loses_text(
    tmp_path: Path, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = result("secret " * 100)
    stores: dict[str, SpillStore | None] = {
        "no store": None,
        "no owner": SpillStore(root=tmp_path),
        "full disk": BrokenStore(root=tmp_path),
        "strange": BrokenStore(root=tmp_path, error=ValueError("secret")),
    }
    owner = None if case == "no owner" else "session:me"
    assert await applied(stores[case], given, owner=owner) is given
    assert [entry.levelname for entry in caplog.records] == ["WARNING"]
    assert "secret" not in caplog.text


async def test_lone_surrogates_are_replaced_and_never_raise(tmp_path: Path) -> None:
    store = SpillStore(root=tmp_path)
    over = await applied(store, result("\ud800" * 1000))
    assert over.spilled is not None
    assert store.read_range(over.spilled.locator, 0, 10**6).data == "\ufffd" * 1000


async def test_a_cancelled_call_awaits_the_write_it_began(tmp_path: Path) -> None:
    started, go = threading.Event(), threading.Event()

    @attrs.frozen(kw_only=True)
    class SlowStore(SpillStore):
        def write(self, plan: PlannedSpill, data: bytes) -> None:
            started.set()
            go.wait(10)
            super().write(plan, data)

    async def release() -> None:
        await trio.to_thread.run_sync(started.wait, 10)
        scope.cancel()
        go.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(release)
        with trio.CancelScope() as scope:
            await applied(SlowStore(root=tmp_path), result("x" * 1000))
    assert files(tmp_path)[0].read_text() == "x" * 1000


@pytest.mark.parametrize("limit", [-1, True, None, 1.5, "50000"])
def test_12_1_1_settings(limit: Any) -> None:
    with pytest.raises(QueryError) as caught:
        SpillPolicy(store=None, max_inline_bytes=limit)
    assert caught.value.code is Code.INVALID_CONFIG


async def test_12_1_3_spill_stands_outside_the_deadline_and_around_errors(tmp_path: Path) -> None:
    service = corpus()
    service.events["me"][1] = Event(type="x", seq=1, time=0, data={"big": "y" * 60_000})
    store = SpillStore(root=tmp_path, hint=path_hint)
    stage = compose(ToolRegistry(service=service), SpillPolicy(store=store))
    over = await stage(attrs.evolve(CALL, deadline_ms=60_000))
    assert over.spilled is not None
    assert len(over.text.encode()) <= 50_000
    (file,) = files(tmp_path)
    assert f"It is in the file {file}." in over.text
    assert file.name.endswith("-session_event_read.txt")
    assert "y" * 60_000 in file.read_text()
    small = await stage(attrs.evolve(CALL, arguments={"seq": 0}))
    assert small.spilled is None
    assert "turn/start" in small.text
