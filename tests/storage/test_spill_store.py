"""SPEC 12.1.8, 14 L34, 16.10: the private store for long results."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session_query.storage.spill import (
    SpillNotFound,
    SpillRangeError,
    SpillRetention,
    SpillStore,
    _escape,
    path_hint,
)

KEEP_ALL = SpillRetention(max_age_s=None, max_owner_bytes=None, max_total_bytes=None)


def put(store: SpillStore, owner: str, text: str, *, at: float | None = None, name: str = "tool.txt") -> str:
    plan = store.plan(owner, name)
    store.write(plan, text.encode())
    if at is not None:
        os.utime(plan.path, (at, at))
    return plan.locator


def files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(os.name != "posix", reason="permission bits")
def test_everything_is_private(tmp_path: Path) -> None:
    root = tmp_path / "deep" / "spill"
    previous = os.umask(0)
    try:
        put(SpillStore(root=root), "me", "text")
    finally:
        os.umask(previous)
    (file,) = files(root)
    assert (mode(root), mode(file.parent), mode(file)) == (0o700, 0o700, 0o600)


@pytest.mark.skipif(os.name != "posix", reason="permission bits")
def test_a_root_that_was_open_is_closed(tmp_path: Path) -> None:
    root = tmp_path / "spill"
    root.mkdir(mode=0o755)
    put(SpillStore(root=root), "me", "text")
    assert mode(root) == 0o700


def test_a_plan_touches_nothing_and_a_file_is_never_overwritten(tmp_path: Path) -> None:
    store = SpillStore(root=tmp_path / "spill", hint=path_hint)
    plan = store.plan("me", "tool.txt")
    assert not (tmp_path / "spill").exists()
    assert str(plan.path) in plan.hint
    store.write(plan, b"one")
    with pytest.raises(FileExistsError):
        store.write(plan, b"two")
    assert plan.path.read_bytes() == b"one"


@pytest.mark.skipif(os.name != "posix", reason="symbolic links")
def test_a_link_in_the_way_is_not_followed(tmp_path: Path) -> None:
    store = SpillStore(root=tmp_path / "spill")
    plan = store.plan("me", "tool.txt")
    plan.path.parent.mkdir(parents=True)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    plan.path.symlink_to(victim)
    with pytest.raises(FileExistsError):
        store.write(plan, b"overwritten")
    with pytest.raises(SpillNotFound):
        store.read_range(plan.locator, 0, 100)
    assert victim.read_text() == "precious"


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    store = SpillStore(root=tmp_path)
    plan = store.plan("me", "tool.txt")
    with pytest.raises(TypeError):
        store.write(plan, "not bytes")  # type: ignore[arg-type]
    assert files(tmp_path) == []


def test_locators_tell_nothing_and_reach_nothing_else(tmp_path: Path) -> None:
    store = SpillStore(root=tmp_path / "spill")
    locator = put(store, "session:secret-id", "text")
    assert "secret" not in locator
    assert str(tmp_path) not in locator
    (tmp_path / "spill" / "outside").write_text("outside")
    folder = locator.split(":")[1]
    for other in (
        "",
        "spill:",
        locator + "x",
        locator[:-1],
        locator + "\n",
        locator.upper(),
        f"spill:{folder}:{'0' * 32}",
        f"spill:{'0' * 32}:{locator.split(':')[2]}",
        f"spill:{folder}:../outside",
        f"spill:..:{'0' * 32}",
        "/etc/passwd",
    ):
        with pytest.raises(SpillNotFound):
            store.read_range(other, 0, 100)


def test_another_owner_hears_the_same_as_for_a_missing_result(tmp_path: Path) -> None:
    store = SpillStore(root=tmp_path)
    locator = put(store, "me", "text")
    assert store.read_range(locator, 0, 100, owner="me").data == "text"
    messages = []
    for owner, name in (("you", locator), ("you", "spill:x"), ("me", locator[:-1] + "g")):
        with pytest.raises(SpillNotFound) as caught:
            store.read_range(name, 0, 100, owner=owner)
        messages.append(str(caught.value))
    assert len(set(messages)) == 1


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet="aé修🙂", max_size=60), st.integers(1, 20))
def test_following_ranges_gives_the_whole_text_in_whole_code_points(
    tmp_path: Path, text: str, limit: int
) -> None:
    store = SpillStore(root=tmp_path)
    locator = put(store, "me", text)
    parts, offset = [], 0
    while True:
        piece = store.read_range(locator, offset, limit)
        assert piece.offset_bytes == offset
        assert piece.total_bytes == len(text.encode())
        assert len(piece.data.encode()) <= max(limit, 4)
        assert piece.next_offset == offset + len(piece.data.encode())
        parts.append(piece.data)
        if piece.next_offset == piece.total_bytes:
            break
        assert piece.next_offset > offset
        offset = piece.next_offset
    assert "".join(parts) == text


@pytest.mark.parametrize(("offset", "limit"), [(-1, 1), (7, 1), (2, 5), (0, 0), (1, -1)])
def test_ranges_that_are_none(tmp_path: Path, offset: int, limit: int) -> None:
    store = SpillStore(root=tmp_path)
    locator = put(store, "me", "a修bc")  # six bytes; 2 and 3 lie inside a code point
    with pytest.raises(SpillRangeError):
        store.read_range(locator, offset, limit)
    assert store.read_range(locator, 6, 1).data == ""


def test_retention_by_age_and_by_size_oldest_first(tmp_path: Path) -> None:
    store = SpillStore(root=tmp_path)
    kept = {name: put(store, owner, "x" * 100, at=at) for name, owner, at in [
        ("old", "a", 100), ("a1", "a", 1_000), ("a2", "a", 1_001), ("a3", "a", 1_002), ("b1", "b", 900),
    ]}  # fmt: skip

    def left() -> set[str]:
        found = set()
        for name, locator in kept.items():
            try:
                store.read_range(locator, 0, 1)
            except SpillNotFound:
                continue
            found.add(name)
        return found

    assert store.sweep(1_100, KEEP_ALL).files == 0
    swept = store.sweep(1_100, SpillRetention(max_age_s=500, max_owner_bytes=None, max_total_bytes=None))
    assert (swept.files, swept.bytes, left()) == (1, 100, {"a1", "a2", "a3", "b1"})
    store.sweep(1_100, SpillRetention(max_age_s=None, max_owner_bytes=250, max_total_bytes=None))
    assert left() == {"a2", "a3", "b1"}
    store.sweep(1_100, SpillRetention(max_age_s=None, max_owner_bytes=None, max_total_bytes=200))
    assert left() == {"a2", "a3"}
    store.sweep(1_100, SpillRetention(max_total_bytes=0))
    assert left() == set()
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_of_a_store_that_never_was(tmp_path: Path) -> None:
    assert SpillStore(root=tmp_path / "none").sweep(0, SpillRetention()).files == 0


def test_a_sweep_leaves_what_is_not_ours(tmp_path: Path) -> None:
    store = SpillStore(root=tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("keep")
    put(store, "me", "text", at=0)
    store.sweep(10**10, SpillRetention())
    assert [path.name for path in files(tmp_path)] == ["mine.txt"]


def test_16_10_forgetting_an_owner_erases_its_bytes(tmp_path: Path) -> None:
    store = SpillStore(root=tmp_path)
    put(store, "me", "alpha")
    put(store, "me", "beta")
    other = put(store, "you", "gamma")
    links = []
    for number, file in enumerate(files(tmp_path)):
        links.append(tmp_path / f"link{number}")
        os.link(file, links[-1])
    assert store.forget("me") == 2
    assert store.forget("nobody") == 0
    assert store.read_range(other, 0, 10).data == "gamma"
    remains = sorted(link.read_bytes() for link in links)
    assert remains == [b"\0" * 4, b"\0" * 5, b"gamma"]


def test_16_10_forgetting_a_session_erases_what_quotes_it_wherever(tmp_path: Path) -> None:
    store = SpillStore(root=tmp_path)
    put(store, "me", "x" * (1 << 20) + "session 5b6c: a hit", name="a")
    put(store, "you", "x" * ((1 << 20) - 3) + "5b6c", name="b")
    put(store, "you", 'session "odd\\nid": another', name="c")
    kept = put(store, "you", "session 77fe: other")
    assert store.forget_sessions(["5b6c", "odd\nid", ""]) == 3
    assert store.read_range(kept, 0, 7).data == "session"
    assert store.forget_sessions([]) == 0


@settings(max_examples=200)
@given(st.text(max_size=300), st.text(max_size=300))
def test_names_are_escaped_injectively_and_fit_a_file_system(one: str, two: str) -> None:
    names = _escape(one), _escape(two)
    assert (names[0] == names[1]) == (one == two)
    assert all(len(name) <= 180 and name.isascii() and "/" not in name and "\\" not in name for name in names)
