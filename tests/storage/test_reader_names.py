"""Logs whose names are bytes outside UTF-8 are read like others, and stay apart (SPEC 16.6.4)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from support.hazard_formats import FORMATS
from support.hazards import mark
from support.reader_conformance import read_unit, unit_of


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems take UTF-8 names alone")
@pytest.mark.parametrize("name", FORMATS)
def test_a_log_whose_name_is_no_utf_8_is_read(tmp_path: Path, name: str) -> None:
    form = FORMATS[name]
    ids: set[str] = set()
    for byte in (b"\xfe", b"\xff"):
        stem, dot, suffix = os.fsencode(form.name).rpartition(b".")
        log = tmp_path / os.fsdecode(byte) / os.fsdecode(stem + byte + dot + suffix)
        log.parent.mkdir(parents=True)
        log.write_bytes(b"".join(line + b"\n" for line in [*form.head, form.line(0)]))
        found = read_unit(form.reader, unit_of(form.reader, tmp_path / os.fsdecode(byte), log))
        assert mark(0) in str([session.events for session in found.sessions.values()])
        ids |= set(found.sessions)
    assert all(session_id.encode("utf-8") for session_id in ids)
