"""Worlds for the tests of the whole service: see ``support.doors``."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from support.doors import DOORS, World, open_world


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A service in memory with its embedded door."""
    async with open_world(wire=False) as opened:
        yield opened


@pytest.fixture(params=DOORS)
async def either(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """A service in memory, once with each door."""
    async with open_world(wire=request.param == "wire") as opened:
        yield opened
