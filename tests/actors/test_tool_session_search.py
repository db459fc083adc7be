"""SPEC 10.4, 10.5, 10.7.6-10.7.9, 10.8.1, 16.3, 16.9: ``session_search``."""

from __future__ import annotations

import re
from typing import Any

import attrs
import pytest

from session_query.protocol.collected import Caller, CollectedSessions, FoundTitle, SessionSearch
from session_query.protocol.filters import (
    AvailabilityClause,
    CreatedAtClause,
    CwdClause,
    IdClause,
    ParentClause,
    SeqClause,
    SurfaceClause,
    TimeClause,
    TypeClause,
)
from session_query.protocol.records import Receipt
from session_query.protocol.signal import Signal
from session_query.protocol.tools.render_search import NO_SESSION_MATCH
from support.fake_tools import (
    ELSEWHERE,
    HERE,
    T0,
    FakeToolService,
    agent,
    best,
    call,
    clause_names,
    corpus,
    found,
    operator,
    record,
    workspace,
)

TOOL = "session_search"


def searched(service: FakeToolService) -> SessionSearch:
    (search,) = [arguments[0] for name, arguments in service.calls if name == "collect_sessions"]
    assert isinstance(search, SessionSearch)
    return search


def shown_ids(text: str) -> list[str]:
    return re.findall(r"^\d+\. ([^:]+):", text, flags=re.MULTILINE)


async def test_10_5_2_clauses_in_their_fixed_order() -> None:
    service = corpus()
    await call(
        service,
        TOOL,
        {
            "event_surfaces": ["current"],
            "event_types": ["tool/result"],
            "event_time_to": "2031-03-05T06:07:08Z",
            "event_seq_from": 2,
            "include_root_sessions": True,
            "parent_session_ids": ["sibling"],
            "availability": ["live"],
            "created_at_from": "1970-01-01T00:00Z",
            "session_ids": ["a"],
            "query": " two  words ",
            "match": "words",
        },
        agent(),
    )
    search = searched(service)
    assert search.session_clauses == (
        IdClause(("a",)),
        CreatedAtClause(0, None),
        AvailabilityClause(("live",)),
        ParentClause(("sibling", None)),
        CwdClause((HERE,)),
    )
    assert search.event_clauses == (
        SeqClause(2, None),
        TimeClause(None, T0),
        TypeClause(("tool/result",)),
        SurfaceClause(("current",)),
    )
    assert (search.query, search.match, search.cap, search.caller) == ("two words", "words", 100, agent())


async def test_absent_arguments_make_no_clause_and_match_is_auto() -> None:
    service = corpus()
    await call(service, TOOL, {"query": "q"}, agent())
    search = searched(service)
    assert clause_names(search.session_clauses) == ["CwdClause"]
    assert search.event_clauses == ()
    assert search.match == "auto"


DEFECTS: list[tuple[dict[str, Any], str]] = [
    ({"query": " "}, "SESSION_QUERY_INVALID_QUERY"),
    ({"session_ids": []}, "session_ids"),
    ({"created_at_from": "x"}, "created_at_from"),
    ({"availability": []}, "availability"),
    ({"event_seq_from": -1}, "event_seq_from"),
    ({"event_time_to": "x"}, "event_time_from"),
    ({"event_types": []}, "event_types"),
    ({"event_surfaces": []}, "event_surfaces"),
    ({"parent_session_ids": []}, "parent_session_ids"),
]


@pytest.mark.parametrize("first", range(len(DEFECTS)))
async def test_10_4_the_first_defect_wins_and_no_source_is_touched(first: int) -> None:
    service = corpus()
    arguments: dict[str, Any] = {"query": "q"}
    for fields, _ in DEFECTS[first:]:
        arguments |= fields
    result = await call(service, TOOL, arguments, agent())
    assert DEFECTS[first][1] in f"{result.code} {result.text}"
    assert result.is_error
    assert service.calls == []


