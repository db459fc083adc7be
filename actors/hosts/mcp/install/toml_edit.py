"""Adding and removing one table of a TOML file, every other byte kept.

The table is ``[container.name]``, put at the end of the file. Where the same entry is written in another
way (an inline table, dotted keys) the edit is refused rather than guessed. Every edit is checked: the
file must mean exactly what it meant before, but for the entry.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias

import attrs

from .edits import EditRefused, newline_of

Toml: TypeAlias = dict[str, "object"]
Entry = Mapping[str, "str | list[str]"]

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_TOKEN: Final = re.compile(
    r'"""(?:[^\\]|\\[\s\S])*?"{3,5}'
    r"|'''[\s\S]*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|[\[\]{}\n]"
)
ELSEWISE: Final = "it is written in a way this command does not edit (an inline table or dotted keys)"


@attrs.frozen
class Line:
    """A logical line: a table's header, a key with its value however many lines that takes, or neither."""

    kind: Literal["header", "value", "other"]
    start: int
    end: int


def set_table(text: str, container: str, name: str, entry: Entry) -> str:
    """``text`` with ``[container.name]`` holding at least ``entry``; what else it holds is kept.

    Returns ``text`` itself when nothing needs to change. Raises: EditRefused.
    """
    before = _parse(text)
    tables = before.get(container, {})
    if not isinstance(tables, dict):
        raise EditRefused(f"`{container}` is no table")
    held = tables.get(name)
    wanted = {**held, **entry} if isinstance(held, dict) else dict(entry)
    if held == wanted:
        return text
    after = (
        _appended(text, container, name, entry) if held is None else _updated(text, container, name, entry)
    )
    _verify(after, {**before, container: {**tables, name: wanted}})
    return after


def remove_table(text: str, container: str, name: str) -> str:
    """``text`` without ``[container.name]`` and what is below it; itself when it is not there.

    Raises: EditRefused.
    """
    before = _parse(text)
    tables = before.get(container)
    if not isinstance(tables, dict) or name not in tables:
        return text
    after = text
    for start, end in reversed(list(_regions(text, container, name))):
        after = _cut(after, start, end)
    rest = {key: value for key, value in tables.items() if key != name}
    expected = {**before, container: rest}
    if not rest and container not in _parse(after):
        del expected[container]
    _verify(after, expected)
    return after


def table_text(container: str, name: str, entry: Entry, newline: str = "\n") -> str:
    """The table as it is put into a file, without a last line ending."""
    header = f"[{_key_text(container)}.{_key_text(name)}]"
    return newline.join(
        [header, *(f"{_key_text(key)} = {_value_text(value)}" for key, value in entry.items())]
    )


def logical_lines(text: str) -> Iterator[Line]:
    """The lines of a well-formed file, line endings included."""
    start, depth = 0, 0
    for token in _TOKEN.finditer(text):
        if token[0] in ("[", "{"):
            depth += 1
        elif token[0] in ("]", "}"):
            depth -= 1
        elif token[0] == "\n" and depth <= 0:
            yield Line(_kind(text[start : token.end()]), start, token.end())
            start, depth = token.end(), 0
    if start < len(text):
        yield Line(_kind(text[start:]), start, len(text))


def _kind(line: str) -> Literal["header", "value", "other"]:
    content = line.lstrip(" \t\ufeff")
    if content.startswith("["):
        return "header"
    return "other" if not content.strip() or content.startswith("#") else "value"


def _regions(text: str, container: str, name: str) -> Iterator[tuple[int, int]]:
    """Each of the entry's tables, from its header to its last value."""
    start = end = -1
    for line in logical_lines(text):
        if line.kind == "header":
            if start >= 0:
                yield start, end
            ours = _path(text[line.start : line.end])[:2] == (container, name)
            start, end = (line.start, line.end) if ours else (-1, -1)
        elif line.kind == "value" and start >= 0:
            end = line.end
    if start >= 0:
        yield start, end


def _cut(text: str, start: int, end: int) -> str:
    """Without a table and the empty line before it: the exact reverse of ``_appended`` at a file's end."""
    newline = newline_of(text)
    at_the_end = end == len(text) and not text.endswith("\n")
    for _ in range(2 if at_the_end else 1):
        head = text[:start]
        if head.endswith(newline) and (at_the_end or head == newline or head.endswith(2 * newline)):
            start -= len(newline)
    return text[:start] + text[end:]


def _appended(text: str, container: str, name: str, entry: Entry) -> str:
    newline = newline_of(text)
    table = table_text(container, name, entry, newline)
    if not text:
        return table + newline
    return f"{text}{newline}{table}{newline}" if text.endswith("\n") else f"{text}{2 * newline}{table}"


def _updated(text: str, container: str, name: str, entry: Entry) -> str:
    """Values of the entry's own table replaced or added; other lines stay."""
    newline = newline_of(text)
    missing, header_end, inside = dict(entry), None, False
    pieces: list[str] = []
    for line in logical_lines(text):
        content = text[line.start : line.end]
        if line.kind == "header":
            inside = _path(content) == (container, name)
            header_end = len(pieces) + 1 if inside else header_end
        elif line.kind == "value" and inside:
            for key in _parse(content).keys() & missing.keys():
                ending = content[len(content.rstrip("\r\n")) :]
                content = f"{_key_text(key)} = {_value_text(missing.pop(key))}{ending}"
        pieces.append(content)
    if header_end is None:
        raise EditRefused(f"`{container}.{name}` is there already, but {ELSEWISE}")
    if missing and not pieces[header_end - 1].endswith("\n"):
        pieces[header_end - 1] += newline
    added = [f"{_key_text(key)} = {_value_text(value)}{newline}" for key, value in missing.items()]
    return "".join([*pieces[:header_end], *added, *pieces[header_end:]])


def _path(header: str) -> tuple[str, ...]:
    """The keys of a table's header."""
    node: object = _parse(header)
    path: list[str] = []
    while isinstance(node, dict) and len(node) == 1:
        (key, node), *_ = node.items()
        path.append(str(key))
    return tuple(path)


def _parse(text: str) -> Toml:
    try:
        return tomllib.loads(text.lstrip("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as exc:
        raise EditRefused(f"no TOML: {exc}") from exc


def _verify(text: str, expected: Toml) -> None:
    try:
        agrees = tomllib.loads(text.lstrip("\ufeff")) == expected
    except (tomllib.TOMLDecodeError, RecursionError):
        agrees = False
    if not agrees:
        raise EditRefused(ELSEWISE)


def _key_text(key: str) -> str:
    return key if _BARE.fullmatch(key) else _quoted(key)


def _value_text(value: str | list[str]) -> str:
    if isinstance(value, str):
        return _quoted(value)
    return f"[{', '.join(map(_quoted, value))}]"


def _quoted(text: str) -> str:
    """A basic string: JSON's escapes are TOML's, but for DEL, which JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
