"""A host may be cancelled at any moment of opening: the block ends, and nothing of the service is left."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from session_query.actors.config import ServiceConfig
from session_query.actors.edge.server_config import ServerConfig
from session_query.actors.serve import open_edge
from session_query.actors.service import open_service
from support.wire_edge import TOKENS

LIMIT_S = 20.0
TURNS = (*range(12), 20, 40, 80)


async def _cancel_after(turns: int, scope: trio.CancelScope) -> None:
    for _ in range(turns):
        await trio.lowlevel.checkpoint()
    scope.cancel()


async def test_a_service_opened_by_a_cancelled_host_ends(tmp_path: Path) -> None:
    with trio.fail_after(LIMIT_S), trio.CancelScope() as scope:
        scope.cancel()
        async with open_service(ServiceConfig(data_dir=tmp_path)):
            await trio.sleep_forever()
    assert scope.cancelled_caught


@pytest.mark.parametrize("turns", TURNS)
async def test_cancelled_while_service_and_edge_open(tmp_path: Path, turns: int) -> None:
    config = ServiceConfig(data_dir=tmp_path)
    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as scope:
                nursery.start_soon(_cancel_after, turns, scope)
                async with open_service(config) as service, open_edge(service, ServerConfig(tokens=TOKENS)):
                    await trio.sleep_forever()
        assert scope.cancelled_caught
        async with open_service(config) as service:  # the data directory is free again
            assert service.is_open


@pytest.mark.parametrize("turns", TURNS)
async def test_cancelled_while_an_edge_opens(turns: int) -> None:
    with trio.fail_after(LIMIT_S):
        async with open_service(ServiceConfig()) as service, trio.open_nursery() as nursery:
            with trio.CancelScope() as scope:
                nursery.start_soon(_cancel_after, turns, scope)
                async with open_edge(service, ServerConfig(tokens=TOKENS)):
                    await trio.sleep_forever()
            assert scope.cancelled_caught