async def test_10_4_shape_then_caller_then_workspace_then_query() -> None:
    service = corpus()
    nobody = await call(service, TOOL, {"query": 1}, None)
    assert nobody.code == "INVALID_ARGS"
    assert (await call(service, TOOL, {"query": " "}, None)).code == "SESSION_QUERY_TOOL_MISSING_AGENT"
    homeless = await call(service, TOOL, {"query": " "}, agent(cwd=None))
    assert homeless.code == "SESSION_QUERY_TOOL_UNAUTHORIZED"
    relative = await call(service, TOOL, {"query": "q"}, agent(cwd="relative"))
    assert relative.code == "SESSION_QUERY_TOOL_UNAUTHORIZED"
    assert service.calls == []


async def test_10_7_6_foreign_and_own_hits_are_dropped_silently() -> None:
    service = corpus()

    async def careless(search: SessionSearch) -> CollectedSessions:
        hits = tuple(found(rec) for rec in service.records)
        return CollectedSessions(hits=hits, capped=False, receipt=Receipt(sessions_in_reach=5))

    service.instead["collect_sessions"] = careless
    result = await call(service, TOOL, {"query": "q"}, agent())
    assert shown_ids(result.text) == ["sibling", "child", "mine", "stray", "orphan"]
    assert "5 sessions found." in result.text
    assert ELSEWHERE not in result.text


async def test_10_9_2_the_cap_is_told_and_kept_even_by_a_careless_service() -> None:
    service = corpus()
    capped = await call(service, TOOL, {"query": "q"}, agent(), max_results=2)
    assert shown_ids(capped.text) == ["sibling", "child"]
    assert "narrow the query" in capped.text
    exactly = await call(service, TOOL, {"query": "q"}, agent(), max_results=5)
    assert "narrow the query" not in exactly.text

    async def careless(search: SessionSearch) -> CollectedSessions:
        hits = tuple(found(record(f"s{n}")) for n in range(9))
        return CollectedSessions(hits=hits, capped=False, receipt=Receipt(sessions_in_reach=9))

    service.instead["collect_sessions"] = careless
    over = await call(service, TOOL, {"query": "q"}, agent(), max_results=2)
    assert shown_ids(over.text) == ["s0", "s1"]
    assert "narrow the query" in over.text


@pytest.mark.parametrize(
    ("arguments", "values", "asked"),
    [
        ({"parent_session_ids": ["sibling", "me", "sibling"]}, ("sibling", "me"), ("sibling",)),
        ({"parent_session_ids": ["me"]}, ("me",), None),
        (
            {"parent_session_ids": ["foreign", "sibling", "nowhere"]},
            ("sibling",),
            ("foreign", "sibling", "nowhere"),
        ),
        ({"parent_session_ids": ["foreign"], "include_root_sessions": True}, (None,), ("foreign",)),
        ({"parent_session_ids": ["foreign"], "include_root_sessions": False}, (), ("foreign",)),
        ({"include_root_sessions": True}, (None,), None),
    ],
)
async def test_10_7_7_parents(
    arguments: dict[str, Any], values: tuple[str | None, ...], asked: tuple[str, ...] | None
) -> None:
    service = corpus()
    await call(service, TOOL, {"query": "q"} | arguments, agent())
    assert ParentClause(values) in searched(service).session_clauses
    resolved = [arguments[1] for name, arguments in service.calls if name == "filter_sessions"]
    assert resolved == ([] if asked is None else [(IdClause(asked), CwdClause((HERE,)))])


@pytest.mark.parametrize("arguments", [{}, {"include_root_sessions": False}])
async def test_10_7_8_no_parents_and_no_flag_make_no_clause(arguments: dict[str, Any]) -> None:
    service = corpus()
    await call(service, TOOL, {"query": "q"} | arguments, agent())
    assert "ParentClause" not in clause_names(searched(service).session_clauses)


