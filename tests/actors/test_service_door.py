"""The embedded door: opening, failing, closing, and what a host sees of it (SPEC 6.11, 6.14.6)."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from session_query import Caller, Code, QueryError, ServiceConfig, SessionSearchRequest, Signal, open_service
from session_query.actors.live import LiveSession
from session_query.actors.publishing import Publishing
from session_query.protocol.wire.identity import EVERYTHING, Owner


def _header(session_id: str = "s1", cwd: str | None = "/proj") -> dict[str, object]:
    header: dict[str, object] = {"version": 0, "id": session_id, "createdAt": 1}
    return header if cwd is None else header | {"cwd": cwd}


def _prompt(text: str, time: int = 1) -> dict[str, object]:
    return {
        "type": "user/message",
        "time": time,
        "surfaceOp": "append",
        "data": {
            "id": f"m{time}",
            "role": "user",
            "source": {"kind": "user"},
            "content": [{"type": "text", "text": text}],
        },
    }


async def test_what_is_appended_is_found_at_once() -> None:
    async with open_service(ServiceConfig()) as service:
        live = await service.attach(_header())
        await live.append([_prompt("the quick brown fox")])
        caller = Caller(kind="workspace", workspaces=("/proj",))
        found = await service.call_tool("session_search", {"query": "brown fox"}, caller)
        assert "s1" in found.text
        assert "the quick brown fox" in found.text


async def test_a_seed_is_found_like_what_is_appended(tmp_path: Path) -> None:
    async with open_service(ServiceConfig(data_dir=tmp_path)) as service:
        live = await service.attach(_header(), [_prompt("planted at birth")])
        assert live.next_seq == 2  # the seed and its end marker (SPEC 1.3.3)
        await live.append([_prompt("added later", 2)])
        for words in ("planted at birth", "added later"):
            page = await service.search_sessions(SessionSearchRequest(query=words))
            assert [hit.header.id for hit in page.hits] == ["s1"]


async def test_what_was_journaled_is_there_after_reopening(tmp_path: Path) -> None:
    config = ServiceConfig(data_dir=tmp_path / "data")
    async with open_service(config) as service:
        live = await service.attach(_header())
        await live.append([_prompt("remember the milk")])
    async with open_service(config) as service:
        page = await service.search_sessions(SessionSearchRequest(query="milk"))
        (hit,) = page.hits
        assert (hit.header.id, hit.live, hit.persisted) == ("s1", False, True)


async def test_a_bad_index_fails_the_start_with_its_own_error(tmp_path: Path) -> None:
    (tmp_path / "index.db").write_bytes(b"not a database" * 100)
    with pytest.raises(QueryError) as caught:
        async with open_service(ServiceConfig(data_dir=tmp_path)):
            pytest.fail("the service became visible")
    assert caught.value.code is Code.INDEX_FAILED


async def test_an_error_of_the_hosts_own_block_stays_what_it_is() -> None:
    async def host() -> None:
        async with open_service(ServiceConfig()) as service:
            await service.attach(_header())
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await host()


async def test_close_is_idempotent_and_ends_searching() -> None:
    async with open_service(ServiceConfig()) as service:
        await service.attach(_header())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(service.close)
            nursery.start_soon(service.close)
        with pytest.raises(QueryError) as caught:
            await service.search_sessions(SessionSearchRequest(query="x"))
        assert caught.value.code is Code.INDEX_FAILED


async def test_never_means_that_searches_are_off_and_no_index_file_is_made(tmp_path: Path) -> None:
    async with open_service(ServiceConfig(data_dir=tmp_path, open_at="never")) as service:
        live = await service.attach(_header())
        await live.append([_prompt("hello")])
        with pytest.raises(QueryError) as caught:
            await service.search_sessions(SessionSearchRequest(query="", limit="wrong"))
        assert caught.value.code is Code.SEARCH_DISABLED
        exact = await service.exact()
        window = await exact.read_event(Caller(kind="operator"), "s1", 0, signal=Signal())
        assert window.target.seq == 0
    assert not (tmp_path / "index.db").exists()


async def test_first_search_opens_nothing_before_it_is_needed(tmp_path: Path) -> None:
    async with open_service(ServiceConfig(data_dir=tmp_path / "d", open_at="first-search")) as service:
        assert not service.is_open
        assert not (tmp_path / "d").exists()
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(service.search_sessions, SessionSearchRequest(query="x"))
        assert service.is_open


async def test_first_search_tries_again_after_a_failed_opening(tmp_path: Path) -> None:
    index = tmp_path / "index.db"
    index.write_bytes(b"not a database" * 100)
    async with open_service(ServiceConfig(data_dir=tmp_path, open_at="first-search")) as service:
        with pytest.raises(QueryError) as caught:
            await service.search_sessions(SessionSearchRequest(query="x"))
        assert caught.value.code is Code.INDEX_FAILED
        index.unlink()
        page = await service.search_sessions(SessionSearchRequest(query="x"))
        assert page.hits == ()


async def test_a_cancelled_host_gets_an_orderly_stop(tmp_path: Path) -> None:
    with trio.move_on_after(0.5) as scope:
        async with open_service(ServiceConfig(data_dir=tmp_path)) as service:
            live = await service.attach(_header())
            await live.append([_prompt("kept")])
            await trio.sleep_forever()
    assert scope.cancelled_caught
    async with open_service(ServiceConfig(data_dir=tmp_path)) as service:
        page = await service.search_sessions(SessionSearchRequest(query="kept"))
        assert len(page.hits) == 1


async def test_a_stored_session_is_whole_while_it_is_attached_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attaching folds the stored log first; who reads meanwhile must not find it empty."""
    folding, go_on = trio.Event(), trio.Event()
    rebuild = Publishing._rebuild

    async def slowly(self: Publishing, session: LiveSession) -> None:
        folding.set()
        await go_on.wait()
        await rebuild(self, session)

    async with open_service(ServiceConfig(data_dir=tmp_path)) as service:
        live = await service.attach(_header())
        await live.append([_prompt("first"), _prompt("second", 2)])
        await live.detach()
        monkeypatch.setattr(Publishing, "_rebuild", slowly)
        exact = await service.exact()
        operator = Caller(kind="operator")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(service.attach, _header())
            await folding.wait()
            log = await exact.read_session(operator, "s1", signal=Signal())
            window = await exact.read_event(operator, "s1", 1, signal=Signal())
            page = await service.search_sessions(SessionSearchRequest(query="second"))
            go_on.set()
        assert [event.seq for event in log.events] == [0, 1]
        assert window.target.seq == 1
        assert [hit.live for hit in page.hits] == [False]
        again = await exact.read_session(operator, "s1", signal=Signal())
        assert again.events == log.events
        (hit,) = (await service.search_sessions(SessionSearchRequest(query="second"))).hits
        assert hit.live


