"""Where logs are looked for, and the list a data directory remembers."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from session_query.protocol.errors import Code, QueryError
from session_query.storage.sources.spec import (
    BadSource,
    SourceList,
    SourceSpec,
    find_sources,
    load_list,
    merged,
    parse_source,
    save_list,
    usual_roots,
)
from support.toy_logs import DocumentReader, ToyReader

READERS = {"toy": ToyReader(), "doc": DocumentReader()}


def test_usual_places_that_exist(tmp_path: Path) -> None:
    (tmp_path / ".toy").mkdir()
    found = find_sources(READERS, {}, tmp_path, "linux")
    assert found == [
        SourceSpec(format="toy", root=tmp_path / ".toy"),
        SourceSpec(format="doc", root=tmp_path / ".toy"),
    ]
    everywhere = usual_roots(READERS, {}, tmp_path, "linux")
    assert [spec.root.name for spec in everywhere] == [".toy", ".other-toy"] * 2


def test_a_tools_own_variable_moves_its_place(tmp_path: Path) -> None:
    (tmp_path / "moved").mkdir()
    found = find_sources(READERS, {"TOY_HOME": str(tmp_path / "moved")}, tmp_path, "linux")
    assert {spec.root for spec in found} == {tmp_path / "moved"}


def test_our_variable_replaces_the_usual_places(tmp_path: Path) -> None:
    (tmp_path / ".toy").mkdir()
    value = os.pathsep.join([f"doc={tmp_path / 'x'}", "", f"toy={tmp_path / 'a=b'}"])
    found = find_sources(READERS, {"SESSION_QUERY_SOURCES": value}, tmp_path, "linux")
    assert found == [
        SourceSpec(format="doc", root=tmp_path / "x"),
        SourceSpec(format="toy", root=tmp_path / "a=b"),
    ]
    assert find_sources(READERS, {"SESSION_QUERY_SOURCES": ""}, tmp_path, "linux") == []


@pytest.mark.parametrize("entry", ["", "toy", "toy=", "=x", "unknown=/x"])
def test_what_is_no_source(entry: str) -> None:
    with pytest.raises(BadSource):
        parse_source(entry, READERS)


def test_the_remembered_list(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert load_list(data) is None
    odd = Path(os.fsdecode(b"/logs/\xff\xe4\xb8\xad"))
    sources = [
        SourceSpec(format="toy", root=odd, retain=True),
        SourceSpec(format="doc", root=Path("/x")),
    ]
    for usual in (True, False):
        save_list(data, SourceList(tuple(sources), usual))
        assert load_list(data) == SourceList(tuple(sources), usual)
    save_list(data, SourceList((*sources, SourceSpec(format="doc", root=Path("/x"), retain=True))))
    again = load_list(data)
    assert again is not None
    assert [spec.retain for spec in again.named] == [True, True], "one entry a root, the last word counts"
    assert [path.name for path in data.iterdir()] == ["sources.json"]
    assert stat.S_IMODE((data / "sources.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "content", [b"", b"{}", b'{"sources":3}', b'{"sources":[{"format":"toy"}]}', b"\xff\xfe"]
)
def test_a_list_that_is_none_is_an_error_not_an_empty_list(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "sources.json").write_bytes(content)
    with pytest.raises(QueryError) as caught:
        load_list(tmp_path)
    assert caught.value.code is Code.INVALID_CONFIG


def test_merging_keeps_the_first_place_and_the_last_word() -> None:
    one = SourceSpec(format="toy", root=Path("/a"))
    other = SourceSpec(format="toy", root=Path("/b"))
    kept = SourceSpec(format="toy", root=Path("/a"), retain=True)
    assert merged([one, other], [kept]) == [kept, other]


def test_a_link_to_a_source_is_that_source_under_its_first_name(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "logs")
    one = SourceSpec(format="toy", root=tmp_path / "link")
    same = SourceSpec(format="toy", root=tmp_path / "logs", retain=True)
    other = SourceSpec(format="doc", root=tmp_path / "logs")
    assert merged([one], [same, other]) == [SourceSpec(format="toy", root=one.root, retain=True), other]