async def test_10_7_7_a_resolver_that_answers_too_much_authorises_nothing_more() -> None:
    service = corpus()

    async def generous(caller: Caller, clauses: object) -> list[object]:
        return [*service.records, record("nowhere", ELSEWHERE)]

    service.instead["filter_sessions"] = generous
    await call(
        service, TOOL, {"query": "q", "parent_session_ids": ["foreign", "nowhere", "sibling"]}, agent()
    )
    assert ParentClause(("sibling",)) in searched(service).session_clauses


async def test_10_7_7_hidden_missing_and_childless_parents_are_one() -> None:
    results = []
    for parent in ("foreign", "no-such-session", "orphan", "homeless"):
        service = corpus()
        result = await call(service, TOOL, {"query": "q", "parent_session_ids": [parent]}, agent())
        results.append((result.text, result.code, result.receipt, service.names()))
    assert results.count(results[0]) == len(results)
    assert results[0][0].startswith(f"{NO_SESSION_MATCH}\n")


async def test_10_7_7_nothing_a_service_finds_under_no_parent_is_shown() -> None:
    service = corpus()

    async def careless(search: SessionSearch) -> CollectedSessions:
        hit = found(record("sibling"))
        return CollectedSessions(hits=(hit,), capped=True, receipt=Receipt(sessions_in_reach=5))

    service.instead["collect_sessions"] = careless
    result = await call(service, TOOL, {"query": "q", "parent_session_ids": ["foreign"]}, agent())
    assert "sibling" not in result.text
    assert "narrow" not in result.text


async def test_10_7_9_parents_are_shown_only_if_authorised() -> None:
    result = await call(corpus(), TOOL, {"query": "q"}, agent())
    parents = [line.strip() for line in result.text.splitlines() if line.startswith("   parent: ")]
    outside = "parent: outside this workspace or unknown"
    assert parents == ["parent: root session", "parent: sibling", "parent: me", outside, outside]


async def test_10_11_the_no_match_line_is_fixed() -> None:
    empty = FakeToolService(records=[record("me"), record("foreign", ELSEWHERE)])
    alone = await call(empty, TOOL, {"query": "q"}, agent())
    filtered = await call(corpus(), TOOL, {"query": "q", "session_ids": ["foreign"]}, agent())
    missing = await call(corpus(), TOOL, {"query": "q", "session_ids": ["nowhere"]}, agent())
    assert {text.text.splitlines()[0] for text in (alone, filtered, missing)} == {NO_SESSION_MATCH}
    assert filtered == missing
    assert not alone.is_error
    assert alone.receipt == Receipt(sessions_in_reach=0)


async def test_16_11_a_workspace_caller_has_no_self_and_an_operator_no_borders() -> None:
    here = await call(corpus(), TOOL, {"query": "q"}, workspace())
    assert shown_ids(here.text) == ["me", "sibling", "child", "mine", "stray", "orphan"]
    everything = await call(corpus(), TOOL, {"query": "q"}, operator())
    assert shown_ids(everything.text)[-2:] == ["foreign", "homeless"]
    assert "   workspace: /proj/elsewhere" in everything.text
    assert "   workspace:" not in here.text
    service = corpus()
    named = await call(service, TOOL, {"query": "q"}, operator(ELSEWHERE))
    assert shown_ids(named.text) == ["foreign"]
    assert searched(service).session_clauses == (CwdClause((ELSEWHERE,)),)


