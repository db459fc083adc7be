"""Adding and removing one entry of a JSON file with comments, every other byte kept.

The entry stands two levels down: ``{container: {name: entry}}``. An insertion can be told from its layout,
so that removing it leaves the file as it was: in a container that was there, the entry takes the layout of
its neighbours, or follows the opening brace directly when there are none; in a container that we add there
is space behind the brace, and it goes with the entry when nothing else has been put in. Every edit is
checked: the file must mean exactly what it meant before, but for the entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from .....protocol.json_codec import deep_equal
from .....protocol.json_value import JSON
from .edits import EditRefused, newline_of
from .jsonc_scan import Member, Object, plain_value, scan_object, skip_blank

Entry = Mapping[str, JSON]

_SAME_LINE: Final = re.compile(r"(?:[ \t]*/\*[^\r\n]*?\*/)*(?:[ \t]*//[^\r\n]*)?")


def entry_text(container: str, name: str, entry: Entry) -> str:
    """The entry as a whole file of its own."""
    return _dumped({container: {name: dict(entry)}}, "\n", "", "  ")


def set_entry(text: str, container: str, name: str, entry: Entry) -> str:
    """``text`` with ``container[name]`` holding at least ``entry``; what else it holds is kept.

    Returns ``text`` itself when nothing needs to change. Raises: EditRefused.
    """
    before = _object_value(text)
    old = before.get(container, {})
    if not isinstance(old, dict):
        raise EditRefused(f"`{container}` is no object")
    held = old.get(name)
    wanted: dict[str, JSON] = {**held, **entry} if isinstance(held, dict) else dict(entry)
    if deep_equal(held, wanted):
        return text
    after = _set(text, container, name, entry)
    _verify(after, {**before, container: {**old, name: wanted}})
    return after


def remove_entry(text: str, container: str, name: str) -> str:
    """``text`` without ``container[name]``; itself when it is not there. Raises: EditRefused."""
    before = _object_value(text)
    old = before.get(container)
    if not isinstance(old, dict) or name not in old:
        return text
    after = text
    while True:  # a name that stands there twice goes twice
        found = _find(after, container, name)
        if found is None:
            break
        root, at, inner, index = found
        if len(inner.members) == 1 and _is_ours(after, inner):
            after = _without(after, root, at)
        else:
            after = _without(after, inner, index)
    rest = {key: value for key, value in old.items() if key != name}
    expected = {**before, container: rest}
    if not rest and container not in _object_value(after):
        del expected[container]
    _verify(after, expected)
    return after


def _object_value(text: str) -> dict[str, JSON]:
    value = plain_value(text)
    if not isinstance(value, dict):
        raise EditRefused("the file holds no object")
    return value


def _verify(text: str, expected: dict[str, JSON]) -> None:
    if not deep_equal(_object_value(text), expected):
        raise EditRefused("the file is written in a way this command does not understand")


def _find(text: str, container: str, name: str) -> tuple[Object, int, Object, int] | None:
    """The root, the container's index in it, the container, and the entry's index in that."""
    root = scan_object(text, skip_blank(text, 0))
    at = None if root is None else root.find(container)
    if root is None or at is None:
        return None
    inner = scan_object(text, root.members[at].value_start)
    index = None if inner is None else inner.find(name)
    return None if inner is None or index is None else (root, at, inner, index)


def _set(text: str, container: str, name: str, entry: Entry) -> str:
    root = scan_object(text, skip_blank(text, 0))
    newline = newline_of(text)
    if root is None:  # nothing but whitespace and comments
        body = _dumped({container: {name: dict(entry)}}, newline, "", "  ")
        gap = newline if text.rstrip(" \t\ufeff") and not text.endswith("\n") else ""
        return f"{text}{gap}{body}{newline}"
    at = root.find(container)
    unit = _unit(text, root)
    if at is None:
        return _with_member(text, root, container, {name: dict(entry)}, unit)
    inner = scan_object(text, root.members[at].value_start)
    assert inner is not None, "its value is an object"
    index = inner.find(name)
    if index is None:
        return _with_member(text, inner, name, dict(entry), unit)
    member = inner.members[index]
    if scan_object(text, member.value_start) is None:
        value = _dumped(dict(entry), newline, _indent_of(text, member.start) or "", unit)
        return text[: member.value_start] + value + text[member.value_end :]
    for key, value_wanted in entry.items():
        text = _with_key(text, container, name, key, value_wanted, unit)
    return text


def _with_key(text: str, container: str, name: str, key: str, value: JSON, unit: str) -> str:
    found = _find(text, container, name)
    assert found is not None
    _, _, inner, index = found
    target = scan_object(text, inner.members[index].value_start)
    assert target is not None
    at = target.find(key)
    if at is None:
        return _with_member(text, target, key, value, unit)
    member = target.members[at]
    if deep_equal(plain_value(text[member.value_start : member.value_end]), value):
        return text
    dumped = _dumped(value, newline_of(text), _indent_of(text, member.start) or "", unit)
    return text[: member.value_start] + dumped + text[member.value_end :]


def _with_member(text: str, into: Object, key: str, value: JSON, unit: str) -> str:
    """One more member at the end of an object, in the layout of the last one."""
    newline = newline_of(text)
    quoted = json.dumps(key, ensure_ascii=False)
    if not into.members:
        base, inside = _line_indent(text, into.start), into.start + 1
        return f"{text[:inside]}{quoted}: {_dumped(value, newline, base, unit)}{text[inside:]}"
    last = into.members[-1]
    indent = _indent_of(text, last.start)
    behind = last.value_end if last.comma is None else last.comma + 1
    if indent is None:
        compact = _compact(value)
        if last.comma is None:
            return f"{text[:behind]}, {quoted}: {compact}{text[behind:]}"
        return f"{text[:behind]} {quoted}: {compact},{text[behind:]}"
    line = f"{newline}{indent}{quoted}: {_dumped(value, newline, indent, unit)}"
    found = _SAME_LINE.match(text, behind)
    at = behind if found is None else found.end()
    if last.comma is not None:
        return f"{text[:at]}{line},{text[at:]}"
    return f"{text[:behind]},{text[behind:at]}{line}{text[at:]}"


def _without(text: str, inside: Object, index: int) -> str:
    """An object without one of its members: the exact reverse of ``_with_member`` if it was the last."""
    member = inside.members[index]
    start = member.start
    while text[start - 1] in " \t":
        start -= 1
    own_line = text[start - 1] == "\n"
    if own_line:
        start -= 2 if text[start - 2 : start] == "\r\n" else 1
    elif text[start - 1] not in "{,":
        start = member.start
    if member.comma is not None:
        end = member.comma + 1
        if not own_line and text[start - 1] == "{":
            while text[end] in " \t":
                end += 1
        return text[:start] + text[member.value_end : member.comma] + text[end:]
    tail = text[member.value_end :]
    if index == 0:
        return text[:start] + tail
    comma = inside.members[index - 1].comma
    assert comma is not None, "a member follows it"
    return text[:comma] + text[comma + 1 : start] + tail


def _is_ours(text: str, container: Object) -> bool:
    """Whether a container with one member looks as we make it: space behind the brace, nothing else."""
    (only,) = container.members
    before, after = text[container.start + 1 : only.start], text[only.value_end : container.end - 1]
    return bool(before) and not before.strip() and not after.strip()


def _indent_of(text: str, at: int) -> str | None:
    """The whitespace before ``at`` on its line; None if something else stands there, too."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    return None if before.strip(" \t") else before


def _line_indent(text: str, at: int) -> str:
    """The whitespace that begins the line of ``at``."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    return before[: len(before) - len(before.lstrip(" \t"))]


def _unit(text: str, root: Object) -> str:
    """One level of indentation, as the file's first member shows it."""
    first: Member | None = root.members[0] if root.members else None
    indent = None if first is None else _indent_of(text, first.start)
    return indent or "  "


def _dumped(value: JSON, newline: str, base: str, unit: str) -> str:
    """A value with one line for each member of its objects, the later lines indented by ``base``."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = base + unit
    lines = [
        f"{newline}{inner}{json.dumps(key, ensure_ascii=False)}: {_dumped(member, newline, inner, unit)}"
        for key, member in value.items()
    ]
    return f"{{{','.join(lines)}{newline}{base}}}"


def _compact(value: JSON) -> str:
    """A value on one line; an object has space inside its braces."""
    text = json.dumps(value, ensure_ascii=False)
    return f"{{ {text[1:-1]} }}" if isinstance(value, dict) and value else text
