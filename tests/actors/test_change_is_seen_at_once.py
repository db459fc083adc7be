"""SPEC 6.10, 16.3: what another process wrote before a search began is found by it, or its age is told."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from session_query import Caller, Service, ServiceConfig, Source, open_service
from session_query.storage.sources import watch

OPERATOR = Caller(kind="operator")
ROUNDS = 25


def prompt(session: str, number: int, text: str) -> str:
    shared = {"sessionId": session, "cwd": "/w", "version": "2.1.0", "isSidechain": False}
    ids = {"uuid": f"{session}-{number}", "parentUuid": None, "timestamp": "2026-09-01T00:00:00.000Z"}
    return json.dumps({**ids, **shared, "type": "user", "message": {"role": "user", "content": text}}) + "\n"


def write(root: Path, session: str, number: int, text: str) -> None:
    path = root / "-w" / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(prompt(session, number, text))


async def ask(service: Service, word: str) -> tuple[bool, Any]:
    """Whether a search finds the word, and its receipt."""
    answer = await service.call_tool("session_search", {"query": word}, OPERATOR)
    return word in answer.text and "No " not in answer.text.split("\n")[0], answer.receipt


async def until_watched(service: Service) -> None:
    with trio.fail_after(20):
        while not (await service.statistics())["sources"]["watched"]:  # noqa: ASYNC110 - a public counter
            await trio.sleep(0.02)
        await ask(service, "nothing")


@pytest.fixture
def config(tmp_path: Path) -> ServiceConfig:
    (tmp_path / "logs").mkdir()
    return ServiceConfig(
        data_dir=tmp_path / "data",
        sources=(Source(format="claude-code", root=tmp_path / "logs"),),
        watch=True,
    )


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the watch has a delay")
async def test_a_line_written_just_before_a_search_is_found_by_it(config: ServiceConfig) -> None:
    root = config.sources[0].root
    async with open_service(config) as service:
        await until_watched(service)
        for number in range(ROUNDS):
            session = f"session{number % 3}"  # new logs, new folders, and logs that grow
            write(root if number % 5 else root / f"more{number}", session, number, f"word{number}x")
            found, receipt = await ask(service, f"word{number}x")
            assert found
            # a new folder is marked once more when its watch stands: then the receipt says so
            assert receipt.checked_ago_s is None or 0 <= receipt.checked_ago_s < 10


@pytest.mark.slow
async def test_without_such_a_watch_the_change_is_seen_soon(
    config: ServiceConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> None:
        raise OSError(28, "no watch left")

    monkeypatch.setattr(watch, "open_inotify", refused)
    root = config.sources[0].root
    async with open_service(config) as service:
        write(root, "one", 1, "pomegranate")
        with trio.fail_after(20):
            found, receipt = await ask(service, "pomegranate")
            while not found:  # at most a look a second
                await trio.sleep(0.05)
                found, receipt = await ask(service, "pomegranate")
        assert receipt.checked_ago_s is None or receipt.checked_ago_s >= 0
