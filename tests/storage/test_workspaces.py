"""One form for the many spellings of a folder (SPEC 14 L8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_query.storage.workspaces import canonical


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/no/such/", "/no/such"),
        ("c:\\x\\", "C:\\x"),
        ("c:/x", "C:/x"),
        ("\\\\host\\share\\", "\\\\host\\share"),
    ],
)
def test_what_is_not_there_is_evened_out_by_its_text_alone(one: str, other: str) -> None:
    assert canonical(one) == canonical(other) == other


@pytest.mark.parametrize(
    "cwd", ["", "/", "relative", "/a\0b", "\ud800", "-experiments/worktrees", "/" + "x" * 5000]
)
def test_anything_has_a_form_and_the_same_one_twice(cwd: str) -> None:
    assert canonical(canonical(cwd)) == canonical(cwd)


def test_a_link_and_its_folder_are_one(tmp_path: Path) -> None:
    folder, link = tmp_path / "folder", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    assert canonical(f"{link}/") == canonical(str(folder))


def test_a_worktree_is_its_repository(tmp_path: Path) -> None:
    repository, worktree = tmp_path / "repo", tmp_path / "tree"
    (repository / ".git" / "worktrees" / "tree").mkdir(parents=True)
    worktree.mkdir()
    (worktree / ".git").write_text(f"gitdir: {repository}/.git/worktrees/tree\n")
    assert canonical(str(worktree)) == canonical(str(repository))


@pytest.mark.parametrize("marker", ["gitdir: ../elsewhere", "nonsense", "gitdir: /gone/.git/worktrees/x"])
def test_a_marker_that_says_nothing_leaves_the_folder_itself(tmp_path: Path, marker: str) -> None:
    (tmp_path / ".git").write_text(marker)
    assert canonical(str(tmp_path)) == str(tmp_path.resolve())
