"""SPEC 1.6.4, 10.8.2, 16.7.6: the current step and the cut of a search by the session itself."""

from __future__ import annotations

import pytest

from session_query.protocol.steps import StepCut, search_cut
from support.events import event


@pytest.mark.parametrize(
    ("types", "cut"),
    [
        ([], None),
        (["user/message", "turn/start"], None),
        (["step/start"], 0),
        (["turn/start", "step/start", "step/end", "turn/end", "user/message"], 1),
        (["step/start", "assistant/message", "tool/call", "step/end", "step/start", "assistant/message"], 4),
        (["user/message", "assistant/message", "user/message"], 1),
        (["assistant/message", "tool/call", "tool/result"], 1),
        (["tool/call", "tool/result", "assistant/message"], 2),
        (["assistant/message", "step/start", "assistant/message"], 1),
    ],
)
def test_cuts(types: list[str], cut: int | None) -> None:
    assert search_cut([event(type_, seq) for seq, type_ in enumerate(types)]) == cut


def test_the_current_step_is_the_latest_start_ended_or_not() -> None:
    cut = StepCut()
    for seq, type_ in enumerate(["step/start", "step/end", "tool/call"]):
        cut.feed(type_, seq)
    assert (cut.current_step, cut.latest_action, cut.cut) == (0, 2, 0)
