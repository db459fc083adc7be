"""Who hangs hangs alone: providers that never answer, and a search that does not end."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
import trio
import trio.testing

from session_query import Caller, Client, ServiceConfig, open_client, open_service
from session_query.actors.clients import ServerError
from session_query.actors.edge.server_config import ServerConfig
from session_query.actors.serve import open_edge
from session_query.actors.service import Service
from session_query.protocol.json_value import JSON
from session_query.storage.index.door import Reach, SearchSpec, SessionsFound
from session_query.storage.index.reader import Reader
from session_query.storage.tokens import StoredToken, hash_token
from support.providers import FakeProvider, Hang

TOKEN = StoredToken(id="t", name="t", role="operator", workspaces="*", hash=hash_token("t"), created_at=0)
BOUND_S = 15.0
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


def header(session_id: str, cwd: str) -> dict[str, JSON]:
    return {"version": 0, "id": session_id, "createdAt": 5, "cwd": cwd}


def said(text: str, seq: int = 0) -> dict[str, JSON]:
    content: JSON = [{"type": "text", "text": text}]
    source: JSON = {"kind": "user"}
    data: JSON = {"id": f"m{seq}", "role": "user", "source": source, "content": content}
    return {"type": "user/message", "time": seq, "surfaceOp": "append", "data": data}


async def test_providers_that_never_answer_cost_those_who_need_them_their_deadline(tmp_path: Path) -> None:
    config = ServiceConfig(data_dir=tmp_path, search_timeout_ms=200)
    hang = Hang()
    with trio.fail_after(BOUND_S):
        async with open_service(config) as service, open_edge(service, ServerConfig(tokens=(TOKEN,))) as edge:
            for number in range(3):
                provider = FakeProvider(f"p{number}")
                provider.faults = dict.fromkeys(("list", "list_snapshots", "inspect"), hang)
                service.mount(provider.name, provider)
            async with open_client(edge.url, "t") as client:
                publication = await client.publish(header("live", "/w"))
                await publication.append([said("needs nobody")])
                for _ in range(3):
                    await _reads(client, "live")
                with pytest.raises(ServerError) as late:
                    await client.call("session_search", {"query": "needs"}, workspace="/w")
                assert late.value.code == "TOOL_TIMEOUT"
                assert "200 ms" in str(late.value)
                await publication.append([said("goes on", 1)])
                await _reads(client, "live")
                await client.query("health")
                for number in range(3):
                    service.unmount(f"p{number}")
                found = await client.call("session_search", {"query": "goes on"}, workspace="/w")
                assert "live" in found.text


async def _reads(client: Client, session_id: str) -> None:
    """An agent reads its own session, a program any that is live; no store is asked (SPEC 4.4.1)."""
    read = await client.call("session_event_read", {"seq": 0}, agent=session_id)
    assert "needs nobody" in read.text
    await client.call("session_event_trace", {"seq": 0}, agent=session_id)
    window = await client.query("read_event", {"session_id": session_id, "seq": 0})
    assert "needs nobody" in str(window)


@attrs.define(eq=False)
class Endless:
    """Searches for one word never end by themselves; ``entered`` counts those that run."""

    entered: int = 0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        usual = Reader.search_sessions

        def search(reader: Reader, spec: SearchSpec, reach: Reach) -> SessionsFound:
            if spec.query == "endless":
                self.entered += 1
                reader._connection.execute(ENDLESS).fetchall()
                raise AssertionError("it was not interrupted")
            return usual(reader, spec, reach)

        monkeypatch.setattr(Reader, "search_sessions", search)


async def test_slow_searches_delay_neither_reads_nor_other_workspaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every ordinary place is taken by searches of one workspace that do not end; all others go on."""
    endless = Endless()
    endless.install(monkeypatch)
    config = ServiceConfig(data_dir=tmp_path, search_concurrency=2, search_timeout_ms=60_000)
    other = Caller(kind="workspace", workspaces=("/other",))
    with trio.fail_after(BOUND_S):
        async with open_service(config) as service:
            for cwd in ("/slow", "/other"):
                handle = await service.attach(header(f"in{cwd[1:]}", cwd))
                await handle.append([said("a word to find")])
            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(_slow_until_cancelled, service)
                while endless.entered < 2:
                    await trio.testing.wait_all_tasks_blocked(0.01)
                for _ in range(5):
                    found = await service.call_tool("session_search", {"query": "word to find"}, other)
                    assert "inother" in found.text
                    read = await service.call_tool(
                        "session_event_read",
                        {"session_id": "inslow", "seq": 0},
                        Caller(kind="workspace", workspaces=("/slow",)),
                    )
                    assert "a word to find" in read.text
                    await handle.append([said("and appends", handle.next_seq)])
                assert endless.entered == 2, "the others of that workspace wait for a place"
                nursery.cancel_scope.cancel()
            page = await service.call_tool(
                "session_search", {"query": "word to find"}, Caller(kind="workspace", workspaces=("/slow",))
            )
            assert "inslow" in page.text, "every reader is usable again"


async def _slow_until_cancelled(service: Service) -> None:
    await service.call_tool(
        "session_search", {"query": "endless"}, Caller(kind="workspace", workspaces=("/slow",))
    )
