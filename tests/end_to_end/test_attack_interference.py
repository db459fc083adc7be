"""What happens in one workspace changes no answer in another: no count, no order, no byte (SPEC 16.1.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from session_query import Client, open_client
from session_query.storage.tokens import TOKEN_FILE, add_token
from support.attack import Attacker, Message, Names, attacker, requests_about
from support.served import Served, served

pytestmark = pytest.mark.slow

OWN = "/open/desk"
ELSEWHERE = "/other/house"
AT = 1_700_000_000_000
NAMES = Names("plan-alpha-01", OWN, "alpha", "spill:" + "0" * 32 + ":" + "0" * 32)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("interference") / "data") as running:
        yield running


async def _publish(client: Client, session_id: str, cwd: str, texts: Sequence[str]) -> None:
    header = {"version": 0, "id": session_id, "createdAt": AT, "cwd": cwd}
    publication = await client.publish(header)
    await publication.append(
        [
            {
                "type": "user/message",
                "time": AT + number,
                "surfaceOp": "append",
                "data": {
                    "id": f"m{number}",
                    "role": "user",
                    "source": {"kind": "user"},
                    "content": [{"type": "text", "text": text}],
                },
            }
            for number, text in enumerate(texts)
        ]
    )
    await publication.close()


async def _furnish(operator: Client) -> None:
    """One session speaks of alpha, two of beta: alpha is the rarer word, and its session comes first."""
    filler = "of the yellow house by the river"
    await _publish(operator, "plan-alpha-01", OWN, [f"alpha {filler}"])
    await _publish(operator, "plan-beta-001", OWN, [f"beta {filler}"])
    await _publish(operator, "plan-beta-002", OWN, [f"beta {filler} too"])
    for number in range(12):
        await _publish(operator, f"plan-other-{number}", OWN, [f"nothing {filler} {number}"])


async def _flood(operator: Client, cwd: str, prefix: str) -> None:
    """Forty sessions that are all about alpha (a fork would show: a trace marks hidden subtrees, 10.7.10)"""
    for number in range(40):
        texts = [f"alpha alpha number {number}", "alpha and others", "more of alpha"]
        await _publish(operator, f"{prefix}-{number}", cwd, texts)


def _battery() -> list[Message]:
    """Every request that can be repeated, and searches whose order hangs on the rarity of words."""
    asked = [request for _, request in requests_about(NAMES, "plan-beta-001", OWN)]
    kept = [
        request
        for request in asked
        if request["type"] in ("tools", "call", "query", "fetch") and request.get("method") != "health"
    ]
    for match in ("exact", "words", "some", "auto"):
        for query in ("alpha beta", "beta alpha", "alpha", "beta", "yellow alpha beta"):
            search = {
                "type": "query",
                "method": "search_sessions",
                "params": {"query": query, "match": match},
            }
            kept.append(search)
            arguments = {"query": query, "match": match}
            kept.append({"type": "call", "workspace": OWN, "tool": "session_search", "arguments": arguments})
    return kept


async def _order(reader: Attacker) -> list[str]:
    answer = await reader.told(
        {
            "type": "query",
            "method": "search_sessions",
            "params": {"query": "alpha beta", "match": "some", "limit": 100},
        }
    )
    return [hit["header"]["id"] for hit in answer["value"]["hits"] if hit["header"]["id"].startswith("plan")]


async def test_a_flood_elsewhere_changes_no_byte_and_one_at_home_does(service: Served) -> None:
    _, token = add_token(service.token_file.parent / TOKEN_FILE, role="reader", workspaces=[OWN])
    battery = _battery()
    async with (
        open_client(service.url, service.token) as operator,
        attacker(service.url, token) as reader,
    ):
        await _furnish(operator)
        before = [await reader.ask(request) for request in battery]
        order = await _order(reader)
        assert order[0] == "plan-alpha-01"
        await _flood(operator, ELSEWHERE, "stranger")
        assert [await reader.ask(request) for request in battery] == before
        # The control: the same flood at home makes alpha the common word.
        await _flood(operator, OWN, "neighbour")
        after = [await reader.ask(request) for request in battery]
        assert sum(one != other for one, other in zip(before, after, strict=True)) > 20
        assert (await _order(reader))[0] != "plan-alpha-01"
