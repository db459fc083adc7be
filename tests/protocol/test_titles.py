"""SPEC 9: titles are the last title event, and nothing else."""

from __future__ import annotations

import pytest

from session_query.protocol.errors import Code
from session_query.protocol.event import Event
from session_query.protocol.json_value import JSON
from session_query.protocol.records import Title
from session_query.protocol.titles import MalformedTitle, TitleFold, fold_title, title_of
from support.events import event, user

FALLBACK: JSON = {"kind": "fallback"}


def title(seq: int, text: JSON, source: JSON = FALLBACK, message_seqs: JSON = None) -> Event:
    seqs: JSON = [] if message_seqs is None else message_seqs
    return event("session/title", seq, {"title": text, "messageSeqs": seqs, "source": source})


def test_the_last_title_wins_whoever_made_it() -> None:
    log = [
        user(0, "prompt"),
        title(1, "by hand", {"kind": "user"}),
        title(2, "later", FALLBACK, [0]),
        user(3),
    ]
    assert fold_title(log) == Title(title="later", message_seqs=(0,), source=FALLBACK, seq=2, time=1002)
    assert fold_title(log[:2]) == Title(
        title="by hand", message_seqs=(), source={"kind": "user"}, seq=1, time=1001
    )


def test_no_title_event_no_title() -> None:
    assert fold_title([]) is None
    assert fold_title([user(0, "prompt"), event("turn/start", 1, {"title": "no"})]) is None


@pytest.mark.parametrize(
    "source",
    [
        {"kind": "fallback"},
        {"kind": "user"},
        {"kind": "provider", "provider": "p"},
        {"kind": "provider", "provider": "p", "model": {"provider": "x", "model": "y"}, "more": 1},
    ],
)
def test_sources(source: JSON) -> None:
    assert title_of(title(0, "", source)).source == source


@pytest.mark.parametrize(
    "data",
    [
        None,
        {"messageSeqs": [], "source": FALLBACK},
        {"title": 7, "messageSeqs": [], "source": FALLBACK},
        {"title": "t", "source": FALLBACK},
        {"title": "t", "messageSeqs": None, "source": FALLBACK},
        {"title": "t", "messageSeqs": [-1], "source": FALLBACK},
        {"title": "t", "messageSeqs": [True], "source": FALLBACK},
        {"title": "t", "messageSeqs": ["0"], "source": FALLBACK},
        {"title": "t", "messageSeqs": []},
        {"title": "t", "messageSeqs": [], "source": "user"},
        {"title": "t", "messageSeqs": [], "source": {"kind": "guess"}},
        {"title": "t", "messageSeqs": [], "source": {"kind": ["user"]}},
        {"title": "t", "messageSeqs": [], "source": {"kind": "provider"}},
        {"title": "t", "messageSeqs": [], "source": {"kind": "provider", "provider": "p", "model": "m"}},
        {
            "title": "t",
            "messageSeqs": [],
            "source": {"kind": "provider", "provider": "p", "model": {"model": "m"}},
        },
    ],
)
def test_malformed_titles_fail_their_session_only_while_they_are_the_last(data: JSON) -> None:
    bad = event("session/title", 0, data)
    with pytest.raises(MalformedTitle) as caught:
        fold_title([bad])
    assert (caught.value.code, caught.value.seq) == (Code.CORRUPT_SESSION, 0)
    good = fold_title([bad, title(1, "fine")])
    assert good is not None
    assert good.title == "fine"


def test_whole_floats_count() -> None:
    assert title_of(title(0, "t", FALLBACK, [4.0])).message_seqs == (4,)


def test_a_title_is_detached_from_its_event() -> None:
    source: dict[str, JSON] = {"kind": "fallback"}
    found = title_of(title(0, "t", source))
    source["kind"] = "guess"
    assert found.source == {"kind": "fallback"}


def test_the_streaming_fold_keeps_only_the_last_title_event() -> None:
    fold = TitleFold()
    assert (fold.title(), fold.last) == (None, None)
    first, second = title(0, "a"), title(2, "b")
    for each in (first, user(1), second, user(3)):
        fold.feed(each)
    assert fold.last == second
    resumed = TitleFold(fold.last)
    resumed.feed(user(4))
    assert resumed.title() == fold.title() == title_of(second)