async def test_an_attach_that_is_cut_short_leaves_the_stored_session_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(self: Publishing, session: LiveSession) -> None:
        raise OSError("disk")

    async with open_service(ServiceConfig(data_dir=tmp_path)) as service:
        live = await service.attach(_header())
        await live.append([_prompt("remember the milk")])
        await live.detach()
        with monkeypatch.context() as patch:
            patch.setattr(Publishing, "_rebuild", broken)
            with pytest.raises(OSError, match="disk"):
                await service.attach(_header())
        (hit,) = (await service.search_sessions(SessionSearchRequest(query="milk"))).hits
        assert (hit.header.id, hit.live) == ("s1", False)
        assert (await service.attach(_header())).next_seq == 1


async def test_an_append_is_cancelled_before_it_begins_or_not_at_all(tmp_path: Path) -> None:
    owner = Owner(token_id="t", connection_id="c", role="operator", reach=EVERYTHING)
    async with open_service(ServiceConfig(data_dir=tmp_path)) as service:
        publishing = (await service.house()).publishing
        await publishing.attach(_header(), None, owner, Signal())
        for _ in range(2):  # a new event, and the same one again
            with trio.testing.assert_checkpoints():
                assert await publishing.append("s1", 0, [_prompt("kept")], owner, Signal()) == 0
        with trio.CancelScope() as scope:
            scope.cancel()
            await publishing.append("s1", 1, [_prompt("never")], owner, Signal())
        assert scope.cancelled_caught
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel, scope)
                assert await publishing.append("s1", 1, [_prompt("stored")], owner, Signal()) == 1
                live = publishing.live.owned("s1", owner)
                assert live is not None
                assert live.length == 2, "stored and known to be stored are one"
        assert await publishing.append("s1", 2, [_prompt("next")], owner, Signal()) == 2
        for words, count in (("kept", 1), ("never", 0), ("stored", 1), ("next", 1)):
            page = await service.search_sessions(SessionSearchRequest(query=words))
            assert len(page.hits) == count


async def _cancel(scope: trio.CancelScope) -> None:
    """Runs while the other one waits for its commit: a task that was just started goes first."""
    scope.cancel()
