"""How long an answer takes does not tell a hidden session from a missing one.

Calls about the two are made in pairs, in random order, and compared by a rank test, which neither a busy
machine nor a few slow calls upset. A difference counts when three rounds find it one after the other. The
control adds one millisecond to one of the two, which is found.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from session_query import open_client
from session_query.storage.tokens import TOKEN_FILE, add_token
from support.attack import Attacker, Message, attacker
from support.rank_test import signed_rank_z
from support.served import Served, served
from support.sessions import prompt_record

pytestmark = pytest.mark.slow

OWN, VAULT = "/open/desk", "/secret/vault"
HIDDEN, MISSING = "hidden-target-1", "absent-target-1"
PAIRS = 250
ROUNDS = 3
FOUND_Z = 3.0
"""One round calls it a difference in 3 of 1,000 runs by chance, three rounds of one sign in 1 of 10^8."""
ADDED_S = 0.001


def _query(method: str, **params: Any) -> Message:
    return {"type": "query", "method": method, "params": params}


def _call(tool: str, **arguments: Any) -> Message:
    return {"type": "call", "workspace": OWN, "tool": tool, "arguments": arguments}


ABOUT: dict[str, Callable[[str], Message]] = {
    "read_title": lambda name: _query("read_title", session_id=name),
    "read_event": lambda name: _query("read_event", session_id=name, seq=0),
    "list_events": lambda name: _query("list_events", session_id=name),
    "trace_session": lambda name: _query("trace_session", session_id=name),
    "search_events": lambda name: _query("search_events", session_id=name, query="words"),
    "filter_sessions": lambda name: _query("filter_sessions", filters=[{"kind": "id", "values": [name]}]),
    "session_trace": lambda name: _call("session_trace", session_id=name),
    "agent": lambda name: {"type": "call", "agent": name, "tool": "session_trace", "arguments": {}},
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("timed") / "data") as running:
        yield running


def _event(number: int) -> Message:
    return prompt_record(f"many words of {number}", id_=f"m{number}", time=number)


async def _furnish(service: Served, directory: Path) -> str:
    """A hidden session of some size with children, and an own workspace; returns a reader's token."""
    async with open_client(service.url, service.token) as operator:
        for name, cwd, parent in (
            (HIDDEN, VAULT, None),
            *((f"hidden-child-{number}", VAULT, HIDDEN) for number in range(5)),
            *((f"own-{number}", OWN, None) for number in range(5)),
        ):
            header: Message = {"version": 0, "id": name, "createdAt": 1, "cwd": cwd}
            publication = await operator.publish(header | ({"parentSession": parent} if parent else {}))
            await publication.append([_event(number) for number in range(100)])
    return add_token(directory / TOKEN_FILE, role="reader", workspaces=[OWN])[1]


async def _seconds(peer: Attacker, request: Message, added_s: float) -> float:
    began = time.perf_counter()
    await peer.ask(request)
    if added_s:
        time.sleep(added_s)  # noqa: ASYNC251 - a server that takes longer, to the very microsecond
    return time.perf_counter() - began


async def _round(peer: Attacker, about: Callable[[str], Message], added_s: float) -> float:
    """The standard score of hidden minus missing over ``PAIRS`` pairs."""
    differences = []
    for _ in range(PAIRS):
        taken: dict[str, float] = {}
        for name in random.sample((HIDDEN, MISSING), 2):
            taken[name] = await _seconds(peer, about(name), added_s if name == HIDDEN else 0.0)
        differences.append(taken[HIDDEN] - taken[MISSING])
    return signed_rank_z(differences)


async def _scores(peer: Attacker, about: Callable[[str], Message], added_s: float = 0.0) -> list[float]:
    """One score a round; the rounds end with the first one that finds nothing."""
    scores: list[float] = []
    while len(scores) < ROUNDS:
        scores.append(await _round(peer, about, added_s))
        if abs(scores[-1]) < FOUND_Z:
            break
    return scores


def _told_apart(scores: list[float]) -> bool:
    return len(scores) == ROUNDS and (min(scores) >= FOUND_Z or max(scores) <= -FOUND_Z)


async def test_hidden_and_missing_take_the_same_time(service: Served) -> None:
    token = await _furnish(service, service.token_file.parent)
    async with attacker(service.url, token) as reader:
        for name in ABOUT:  # warm
            for session in (HIDDEN, MISSING):
                await _seconds(reader, ABOUT[name](session), 0.0)
        found = {name: await _scores(reader, about) for name, about in ABOUT.items()}
        assert not {name: scores for name, scores in found.items() if _told_apart(scores)}
        control = await _scores(reader, ABOUT["read_title"], ADDED_S)
        assert _told_apart(control), control


def test_the_score_of_known_samples() -> None:
    # Differences -1..-5 and +6..+20: W+ = 195 of n = 20, mean 105, variance 717.5.
    known = [-1.0, -2.0, -3.0, -4.0, -5.0, *map(float, range(6, 21))]
    assert signed_rank_z(known) == pytest.approx((195 - 105) / 717.5**0.5)
    assert signed_rank_z([-value for value in known]) == pytest.approx(-signed_rank_z(known))
    assert signed_rank_z([1.0, -1.0] * 30) == 0.0
    assert signed_rank_z([0.0] * 10) == 0.0
    assert signed_rank_z([0.0, 2.0, 2.0, 2.0, 2.0]) == pytest.approx(2.0)  # all tied: 5 / sqrt(7.5 - 60/48)
