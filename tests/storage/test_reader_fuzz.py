"""Damaged logs by the hundred: no exception, valid sessions, and what stands before the damage is found.

``SESSION_QUERY_FUZZ`` sets the number of seeds a format (default 80).
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

import pytest
import zstandard

from session_query.protocol.json_codec import encode_json
from session_query.storage.readers.collect import Collected
from session_query.storage.readers.registry import reader_named
from session_query.storage.readers.seam import LogUnit
from support.hazard_formats import FORMATS
from support.hazards import HazardFormat, mark
from support.mutations import mutate, mutate_values
from support.reader_conformance import check_session, never, read_unit, states_kept, unit_of, units_of
from support.worked import worked_log
from support.worked_readme import DATA, data_files

SEEDS = int(os.environ.get("SESSION_QUERY_FUZZ", "80"))
LINES = 10


def marks_before(form: HazardFormat, sound_bytes: int) -> list[int]:
    """The lines that end before the damage, none if the head is damaged."""
    end = sum(len(line) + 1 for line in form.head)
    found = []
    for number in range(LINES):
        end += len(form.line(number)) + 1
        if end <= sound_bytes:
            found.append(number)
    return found


def check(collected: Collected, expected: list[int]) -> None:
    text = b"".join(
        encode_json(event.data) for session in collected.sessions.values() for event in session.events
    )
    assert [number for number in expected if mark(number).encode() not in text] == []
    for session in collected.sessions.values():
        check_session(session)
    assert collected.records == collected.held + sum(loss.records for loss in collected.losses)


def fuzz_one(form: HazardFormat, unit: LogUnit, seed: int) -> None:
    log = unit.path
    raw = b"".join(line + b"\n" for line in [*form.head, *(form.line(number) for number in range(LINES))])
    damaged = mutate(seed, raw)
    log.write_bytes(damaged.content)
    with states_kept() if seed % 2 else nullcontext():
        collected = read_unit(form.reader, unit)
    check(collected, marks_before(form, damaged.sound_bytes))
    if collected.checkpoint is not None:
        # What a writer appends to a damaged log is read on; what was read stays.
        with log.open("ab") as file:
            file.write(b"\n" + form.line(77) + b"\n")
        again = read_unit(form.reader, unit, collected)
        check(again, [*marks_before(form, damaged.sound_bytes), 77] if not again.refusal else [])


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_logs(tmp_path: Path, name: str) -> None:
    form = FORMATS[name]
    log = tmp_path / form.name
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(form.line(0))
    unit = unit_of(form.reader, tmp_path, log)
    for seed in range(SEEDS):
        try:
            fuzz_one(form, unit, seed)
        except Exception as exc:
            raise AssertionError(f"seed {seed}") from exc


def test_damaged_zstd_logs(tmp_path: Path) -> None:
    """Whole frames before the damage are found; the rest costs what it held."""
    form = FORMATS["dsh"]
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    frames = [
        compressor.compress(line + b"\n") for line in [*form.head, *(form.line(n) for n in range(LINES))]
    ]
    log = tmp_path / "session.jsonl.zstd"
    log.write_bytes(b"".join(frames))
    unit = unit_of(form.reader, tmp_path, log)
    for seed in range(SEEDS):
        damaged = mutate(seed, b"".join(frames))
        log.write_bytes(damaged.content)
        ends = [sum(map(len, frames[: count + 1])) for count in range(len(frames))]
        sound = [number - 1 for number, end in enumerate(ends) if end <= damaged.sound_bytes and number]
        try:
            check(read_unit(form.reader, unit), sound)
        except Exception as exc:
            raise AssertionError(f"seed {seed}") from exc


def test_a_read_of_noise_is_refused_or_empty(tmp_path: Path) -> None:
    form = FORMATS["dsh"]
    log = tmp_path / "session.jsonl"
    log.write_bytes(b"x")
    unit = unit_of(form.reader, tmp_path, log)
    for seed in range(SEEDS):
        log.write_bytes(mutate(seed, bytes((seed * 7 + n * n) % 256 for n in range(3000))).content)
        assert all(not batch.sessions for batch in form.reader.read(unit, None, never))


def worked_files(package: str) -> dict[str, bytes]:
    return {"session.jsonl": worked_log("dsh")[0]} if package == "dsh" else data_files(package)


@pytest.mark.parametrize("package", ["dsh", *sorted(path.name for path in DATA.iterdir())])
def test_records_with_values_of_other_kinds(tmp_path: Path, package: str) -> None:
    """The syntax is whole and the values are not: each session that is left is valid."""
    reader = reader_named(package.replace("_", "-"))
    files = worked_files(package)
    names = [name for name in sorted(files) if name.endswith((".json", ".jsonl"))]
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for seed in range(SEEDS):
        name = names[seed % len(names)]
        log = tmp_path / name
        log.write_bytes(mutate_values(seed, files[name], lines=name.endswith(".jsonl")))
        try:
            for unit in units_of(reader, tmp_path):
                check(read_unit(reader, unit), [])
        except Exception as exc:
            raise AssertionError(f"seed {seed}, {name}") from exc
        log.write_bytes(files[name])
