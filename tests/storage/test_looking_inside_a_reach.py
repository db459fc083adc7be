"""Looking sessions up by id inside some workspaces: rows outside are not found, and not even come to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from session_query.protocol.header import SessionHeader
from session_query.storage.index import SessionKey, SessionState
from session_query.storage.index.reader import Reader
from session_query.storage.sqlite import Connection, Cursor, Parameters
from support.index_files import IndexFile, open_index

CWDS = ("/a", "/b", None, "/odd\ud800")


@pytest.fixture
def index() -> Iterator[IndexFile]:
    with open_index() as opened:
        for number, cwd in enumerate(CWDS):
            header = SessionHeader(id="same", created_at=number, cwd=cwd)
            opened.put(SessionKey("dsh", str(number), "same"), SessionState(header=header, rank=2))
        yield opened


@pytest.mark.parametrize(
    ("workspaces", "found"),
    [
        (None, set(CWDS)),
        ((), set()),
        (("/a",), {"/a"}),
        (("/a", None), {"/a", None}),
        ((None,), {None}),
        (("/odd\ud800", "/elsewhere"), {"/odd\ud800"}),
        (("/A", "/a/", "/elsewhere"), set()),
    ],
)
def test_only_sessions_of_the_workspaces_are_found(
    index: IndexFile, workspaces: tuple[str | None, ...] | None, found: set[str | None]
) -> None:
    with index.reader.snapshot():
        rows = index.reader.with_ids(["same", "other"], workspaces)
    assert {row.state.header.cwd for row in rows} == found


class Explaining:
    """A connection that notes how each of its statements is run."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.plans: list[str] = []

    def execute(self, sql: str, parameters: Parameters = ()) -> Cursor:
        if sql.startswith("SELECT"):
            plan = self.connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters).fetchall()
            self.plans.append(" ".join(row[3] for row in plan))
        return self.connection.execute(sql, parameters)


def test_a_row_outside_costs_no_time(index: IndexFile) -> None:
    """Coming to it would take some microseconds, and reading it twenty: enough to tell it from none."""
    explaining = Explaining(index.reader_connection)
    reader = Reader(cast(Connection, explaining))
    assert len(reader.with_ids(["same"], ("/a", "/b"))) == 2
    (plan,) = explaining.plans
    assert "USING INDEX session_id (id=? AND ws=?)" in plan
