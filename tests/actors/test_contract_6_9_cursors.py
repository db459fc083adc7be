"""SPEC 6.9, 16.4: cursors, and every row of the table of generations; over both doors."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest

from session_query import Code, ServiceConfig
from support.doors import Answer, World, open_world
from support.events import event, user
from support.providers import FakeProvider
from support.sessions import ELSEWHERE, HERE, T0, THERE, head, header, log, prompts, sent

INVALID, STALE = Code.INVALID_CURSOR.value, Code.STALE_CURSOR.value


async def page(world: World, method: str = "search_sessions", **request: Any) -> Answer:
    who = request.pop("who", "operator")
    return await world.door.query(method, {"query": "fox", "limit": 1} | request, who=who)


async def first_cursor(world: World, **request: Any) -> str:
    answer = await page(world, **request)
    cursor: str = answer.value["next_cursor"]
    return cursor


async def foxes(world: World, count: int = 3, **more: Any) -> None:
    for number in range(count):
        await world.publish(f"s{number}", prompts("the fox"), at=T0 + number, **more)


# -- 6.9.1-6.9.6 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 9])
async def test_6_9_3_pages_give_every_result_once_and_in_order(either: World, limit: int) -> None:
    for number in range(8):
        await either.publish(f"s{number}", prompts(*["fox " * (number % 3 + 1)] * 2), at=T0)
    whole = await page(either, limit=100)
    assert "next_cursor" not in whole.value
    found, cursor = [], None
    while True:
        answer = await page(either, limit=limit, **({} if cursor is None else {"cursor": cursor}))
        found += answer.ids()
        assert ("next_cursor" in answer.value) == (len(found) < 8)
        cursor = answer.value.get("next_cursor")
        if cursor is None:
            break
    assert found == whole.ids()


async def test_6_9_3_events_of_one_session_likewise(either: World) -> None:
    await either.publish("x", prompts(*["fox " * (number % 3 + 1) for number in range(9)]))
    ask: dict[str, Any] = {"method": "search_events", "session_id": "x"}
    whole = await page(either, **ask, limit=100)
    found, more = [], dict[str, Any]()
    while True:
        answer = await page(either, **ask, **more, limit=2)
        found += [hit["seq"] for hit in answer.value["hits"]]
        if "next_cursor" not in answer.value:
            break
        more = {"cursor": answer.value["next_cursor"]}
    assert found == [hit["seq"] for hit in whole.value["hits"]] == [8, 5, 2, 7, 4, 1, 6, 3, 0]


@pytest.mark.parametrize("match", ["exact", "words", "some", "auto"])
async def test_16_1_6_pages_go_on_over_the_tiers(either: World, match: str) -> None:
    await either.publish("phrase", prompts("brown fox"))
    await either.publish("words", prompts("fox, so brown"))
    await either.publish("spread", prompts("brown", "fox"))
    await either.publish("some", prompts("brown bear"))
    request = {"query": "brown fox", "match": match}
    whole = await page(either, **request, limit=100)
    found, more = [], dict[str, Any]()
    while True:
        answer = await page(either, **request, **more)
        found += answer.ids()
        if "next_cursor" not in answer.value:
            break
        more = {"cursor": answer.value["next_cursor"]}
    assert found == whole.ids()


def tampered(cursor: str) -> list[str]:
    """The cursor with one thing changed each: text, payload, every field, the position."""
    text, _, seal = cursor.partition(".")
    payload = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))

    def packed(value: Any) -> str:
        raw = json.dumps(value, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    changed = [packed(payload | {key: "other"}) for key in payload]
    changed += [packed(payload | {"k": keys}) for keys in ([], [1], ["x"] * 5, payload["k"][:-1], None)]
    changed += [packed([]), packed("text"), packed(None), packed(7), "", ".", "%%%", "é", cursor[:-1]]
    return [*changed, *(f"{one}.{seal}" for one in changed), cursor + "x", f"x{cursor}", text]


async def test_6_9_4_what_was_not_made_for_this_request_is_invalid(either: World) -> None:
    await foxes(either)
    cursor = await first_cursor(either)
    for number, bad in enumerate(tampered(cursor)):
        assert (number, (await page(either, cursor=bad)).code) == (number, INVALID)
    assert (await page(either, cursor=cursor)).code is None


OTHER_REQUESTS: list[dict[str, Any]] = [
    {"query": "the fox"},
    {"limit": 2},
    {"match": "words"},
    {"session_filters": [{"kind": "cwd", "values": [HERE]}]},
    {"event_filters": [{"kind": "seq", "from": 0}]},
    {"method": "search_events", "session_id": "s0"},
    {"who": "here"},
]


@pytest.mark.parametrize("other", OTHER_REQUESTS, ids=lambda other: next(iter(other)))
async def test_6_9_2_another_request_is_another_fingerprint(either: World, other: dict[str, Any]) -> None:
    await foxes(either)
    cursor = await first_cursor(either)
    assert (await page(either, **other, cursor=cursor)).code == INVALID


async def test_6_9_2_order_does_not_matter_and_duplicates_do(either: World) -> None:
    await foxes(either)
    ids, cwds = {"kind": "id", "values": ["s0", "s1", "s2"]}, {"kind": "cwd", "values": [HERE, THERE]}
    cursor = await first_cursor(either, session_filters=[ids, cwds])
    turned = [cwds | {"values": [THERE, HERE]}, ids | {"values": ["s2", "s0", "s1"]}]
    assert (await page(either, session_filters=turned, cursor=cursor)).code is None
    doubled = [ids | {"values": ["s0", "s1", "s2", "s2"]}, cwds]
    assert (await page(either, session_filters=doubled, cursor=cursor)).code == INVALID
    assert (await page(either, query=" FOX\t", session_filters=[ids, cwds], cursor=cursor)).code == INVALID
    same = await page(either, query=" fox\t", session_filters=[ids, cwds], cursor=cursor)
    assert same.code is None


async def test_6_9_6_a_cursor_of_another_engine_is_invalid_not_stale(tmp_path: Any) -> None:
    config = ServiceConfig(data_dir=tmp_path)
    async with open_world(config, wire=False) as world:
        await foxes(world, detach=True)
        cursor = await first_cursor(world)
    async with open_world(config, wire=False) as world:
        assert (await page(world)).code is None
        assert (await page(world, cursor=cursor)).code == INVALID


async def test_16_11_a_cursor_tells_nothing_of_what_happened_elsewhere(either: World) -> None:
    await foxes(either)
    cursors = []
    for number in range(3):
        cursors.append(await first_cursor(either, who="here"))
        await either.publish(f"hidden{number}", prompts("the fox"), cwd=THERE)
    assert cursors == [cursors[0]] * 3
    payload = base64.urlsafe_b64decode(cursors[0].partition(".")[0] + "==")
    assert len(json.loads(payload)["g"]) == 24  # a digest, no counter


# -- the table of generations -------------------------------------------------------------------------

Change = Callable[[World], Awaitable[None]]


@attrs.frozen
class Row:
    """A change, and which cursors it makes stale: of every session, of each workspace, of each target."""

    change: Change
    everything: bool
    here: bool
    there: bool
    live: bool
    stored: bool
    journal: bool = True


def provider_of(world: World) -> FakeProvider:
    binding = world.service.mounted.binding("p")
    assert binding is not None
    assert isinstance(binding.provider, FakeProvider)
    return binding.provider


async def nothing(world: World) -> None:
    await page(world)


async def appears_here(world: World) -> None:
    await world.publish("new", cwd=HERE)


async def appears_elsewhere(world: World) -> None:
    await world.publish("new", prompts("fox"), cwd=ELSEWHERE)


async def disappears_here(world: World) -> None:
    await world.publish("passing", cwd=HERE, detach=True)


async def appends_text(world: World) -> None:
    await world.handles["live0"].append(sent(prompts("more", start=2)))


async def appends_no_text(world: World) -> None:
    await world.handles["live0"].append(sent(log(event("custom/quiet", 0), start=2)))


async def detaches(world: World) -> None:
    await world.handles["live0"].detach()


async def stored_new(world: World) -> None:
    provider_of(world).put(header("more", cwd=THERE), prompts("fox"))


async def stored_changed(world: World) -> None:
    provider_of(world).put(header("stored0", cwd=THERE), prompts("fox fox", "and more"))


async def stored_other_changed(world: World) -> None:
    provider_of(world).put(header("stored1", cwd=THERE), prompts("fox fox", "and more"))


async def stored_deleted(world: World) -> None:
    del provider_of(world).sessions["stored1"]


async def unmounted(world: World) -> None:
    world.service.unmount("p")


async def replaced_by_itself(world: World) -> None:
    world.service.mount("p", provider_of(world))


async def unmounted_and_mounted(world: World) -> None:
    provider = provider_of(world)
    world.service.unmount("p")
    world.service.mount("p", provider)


async def another_mounted(world: World) -> None:
    world.service.mount("q", FakeProvider("q"))


async def persisted_flips(world: World) -> None:
    provider_of(world).put(header("live0", at=T0), prompts("whatever"))


ROWS: dict[str, Row] = {
    "nothing changed": Row(nothing, False, False, False, False, False),
    "a live session appears": Row(appears_here, True, True, False, False, False),
    "a live session appears elsewhere": Row(appears_elsewhere, True, False, False, False, False),
    "a live session comes and goes": Row(disappears_here, True, True, False, False, False),
    "a live log grows": Row(appends_text, True, True, False, True, False),
    "a live log grows without text": Row(appends_no_text, True, True, False, True, False),
    "a live owner detaches": Row(detaches, True, True, False, True, False),
    "a persisted flag flips": Row(persisted_flips, True, True, False, True, False, journal=False),
    "a stored session is new": Row(stored_new, True, False, True, False, False),
    "a stored session is changed": Row(stored_changed, True, False, True, False, True),
    "another stored session is changed": Row(stored_other_changed, True, False, True, False, False),
    "a stored session is deleted": Row(stored_deleted, True, False, True, False, False),
    "a provider is replaced by itself": Row(replaced_by_itself, True, False, True, False, True),
    "a provider goes and comes": Row(unmounted_and_mounted, True, False, True, False, True),
    "another provider is mounted": Row(another_mounted, True, False, False, False, False),
}


@pytest.mark.parametrize("name", ROWS)
async def test_6_9_generations(name: str) -> None:
    row = ROWS[name]
    async with open_world(ServiceConfig(journal=row.journal), wire=False) as world:
        provider = FakeProvider()
        for number in range(2):
            provider.put(header(f"stored{number}", cwd=THERE, at=T0 + number), prompts("fox", "fox"))
        world.service.mount("p", provider)
        await world.publish("live0", prompts("fox", "fox"))
        await world.publish("live1", prompts("fox", "fox"))
        scopes: dict[str, dict[str, Any]] = {
            "everything": {},
            "here": {"session_filters": [{"kind": "cwd", "values": [HERE]}]},
            "there": {"session_filters": [{"kind": "cwd", "values": [THERE]}]},
            "live": {"method": "search_events", "session_id": "live0"},
            "stored": {"method": "search_events", "session_id": "stored0"},
        }
        cursors = {scope: await first_cursor(world, **request) for scope, request in scopes.items()}
        await row.change(world)
        for scope, request in scopes.items():
            expected = STALE if getattr(row, scope) else None
            answer = await page(world, **request, cursor=cursors[scope])
            assert (scope, answer.code) == (scope, expected)
            repeated = await page(world, **request, cursor=cursors[scope])
            assert repeated.code == answer.code


async def test_6_9_a_provider_that_goes_takes_its_targets_along(world: World) -> None:
    world.service.mount("p", FakeProvider())
    provider_of(world).put(header("stored0", cwd=THERE), prompts("fox", "fox"))
    await world.publish("live0", prompts("fox", "fox"))
    everything, target = await first_cursor(world), {"method": "search_events", "session_id": "stored0"}
    live = {"method": "search_events", "session_id": "live0"}
    on_target, on_live = await first_cursor(world, **target), await first_cursor(world, **live)
    await unmounted(world)
    assert (await page(world, cursor=everything)).code == STALE
    assert (await page(world, **target, cursor=on_target)).code == Code.SESSION_NOT_FOUND.value
    assert (await page(world, **live, cursor=on_live)).code is None


async def test_6_9_a_detached_session_is_another_target(either: World) -> None:
    handle = await either.publish("x", prompts("fox", "fox"))
    target = {"method": "search_events", "session_id": "x"}
    cursor = await first_cursor(either, **target)
    await handle.detach()
    assert (await page(either, **target, cursor=cursor)).code == STALE
    stored = await first_cursor(either, **target)
    again = await either.service.attach(head("x"))
    assert again.next_seq == 2
    assert (await page(either, **target, cursor=stored)).code == STALE


async def test_6_9_taking_a_session_over_changes_nothing(either: World) -> None:
    await either.publish("x", prompts("fox", "fox"))
    cursor = await first_cursor(either, method="search_events", session_id="x")
    await either.service.attach(head("x"))
    assert (await page(either, method="search_events", session_id="x", cursor=cursor)).code is None


async def test_6_9_7_generations_grow_across_reopening(tmp_path: Any) -> None:
    seen = []
    for number in range(3):
        async with open_world(ServiceConfig(data_dir=tmp_path), wire=False) as world:
            await world.publish(f"s{number}", log(user(0, "fox")), detach=True)
            house = await world.service.house()
            seen.append(await house.storage.read(lambda reader: reader.index.generation()))
    assert seen == sorted(set(seen))
