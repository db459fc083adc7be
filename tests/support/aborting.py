"""Searches that are expected to be refused or aborted."""

from __future__ import annotations

from session_query import QueryError, SessionSearchRequest, Signal
from support.doors import World


async def search(world: World, signal: Signal, lane: str = "one") -> None:
    await world.service.search_sessions(SessionSearchRequest(query="fox"), lane=lane, signal=signal)


async def rejected(world: World, signal: Signal, codes: list[object], lane: str = "one") -> None:
    """Note how a search ends: its code, an exception of another kind, or "answered"."""
    try:
        await search(world, signal, lane)
    except QueryError as exc:
        codes.append(exc.code)
    except Exception as exc:
        codes.append(exc)
    else:
        codes.append("answered")
