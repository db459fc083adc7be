"""Walking roots that other programs write: links, pipes, odd names, folders that cannot be entered."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from session_query.storage.readers.discovery import DEPTH_MAX, one_file, place_of, printable, walk
from session_query.storage.readers.lines import file_chunks, open_regular
from session_query.storage.readers.seam import SkippedPath


def found(root: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Names found and (name, reason) skipped, in order."""
    paths: list[str] = []
    skipped: list[tuple[str, str]] = []
    for each in walk(root, lambda name: name.endswith(".jsonl")):
        if isinstance(each, SkippedPath):
            skipped.append((each.path.name, each.reason))
        else:
            paths.append(each.relative_to(root).as_posix())
    return paths, skipped


def test_folders_in_name_order_files_before_what_lies_deeper(tmp_path: Path) -> None:
    for name in ("b/2.jsonl", "b/a/1.jsonl", "a/3.jsonl", "0.jsonl", "z.jsonl", "a/notes.txt", "c/x.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    assert found(tmp_path) == (["0.jsonl", "z.jsonl", "a/3.jsonl", "b/2.jsonl", "b/a/1.jsonl"], [])


def test_what_has_a_logs_name_and_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b"")
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "folder.jsonl" / "inside.jsonl").write_bytes(b"")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "log.jsonl")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert found(tmp_path) == (
        ["log.jsonl", "folder.jsonl/inside.jsonl"],
        [
            ("folder.jsonl", "a folder"),
            ("link.jsonl", "a symbolic link"),
            ("pipe.jsonl", "not a regular file"),
        ],
    )


def test_a_root_may_be_a_file_a_link_or_missing(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "log.jsonl").write_bytes(b"")
    (tmp_path / "root").symlink_to(tmp_path / "real", target_is_directory=True)
    os.mkfifo(tmp_path / "pipe")
    assert found(tmp_path / "root") == (["log.jsonl"], [])
    assert list(walk(tmp_path / "real" / "log.jsonl", lambda name: False)) == [
        tmp_path / "real" / "log.jsonl"
    ]
    assert list(walk(tmp_path / "none", lambda name: True)) == []
    assert found(tmp_path / "pipe") == ([], [("pipe", "neither a file nor a folder")])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every folder")
def test_a_folder_that_cannot_be_entered_is_told(tmp_path: Path) -> None:
    (tmp_path / "shut").mkdir(mode=0)
    (tmp_path / "log.jsonl").write_bytes(b"")
    assert found(tmp_path) == (["log.jsonl"], [("shut", "cannot be read: Permission denied")])


def test_a_chain_of_folders_ends(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * (DEPTH_MAX + 3))
    deep.mkdir(parents=True)
    (deep / "log.jsonl").write_bytes(b"")
    (tmp_path / "d" / "near.jsonl").write_bytes(b"")
    assert found(tmp_path) == (["d/near.jsonl"], [])


def test_names_that_are_no_utf8_are_printable(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    log = folder / "log.jsonl"
    log.write_bytes(b"")
    unit = one_file("toy", tmp_path, log)
    assert unit.place == r"caf\xe9"
    assert unit.place.encode("utf-8")
    assert printable(log).endswith(r"caf\xe9/log.jsonl")


def test_places_are_folders_below_the_root(tmp_path: Path) -> None:
    assert place_of(tmp_path, tmp_path / "a" / "b" / "log.jsonl") == "a/b"
    assert place_of(tmp_path, tmp_path / "log.jsonl") == ""
    assert place_of(tmp_path / "log.jsonl", tmp_path / "log.jsonl") == ""


def test_opening_a_pipe_does_not_wait(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a regular file"):
        open_regular(pipe)
    with pytest.raises(OSError, match="not a regular file"):
        list(file_chunks(pipe, 0))
