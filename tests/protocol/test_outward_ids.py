"""Outward ids (SPEC 16.6.1)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_query.protocol.outward import named, outward_ids, possible_ids


@attrs.frozen
class Key:
    source: str
    place: str
    id: str


def test_a_unique_id_stays_bare() -> None:
    assert outward_ids([Key("codex", "", "a"), Key("dsh", "", "b")]) == {
        Key("codex", "", "a"): "a",
        Key("dsh", "", "b"): "b",
    }


def test_the_same_id_of_two_sources_is_told_by_source() -> None:
    keys = [Key("codex", "", "a"), Key("dsh", "", "a")]
    assert list(outward_ids(keys).values()) == ["codex:a", "dsh:a"]
    assert named("codex:a", keys) == keys[0]
    assert named("a", keys) is None


def test_the_same_id_in_two_folders_of_one_source_is_told_by_place() -> None:
    keys = [Key("dsh", "x/y", "a"), Key("dsh", "z", "a"), Key("codex", "", "a")]
    assert list(outward_ids(keys).values()) == ["dsh/x/y:a", "dsh/z:a", "codex:a"]
    assert named("dsh/z:a", keys) == keys[1]
    assert named("dsh:a", keys) is None


def test_an_id_with_colons_is_found_as_it_is() -> None:
    keys = [Key("acp", "", "codex:a"), Key("codex", "", "a")]
    assert named("codex:a", keys) == keys[0]
    assert list(possible_ids("a:b:c")) == ["a:b:c", "b:c", "c"]


def test_a_source_prefix_that_is_not_needed_names_nothing() -> None:
    assert named("codex:a", [Key("codex", "", "a")]) is None


PARTS = st.sampled_from(["a", "b", "a:b", "codex:a", "/", ""])


@given(st.lists(st.builds(Key, st.sampled_from(["codex", "dsh"]), PARTS, PARTS), unique=True, max_size=6))
def test_every_name_that_is_given_out_once_leads_back(keys: list[Key]) -> None:
    names = outward_ids(keys)
    for key, name in names.items():
        if list(names.values()).count(name) == 1:
            assert named(name, keys) in (key, None) or name in {other.id for other in keys}


@pytest.mark.parametrize("outward", ["", ":", "::", "x"])
def test_unknown_names_name_nothing(outward: str) -> None:
    assert named(outward, [Key("codex", "", "a")]) is None


def test_a_text_of_colons_has_few_readings() -> None:
    assert len(list(possible_ids(":" * 1000))) == 17
    assert list(possible_ids(":" * 1_000_000)) == [":" * 1_000_000]
