"""SPEC 6.1-6.8: search requests, their defects in order, and what a page says; over both doors."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from session_query import Code, ServiceConfig
from support.doors import Answer, World, open_world
from support.events import assistant, event, user
from support.sessions import HERE, T0, THERE, head, log, prompts, title

FILTER, CURSOR = Code.INVALID_FILTER.value, Code.INVALID_CURSOR.value
QUERY, LIMIT = Code.INVALID_QUERY.value, Code.INVALID_LIMIT.value
NOT_FOUND = Code.SESSION_NOT_FOUND.value
BAD_FILTER = [{"kind": "nonsense"}]
TOO_MANY = [{"kind": "type", "values": [str(n) for n in range(125_000)]}]

SESSION_DEFECTS: list[tuple[dict[str, Any], str]] = [
    ({"session_filters": BAD_FILTER}, FILTER),
    ({"event_filters": BAD_FILTER}, FILTER),
    ({"match": "fuzzy"}, FILTER),
    ({"cursor": None}, CURSOR),
    ({"query": "  "}, QUERY),
    ({"limit": 0}, LIMIT),
    ({"event_filters": TOO_MANY}, FILTER),
    ({"cursor": "no cursor of ours"}, CURSOR),
]
EVENT_DEFECTS: list[tuple[dict[str, Any], str]] = [
    ({"session_id": 7}, FILTER),
    ({"event_filters": BAD_FILTER}, FILTER),
    ({"match": True}, FILTER),
    ({"cursor": 3}, CURSOR),
    ({"query": "a\u0000b"}, QUERY),
    ({"limit": 101}, LIMIT),
    ({"event_filters": TOO_MANY}, FILTER),
    ({"session_id": "nobody"}, NOT_FOUND),
    ({"cursor": "no cursor of ours"}, CURSOR),
]


@pytest.mark.parametrize(
    ("method", "sound", "defects"),
    [
        ("search_sessions", {"query": "fox"}, SESSION_DEFECTS),
        ("search_events", {"query": "fox", "session_id": "x"}, EVENT_DEFECTS),
    ],
    ids=["sessions", "events"],
)
async def test_6_1_1_of_two_defects_the_earlier_names_the_error(
    either: World, method: str, sound: dict[str, Any], defects: list[tuple[dict[str, Any], str]]
) -> None:
    await either.publish("x", prompts("the fox"))
    assert (await either.door.query(method, sound)).code is None
    for defect, code in defects:
        assert (await either.door.query(method, sound | defect)).code == code
    for (first, code), (second, _) in combinations(defects, 2):
        if first.keys() & second.keys():
            continue
        request = sound | second | first
        assert (await either.door.query(method, request)).code == code, (first.keys(), second.keys())


BAD_LIMITS = [0, -1, 101, 1.5, True, False, "20", [], 2**53, 1e300]
BAD_QUERIES = [None, "", " \t\u00a0\u3000\ufeff", 5, ["fox"], "a\u0000"]


async def test_6_1_2_limits_are_refused_not_clamped(either: World) -> None:
    for limit in BAD_LIMITS:
        assert (await either.door.query("search_sessions", {"query": "x", "limit": limit})).code == LIMIT
    for limit in (None, 1, 100, 4.0):
        assert (await either.door.query("search_sessions", {"query": "x", "limit": limit})).code is None


async def test_6_2_queries(either: World) -> None:
    await either.publish("x", prompts("red fox"))
    for query in BAD_QUERIES:
        assert (await either.door.query("search_sessions", {"query": query})).code == QUERY
    found = await either.door.query("search_sessions", {"query": " \u2003RED\ufeff\n fox\t"})
    assert found.ids() == ["x"]


async def test_16_8_nulls(either: World) -> None:
    sound = {"query": "x", "session_filters": None, "event_filters": None, "limit": None, "match": None}
    assert (await either.door.query("search_sessions", sound)).code is None
    for clause in ("session_filters", "event_filters"):
        assert (await either.door.query("search_sessions", {"query": "x", clause: [None]})).code == FILTER
    assert (await either.door.query("search_sessions", {"query": "x", "cursor": None})).code == CURSOR
    window = {"session_id": "x", "seq": 0, "before": None}
    assert (await either.door.query("read_event", window)).code == Code.INVALID_WINDOW.value


async def test_6_1_text_clauses_are_for_filters_alone(either: World) -> None:
    request = {"query": "x", "event_filters": [{"kind": "text", "text": "x"}]}
    assert (await either.door.query("search_sessions", request)).code == FILTER
    assert (await either.door.query("search_events", request | {"session_id": "x"})).code == FILTER


async def test_6_1_3_the_request_is_the_engines_own_once_made(world: World) -> None:
    await world.publish("x", prompts("red fox"))
    provider = world.mounted()
    request: dict[str, Any] = {"query": "fox", "session_filters": [{"kind": "id", "values": ["x"]}]}
    provider.before = lambda operation, _: request["session_filters"][0]["values"].clear()
    assert (await world.door.query("search_sessions", request)).ids() == ["x"]


async def test_6_3_and_6_4_the_best_event_that_passes_represents_its_session(either: World) -> None:
    await either.publish("x", log(user(0, "fox fox fox"), user(0, "a fox"), assistant(0, "fox, fox")))
    best = await best_match(either, [])
    assert (best["seq"], best["snippet"]) == (0, "fox fox fox")
    best = await best_match(either, [{"kind": "seq", "from": 1}])
    assert best["seq"] == 2
    best = await best_match(
        either, [{"kind": "type", "values": ["user/message"]}, {"kind": "seq", "from": 1}]
    )
    assert best["seq"] == 1
    page = await search(either, "fox", event_filters=[{"kind": "seq", "from": 3}])
    assert page.ids() == []
    assert page.value["receipt"]["filters_excluded_everything"] is True


async def best_match(world: World, event_filters: list[Any]) -> dict[str, Any]:
    page = await search(world, "fox", event_filters=event_filters)
    best: dict[str, Any] = page.value["hits"][0]["best_match"]
    return best


async def search(world: World, query: str, **more: Any) -> Answer:
    return await world.door.query("search_sessions", {"query": query, **more})


async def test_6_5_rank_keys_in_order_whatever_the_source(either: World) -> None:
    await either.publish("twice", prompts("fox and fox again, in a rather long text"))
    await either.publish("short", prompts("fox"))
    await either.publish("long", prompts("fox in a longer text"), detach=True)
    late = log(user(0, "padding"), user(0, "fox"))
    await either.publish("later", late)
    provider = either.mounted("b", "a")
    for session_id in ("b", "a"):
        provider.put(provider.sessions[session_id].header, prompts("fox"))
    assert (await search(either, "fox")).ids() == ["twice", "later", "a", "b", "short", "long"]


async def test_6_6_hits_and_pages(either: World) -> None:
    full = head("x", parent="gone", seed=0, origin="subagent", depth=2, preset="strict")
    handle = await either.service.attach(full)
    await handle.append([{"type": "custom/one", "time": 3, "data": {}}])
    await handle.append([{"type": "tool/call", "time": 7, "data": {"name": "grep", "arguments": "fox"}}])
    page = await search(either, "fox")
    assert page.value == {
        "hits": [
            {
                "header": full,
                "live": True,
                "persisted": True,
                "source": "journal",
                "tier": "exact",
                "best_match": {
                    "seq": 1,
                    "type": "tool/call",
                    "time": 7,
                    "surface": "log-only",
                    "snippet": "grep fox",
                },
            }
        ],
        "receipt": {
            "sessions_in_reach": 1,
            "tiers": ["exact"],
            "filters_excluded_everything": False,
            "only_common_words": False,
            "too_broad": False,
            "unread": [],
            "lost_records": 0,
        },
    }
    events = await either.door.query("search_events", {"session_id": "x", "query": "fox"})
    assert events.value["header"] == full
    assert events.value["hits"] == [
        {
            "seq": 1,
            "type": "tool/call",
            "time": 7,
            "surface": "log-only",
            "snippet": "grep fox",
            "tier": "exact",
        }
    ]


async def test_6_6_nothing_found_is_an_empty_page_with_the_targets_header(either: World) -> None:
    await either.publish("x", prompts("hello"))
    empty = await search(either, "zebra")
    assert empty.value["hits"] == []
    assert "next_cursor" not in empty.value
    events = await either.door.query("search_events", {"session_id": "x", "query": "zebra"})
    assert (events.value["hits"], events.value["header"]) == ([], head("x"))
    assert events.value["receipt"]["sessions_in_reach"] == 1
    gone = {"session_id": "y", "query": "zebra", "cursor": "garbage"}
    assert (await either.door.query("search_events", gone)).code == NOT_FOUND


@pytest.mark.parametrize(("snippet_chars", "snippet"), [(12, "…ree four f…"), (1, "…"), (240, None)])
async def test_6_7_the_snippet_is_as_long_as_configured(snippet_chars: int, snippet: str | None) -> None:
    text = "one two three four five six seven"
    async with open_world(ServiceConfig(snippet_chars=snippet_chars), wire=False) as world:
        await world.publish("x", prompts(text))
        page = await search(world, "four")
        assert page.value["hits"][0]["best_match"]["snippet"] == (snippet or text)


async def test_6_1_defaults_of_the_page_size_are_settings() -> None:
    async with open_world(ServiceConfig(default_limit=2, max_limit=3), wire=False) as world:
        for number in range(5):
            await world.publish(f"s{number}", prompts("fox"), at=T0 + number)
        assert len((await search(world, "fox")).value["hits"]) == 2
        assert len((await search(world, "fox", limit=3)).value["hits"]) == 3
        assert (await search(world, "fox", limit=4)).code == LIMIT


async def test_16_1_6_match_widens_a_service_request(either: World) -> None:
    await either.publish("phrase", prompts("lazy brown fox"))
    await either.publish("words", prompts("fox, so brown and lazy"))
    await either.publish("spread", prompts("brown", "lazy", "fox"))
    await either.publish("some", prompts("brown bear"))
    assert (await search(either, "brown fox")).ids() == ["phrase"]
    tiers = {}
    for match in ("exact", "words", "auto", "some"):
        page = await search(either, "brown fox", match=match)
        tiers[match] = [(hit["header"]["id"], hit["tier"]) for hit in page.value["hits"]]
    assert tiers["exact"] == [("phrase", "exact")]
    assert tiers["words"] == [("phrase", "exact"), ("words", "words")]
    assert tiers["some"] == [*tiers["words"], ("spread", "session"), ("some", "some")]
    assert tiers["auto"][:3] == tiers["some"][:3]


async def test_16_3_receipts_count_readable_sessions_in_reach_before_filters(either: World) -> None:
    await either.publish("a", prompts("fox"))
    await either.publish("b", prompts("bear"))
    await either.publish("c", prompts("fox"), cwd=THERE)
    provider = either.mounted("told", "bad")
    provider.faults = {"inspect bad": OSError("gone")}
    page = await search(either, "fox", session_filters=[{"kind": "id", "values": ["a"]}])
    receipt = page.value["receipt"]
    assert receipt["sessions_in_reach"] == 4
    assert receipt["unread"] == [{"session_id": "bad", "code": Code.PERSISTENCE_FAILED.value}]
    assert receipt["by_workspace"] == [
        {"workspace": HERE, "sessions_in_reach": 3, "unread": 1, "lost_records": 0},
        {"workspace": THERE, "sessions_in_reach": 1, "unread": 0, "lost_records": 0},
    ]
    confined = await either.door.query("search_sessions", {"query": "fox"}, who="there")
    assert confined.value["receipt"] == {
        "sessions_in_reach": 1,
        "tiers": ["exact"],
        "filters_excluded_everything": False,
        "only_common_words": False,
        "too_broad": False,
        "unread": [],
        "lost_records": 0,
    }


async def test_6_10_7_searching_the_bad_session_itself_fails_with_its_own_code(either: World) -> None:
    provider = either.mounted("bad", "good")
    provider.put(provider.sessions["bad"].header, log(user(0, "x", op=None)))
    assert (await search(either, "stored")).ids() == ["good"]
    asked = {"session_id": "bad", "query": "stored"}
    assert (await either.door.query("search_events", asked)).code == Code.INVALID_SURFACE.value


async def test_9_5_titles_are_no_document_text(either: World) -> None:
    await either.publish("x", log(title("zebra crossing"), event("custom/x", 0, {"text": "zebra"})))
    assert (await search(either, "zebra")).ids() == []
