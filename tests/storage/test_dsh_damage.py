"""dsh logs that are damaged, compressed, refused or of several generations (SPEC 1.8, 16.6, 16.7.1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_query.protocol.json_value import JSON
from session_query.storage.readers.collect import Collected
from session_query.storage.readers.dsh import READER
from session_query.storage.readers.seam import LogUnit, SkippedPath
from support.dsh_logs import HEADER, at, events, lines, log, read, session_of, user, zstd
from support.mutations import mutate
from support.reader_conformance import check_session, never, read_unit, unit_of, units_of
from support.worked import worked_log

WORKED, _ = worked_log("dsh")


@pytest.mark.parametrize(
    "data",
    [
        {"dt": [1], "texts": ["a", "b", "c"]},
        {"dt": [1], "texts": ["a", "b"]},
        {"dt": [1, "x"], "texts": ["a", "b", "c"]},
        {"dt": [1, 2], "texts": ["a", 2, "c"]},
        {"dt": [1, 2], "args": ["a", "b", "c"]},
        {"dt": [2**53, 2], "texts": ["a", "b", "c"]},
        {"dt": [2**52, 2**52], "texts": ["a", "b", "c"]},
        {"dt": [1, 2], "texts": ["a", "b", "c"], "more": 1},
        None,
    ],
)
def test_a_malformed_packed_row_is_a_loss(tmp_path: Path, data: JSON) -> None:
    row: dict[str, JSON] = {"type": "text-chunks", "seq0": 0, "time0": 5, "data": data}
    collected = read(tmp_path, log(row, user(3, "after", sourceEventSeqs=[1])))
    assert [loss.cause.split(" ")[0] for loss in collected.losses] == ["packed"]
    assert [event.type for event in session_of(collected).events] == ["user/message"]


def test_unknown_records_are_kept_log_only(tmp_path: Path) -> None:
    found = events(
        tmp_path,
        at(0, "weather/report", {"wind": 1}, ignorable=True),
        at(1, "plugin:radar", "text"),
        {"type": "bare"},
        {"type": 7},
        {"nothing": True},
        dict(HEADER),
        at(2, "turn/start", {"turn": 1}, extra=1),
    )
    assert [event.type for event in found] == [
        "weather/report",
        "plugin:radar",
        "dsh/bare",
        "dsh/record",
        "dsh/record",
        "dsh/session",
        "turn/start",
    ]
    assert found[0].ignorable is True
    assert found[2].data == {"native": {"type": "bare"}}
    assert isinstance(found[6].data, dict)
    assert isinstance(found[6].data["native"], dict)
    assert found[6].data["native"]["extra"] == 1


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ({"version": 5}, "newer-version"),
        ({"version": -1}, "corrupt"),
        ({"version": "0"}, "corrupt"),
        ({"sandboxMode": "x"}, "corrupt"),
        ({"approvalPolicy": "x"}, "corrupt"),
    ],
)
def test_a_header_that_refuses_its_session(tmp_path: Path, header: dict[str, JSON], kind: str) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(lines({**HEADER, **header}, user(0, "x")))
    (unit,) = units_of(READER, path)
    collected = read_unit(READER, unit)
    assert collected.refusal is not None
    assert collected.refusal.kind == kind
    assert collected.held == 1
    session = session_of(collected)
    assert (session.header.id, session.header.cwd, session.events) == ("s-1", "/w", [])


def test_header_fields_that_are_no_such_thing_cost_themselves(tmp_path: Path) -> None:
    session = session_of(
        read(
            tmp_path,
            log(user(0, "x"), cwd=7, createdAt=-1, seedLength=True, origin="web", parentSession=None),
        )
    )
    assert session.header.cwd is None
    assert session.header.created_at == 0
    assert len(session.notes) == 3


def test_a_lost_header_leaves_a_session_named_by_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a~0020b"
    folder.mkdir()
    session = session_of(read(folder, b'{"type":"sess\n' + lines(user(0, "x"))))
    assert session.header.id == "a b"
    assert session.header.cwd is None
    assert len(session.events) == 1


def test_a_header_alone_is_a_session_without_events(tmp_path: Path) -> None:
    assert session_of(read(tmp_path, log())).events == []


def test_a_log_of_another_program_is_refused(tmp_path: Path) -> None:
    collected = read(
        tmp_path, b'{"type":"session","version":3,"id":"x","timestamp":"t"}\n{"type":"message"}\n'
    )
    assert collected.refusal is not None
    assert collected.sessions == {}


def test_zstd_frames_grow_and_are_gone_on_from(tmp_path: Path) -> None:
    parts = WORKED.splitlines(keepends=True)
    batches = [parts[0], b"".join(parts[1:5]), parts[5], b"".join(parts[6:])]
    whole = session_of(read(tmp_path, WORKED))
    path = tmp_path / "session.jsonl.zstd"
    grown = Collected()
    for count in range(1, len(batches) + 1):
        path.write_bytes(zstd(*batches[:count]))
        (unit,) = units_of(READER, path)
        restarts = [batch.restart for batch in READER.read(unit, grown.checkpoint, never)]
        assert restarts == [count == 1]
        read_unit(READER, unit, grown)
    assert session_of(grown).events == whole.events


def test_a_bad_zstd_frame_is_one_loss(tmp_path: Path) -> None:
    frames = [zstd(line) for line in log(user(0, "a"), user(1, "b"), user(2, "c")).splitlines(keepends=True)]
    frames[2] = frames[2][:-1] + bytes([frames[2][-1] ^ 1])
    collected = read(tmp_path, b"".join(frames), "session.jsonl.zstd")
    assert [loss.records for loss in collected.losses] == [1]
    assert collected.losses[0].offset == len(frames[0]) + len(frames[1])
    assert len(session_of(collected).events) == 2


def test_every_cut_of_a_last_zstd_frame_is_a_torn_tail(tmp_path: Path) -> None:
    frames = [zstd(line) for line in log(user(0, "a"), user(1, "b")).splitlines(keepends=True)]
    whole = b"".join(frames)
    for cut in range(len(frames[0]) + len(frames[1]) + 1, len(whole)):
        collected = read(tmp_path, whole[:cut], "session.jsonl.zstd")
        assert sum(loss.records for loss in collected.losses) == 0
        assert len(session_of(collected).events) >= 1
        path = tmp_path / "session.jsonl.zstd"
        path.write_bytes(whole)
        (unit,) = units_of(READER, path)
        assert len(session_of(read_unit(READER, unit, collected)).events) == 2


def test_generations_of_one_folder_are_one_session(tmp_path: Path) -> None:
    folder = tmp_path / "--w--" / "s-1"
    folder.mkdir(parents=True)
    for name in (
        "session.jsonl",
        "session.jsonl.zstd",
        "session.v2.jsonl",
        "session.v10.jsonl",
        "session.lock",
    ):
        (folder / name).write_bytes(log(user(0, name)))
    (folder / "session.v10.jsonl.zstd").write_bytes(zstd(log(user(0, "x"))))
    found = list(READER.units(tmp_path))
    units = [unit for unit in found if isinstance(unit, LogUnit)]
    assert [(unit.path.name, unit.place) for unit in units] == [("session.v10.jsonl.zstd", "--w--/s-1")]
    skipped = [path.path.name for path in found if isinstance(path, SkippedPath)]
    assert skipped == ["session.jsonl", "session.jsonl.zstd", "session.v2.jsonl", "session.v10.jsonl"]


def test_loose_logs_of_one_folder_are_sessions_of_their_own(tmp_path: Path) -> None:
    for name in ("v1.jsonl", "session.1.jsonl", "session.v0.jsonl", "session.v01.jsonl"):
        (tmp_path / name).write_bytes(log(user(0, name)))
    assert sorted(unit.place for unit in units_of(READER, tmp_path)) == [
        "session.1.jsonl",
        "session.v0.jsonl",
        "session.v01.jsonl",
        "v1.jsonl",
    ]


def test_usual_place_is_the_home_folder_unless_named(tmp_path: Path) -> None:
    assert READER.usual_places({}, tmp_path, "linux") == [tmp_path / ".dsh" / "sessions"]
    assert READER.usual_places({"DSH_HOME": "/srv/dsh"}, tmp_path, "linux") == [Path("/srv/dsh/sessions")]


def test_a_named_zstd_file_may_be_called_anything(tmp_path: Path) -> None:
    path = tmp_path / "backup"
    path.write_bytes(zstd(log(user(0, "x"))))
    assert len(session_of(read_unit(READER, unit_of(READER, path, path))).events) == 1


def test_worked_log_survives_any_damage(tmp_path: Path) -> None:
    """Links, rows, seeds and older shapes under fire: the session that is left always folds."""
    path = tmp_path / "session.jsonl"
    path.write_bytes(WORKED)
    (unit,) = units_of(READER, path)
    for seed in range(200):
        path.write_bytes(mutate(seed, WORKED).content)
        for session in read_unit(READER, unit).sessions.values():
            check_session(session)
