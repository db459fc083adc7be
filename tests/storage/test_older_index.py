"""SPEC 6.12.2: an index of an earlier version is ours, whatever tables that version had; it is built anew."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from support.stores import open_toy_store
from support.toy_logs import line

EARLIER = (
    "block",
    "body",
    "catalog_loss",
    "catalog_root",
    "catalog_session",
    "catalog_skipped",
    "catalog_unit",
    "doc",
    "index_meta",
    "repeats",
    "repeats_todo",
    "session",
    "skeleton",
    "source",
    "span_end",
    "span_todo",
    "span_word",
    "type",
    "workspace",
)
"""What an index held when texts and skeletons lay in tables of their own."""


@pytest.mark.parametrize("retain", [False, True])
def test_an_index_with_the_tables_of_an_earlier_version_is_built_anew(tmp_path: Path, retain: bool) -> None:
    toys = open_toy_store(tmp_path, retain=retain)
    kept = toys.write("kept.toy", line("kept", "alpha"))
    toys.write("gone.toy", line("gone", "beta"))
    toys.refresh()
    toys.store.forgetting.forget(toys.sessions()["gone"].key)
    toys.close()
    connection = sqlite3.connect(tmp_path / "data/index.db")
    for table in EARLIER:
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table}(a)")
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    if retain:
        kept.unlink()
    toys = open_toy_store(tmp_path, retain=retain)
    toys.refresh()
    assert set(toys.sessions()) == {"kept"}, "copies are taken from the journal, what was forgotten stays so"
    assert toys.found("alpha") == {"kept"}
    toys.close()