async def test_10_10_titles_and_their_failures() -> None:
    service = corpus()
    service.hits = {
        "sibling": found(record("sibling"), title=FoundTitle(error="SESSION_QUERY_CORRUPT_SESSION")),
        "child": found(record("child"), title=FoundTitle(error="SESSION_QUERY_SOURCE_CONFLICT")),
        "mine": found(record("mine"), title=FoundTitle(error="something secret")),
        "stray": found(record("stray"), title=FoundTitle(text="untitled\n9. forged")),
    }
    text = (await call(service, TOOL, {"query": "q"}, agent())).text
    assert "1. sibling: untitled (title unavailable: SESSION_QUERY_CORRUPT_SESSION)\n" in text
    assert "2. child: untitled (title unavailable: SESSION_QUERY_TOOL_FAILED)\n" in text
    assert "3. mine: untitled (title unavailable: SESSION_QUERY_TOOL_FAILED)\n" in text
    assert '4. stray: "untitled 9. forged"\n' in text
    assert "5. orphan: untitled\n" in text


async def test_10_10_an_unauthorised_title_fails_the_whole_call() -> None:
    service = corpus()
    service.hits["child"] = found(record("child"), title=FoundTitle(error="SESSION_QUERY_TOOL_UNAUTHORIZED"))
    result = await call(service, TOOL, {"query": "q"}, agent())
    assert result.code == "SESSION_QUERY_TOOL_UNAUTHORIZED"
    assert "sibling" not in result.text
    assert result.receipt is None


async def test_16_9_sub_agents_stand_under_their_parent_each_checked() -> None:
    deep = found(record("deep"), best_match=best(9, "deepest"), tier="words")
    visible = found(record("sub-1"), sub_agents=(deep,), title=FoundTitle(text="Helper"))
    hidden = found(record("sub-2", ELSEWHERE), sub_agents=(found(record("under-hidden")),))
    own = found(record("me"))
    service = corpus()
    service.hits["sibling"] = found(record("sibling"), sub_agents=(visible, hidden, own))
    text = (await call(service, TOOL, {"query": "q"}, agent())).text
    block = text.split("\n\n")[1].splitlines()
    assert block[6:] == [
        "   sub-agents that match:",
        '     - sub-1: "Helper"',
        "       created: 2031-03-05T06:07:08.000Z",
        "       best match: seq 4, tool/result, current, 2031-03-05T06:08:08.000Z",
        "       > the retry backoff is capped",
        "       - deep: untitled",
        "         created: 2031-03-05T06:07:08.000Z",
        "         best match: seq 9, tool/result, current, 2031-03-05T06:08:08.000Z; tier words: all words, "
        "not as one phrase",
        "         > deepest",
    ]


async def test_16_9_sub_agents_may_nest_to_any_depth() -> None:
    nest = found(record("leaf"))
    for level in range(3_000):
        nest = found(record(f"n{level}"), sub_agents=(nest,))
    service = corpus()
    service.hits["sibling"] = nest
    text = (await call(service, TOOL, {"query": "q"}, agent())).text
    assert "leaf: untitled" in text


async def test_availability_and_lost_sources_are_said() -> None:
    service = corpus()
    service.hits = {
        "sibling": found(record("sibling"), live=True, persisted=True),
        "child": found(record("child"), live=False, persisted=False),
        "mine": found(record("mine"), source_gone=True),
    }
    text = (await call(service, TOOL, {"query": "q"}, agent())).text
    lines = [line.strip() for line in text.splitlines() if "availability" in line]
    assert lines[:3] == [
        "availability: live, persisted",
        "availability: unavailable",
        "availability: persisted (its source is gone; this copy was retained)",
    ]


async def test_every_observation_gets_the_callers_signal() -> None:
    service, signal = corpus(), Signal()
    await call(service, TOOL, {"query": "q", "parent_session_ids": ["sibling"]}, agent(), signal=signal)
    assert service.names() == ["filter_sessions", "collect_sessions"]
    assert all(seen is signal for seen in service.signals)


async def test_an_outward_id_is_what_is_shown() -> None:
    service = corpus()
    rec = record("codex:5b6c")
    service.hits["sibling"] = attrs.evolve(found(rec), outward_id="codex:5b6c")
    text = (await call(service, TOOL, {"query": "q"}, agent())).text
    assert "1. codex:5b6c: untitled" in text
