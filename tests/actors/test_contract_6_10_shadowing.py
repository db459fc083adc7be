"""SPEC 6.10.5-6.10.6, 4.2: live sessions that nobody journals, and the stores that hold them as well."""

from __future__ import annotations

from pathlib import Path

from session_query import ServiceConfig, Signal
from support.doors import World, open_world
from support.sessions import header, prompts

NO_JOURNAL = ServiceConfig(journal=False)


async def found(world: World, query: str = "stored") -> list[str]:
    return (await world.door.query("search_sessions", {"query": query})).ids()


async def unread(world: World) -> dict[str, str]:
    page = await world.door.query("search_sessions", {"query": "whatever"})
    return {row["session_id"]: row["code"] for row in page.value["receipt"]["unread"]}


async def test_6_10_5_a_stored_log_is_not_read_while_its_owner_lives() -> None:
    async with open_world(NO_JOURNAL, wire=False) as world:
        provider = world.mounted("x", "y")
        handle = await world.publish("x", prompts("live words"))
        assert await found(world) == ["y"]
        assert await found(world, "live words") == ["x"]
        assert provider.inspected() == ["y"]
        page = await world.door.query("search_sessions", {"query": "live words"})
        assert (page.value["hits"][0]["live"], page.value["hits"][0]["persisted"]) == (True, True)
        only_stored = [{"kind": "availability", "values": ["persisted"]}]
        page = await world.door.query(
            "search_sessions", {"query": "live words", "session_filters": only_stored}
        )
        assert page.ids() == ["x"]
        await handle.append([{"type": "custom/more", "time": 1, "data": {}}])
        assert (await world.door.query("search_sessions", {"query": "live words"})).value["hits"][0][
            "persisted"
        ]
        await handle.detach()
        assert sorted(await found(world)) == ["x", "y"]
        assert provider.inspected() == ["y", "x"]


async def test_6_10_5_a_base_known_before_is_visible_again_without_a_look() -> None:
    async with open_world(NO_JOURNAL, wire=False) as world:
        provider = world.mounted("x")
        assert await found(world) == ["x"]
        handle = await world.publish("x", prompts("live words"))
        assert await found(world) == []
        await handle.detach()
        assert await found(world) == ["x"]
        assert provider.inspected() == ["x"]


async def test_6_10_5_a_base_that_moved_meanwhile_is_refreshed() -> None:
    async with open_world(NO_JOURNAL, wire=False) as world:
        provider = world.mounted("x")
        await found(world)
        handle = await world.publish("x", prompts("live words"))
        provider.put(header("x"), prompts("written by its owner"))
        assert await found(world, "written") == []
        await handle.detach()
        assert await found(world, "written") == ["x"]


async def test_6_10_step_3_an_owner_that_comes_during_the_inspection_is_noticed() -> None:
    async with open_world(NO_JOURNAL, wire=False) as world:
        provider = world.mounted("x")

        async def attach(signal: Signal) -> None:
            provider.faults = {}
            await world.publish("x", prompts("live words"))
            raise OSError("locked by its owner")

        provider.faults = {"inspect": attach}
        assert await found(world, "live words") == ["x"]
        assert await unread(world) == {}


async def test_6_10_6_rows_of_unjournaled_sessions_end_with_the_service(tmp_path: Path) -> None:
    config = ServiceConfig(data_dir=tmp_path, journal=False)
    async with open_world(config, wire=False) as world:
        await world.publish("x", prompts("live words"))
        assert await found(world, "live words") == ["x"]
    async with open_world(config, wire=False) as world:
        assert await found(world, "live words") == []


async def test_4_2_persisted_follows_the_store() -> None:
    async with open_world(NO_JOURNAL, wire=False) as world:
        await world.publish("x", prompts("live words"))

        async def flag() -> bool:
            page = await world.door.query("search_sessions", {"query": "live words"})
            value: bool = page.value["hits"][0]["persisted"]
            return value

        assert not await flag()
        provider = world.mounted("x")
        assert await flag()
        world.service.unmount("p")
        assert not await flag()
        world.service.mount("p", provider)
        assert await flag()
        provider.sessions.clear()
        assert not await flag()
