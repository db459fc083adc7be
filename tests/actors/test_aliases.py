"""Workspaces by any spelling, where configured, on both sides and never beyond a token (SPEC 14 L8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_query import Caller, Service, ServiceConfig, open_service
from session_query.protocol.wire.identity import Reach


def _header(session_id: str, cwd: str) -> dict[str, object]:
    return {"version": 0, "id": session_id, "createdAt": 1, "cwd": cwd}


def _prompt(text: str) -> dict[str, object]:
    content = [{"type": "text", "text": text}]
    data = {"id": "m", "role": "user", "source": {"kind": "user"}, "content": content}
    return {"type": "user/message", "time": 1, "surfaceOp": "append", "data": data}


async def _finds(service: Service, cwd: str, within: Reach | None = None) -> bool:
    caller = Caller(kind="workspace", workspaces=(cwd,))
    more = {} if within is None else {"within": within}
    found = await service.call_tool("session_search", {"query": "zeppelin"}, caller, **more)
    trace = await service.call_tool("session_trace", {"session_id": "s"}, caller, **more)
    assert ("s: untitled" in found.text) == (trace.code is None)
    return trace.code is None


@pytest.fixture
def folders(tmp_path: Path) -> tuple[str, str]:
    folder, link = tmp_path / "folder", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    return str(folder), str(link)


@pytest.mark.parametrize("canonical", [False, True])
async def test_a_link_is_its_folder_only_where_configured(folders: tuple[str, str], canonical: bool) -> None:
    folder, link = folders
    async with open_service(ServiceConfig(canonical_workspaces=canonical)) as service:
        live = await service.attach(_header("s", folder))
        await live.append([_prompt("the zeppelin plan")])
        assert await _finds(service, folder)
        assert await _finds(service, link) is canonical
        assert await _finds(service, f"{folder}/") is canonical
        assert not await _finds(service, f"{folder}-other")


async def test_a_link_leads_nowhere_that_the_token_does_not_list(folders: tuple[str, str]) -> None:
    folder, link = folders
    async with open_service(ServiceConfig(canonical_workspaces=True)) as service:
        live = await service.attach(_header("s", folder))
        await live.append([_prompt("the zeppelin plan")])
        assert not await _finds(service, link, Reach(workspaces=frozenset([link])))
        assert await _finds(service, link, Reach(workspaces=frozenset([link, folder])))
