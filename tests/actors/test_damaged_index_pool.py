"""A query that meets a damaged index leaves a mark, so that the next start builds it anew (SPEC 6.12.7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_query.actors.storage import open_storage
from session_query.storage import sqlite
from session_query.storage.damage import is_suspect
from session_query.storage.store import StoreSettings, open_store
from session_query.storage.store_reader import StoreReader


@pytest.mark.parametrize(("message", "marked"), [("malformed", True), ("database is locked", False)])
async def test_damage_met_by_a_query_is_remembered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, message: str, marked: bool
) -> None:
    def query(reader: StoreReader) -> int:
        raise sqlite.DatabaseError(message)

    settings = StoreSettings(data_dir=tmp_path, readers={})
    async with open_storage(lambda: open_store(settings), search_readers=1) as storage:
        with pytest.raises(sqlite.DatabaseError):
            await storage.read(query)
        assert is_suspect(tmp_path / "index.db") is marked
    caplog.clear()
