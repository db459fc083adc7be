"""The notation of the labelled set: how a person writes sessions and queries down.

One file a topic. ``topic``, ``cwd`` and ``lang`` first, then sessions, then shared exchanges::

    == slug | Title | asks
    > a prompt begins a turn
    < the assistant says something
    ! bash {"command": "ls"}
    : the result of the oldest call without one
    x FileNotFoundError ENOENT | the failed result of a call
    * pending: one; completed: two
    $ aborted
    ? sentence : a question whose answer is in this session
    ~~
    > an exchange that any session of the topic may hold

A line that begins with two blanks goes on with the one above, ``\\n`` is a line break (but in the JSON
arguments of a call), ``//`` begins a remark. A query with the option ``here`` is confined to the topic's
workspace, ``also=slug`` names a second session that answers it. Flags of a
session: ``asks`` (only asks what others answer), ``searches`` (calls our own tools), ``aside`` (another
matter in the same place), ``fork=slug:3`` (its log begins with three written turns of another session),
``sub=slug`` (a sub-agent), ``filler=0`` (how many shared exchanges it holds).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

import attrs

Kind: TypeAlias = Literal[
    "sentence", "half", "paraphrase", "identifier", "error", "chinese", "japanese", "mixed", "negative"
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
Mark: TypeAlias = Literal[">", "<", "!", ":", "x", "*", "$"]
MARKS: Final[tuple[Mark, ...]] = get_args(Mark)


class NotationError(ValueError):
    """A data file breaks the notation; the message names file and line."""


@attrs.frozen
class Part:
    """One written line: what happened, and its text."""

    mark: Mark
    text: str


Turn: TypeAlias = tuple[Part, ...]


@attrs.frozen(kw_only=True)
class Query:
    """One labelled query. ``targets``: slugs of the sessions that answer it, none for a negative.

    ``workspace``: the query is confined to the topic's workspace instead of reaching everything.
    """

    text: str
    kind: Kind
    targets: tuple[str, ...]
    topic: str
    workspace: str | None = None


@attrs.define(kw_only=True)
class Script:
    """A session as written, before shared exchanges are mixed in."""

    slug: str
    title: str
    topic: str
    turns: list[Turn] = attrs.field(factory=list)
    asks: bool = False
    searches: bool = False
    aside: bool = False
    fork: tuple[str, int] | None = None
    sub: str | None = None
    filler: int | None = None


@attrs.define(kw_only=True)
class Topic:
    """One file: near-duplicate sessions of one workspace and the queries about them."""

    name: str
    cwd: str
    lang: str
    scripts: list[Script] = attrs.field(factory=list)
    shared: list[Turn] = attrs.field(factory=list)
    queries: list[Query] = attrs.field(factory=list)


def read_topic(path: Path) -> Topic:
    """Read one data file. Raises: NotationError: with the place of the first defect."""
    parser = _Parser(path.name)
    for number, line in _lines(path.read_text(encoding="utf-8")):
        parser.take(number, line)
    return parser.topic()


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines with the number of their first physical line."""
    begun, held = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("  ") and held:
            held += "\n" + line[2:]
            continue
        if held:
            yield begun, held
        begun, held = number, "" if line.startswith("//") else line.rstrip()
    if held:
        yield begun, held


@attrs.define
class _Parser:
    file: str
    settings: dict[str, str] = attrs.field(factory=dict)
    scripts: list[Script] = attrs.field(factory=list)
    queries: list[Query] = attrs.field(factory=list)
    shared: list[Turn] = attrs.field(factory=list)
    open_turn: list[Part] = attrs.field(factory=list)
    in_shared: bool = False

    def take(self, number: int, line: str) -> None:
        try:
            self._take(line)
        except (ValueError, IndexError) as exc:
            raise NotationError(f"{self.file}:{number}: {exc}: {line[:80]!r}") from exc

    def topic(self) -> Topic:
        self._close_turn()
        missing = {"topic", "cwd", "lang"} - self.settings.keys()
        if missing:
            raise NotationError(f"{self.file}: without {', '.join(sorted(missing))}")
        return Topic(
            name=self.settings["topic"],
            cwd=self.settings["cwd"],
            lang=self.settings["lang"],
            scripts=self.scripts,
            shared=self.shared,
            queries=self.queries,
        )

    def _take(self, line: str) -> None:
        if line.startswith("== "):
            self._close_turn()
            self.in_shared = False
            self.scripts.append(self._script(line[3:]))
        elif line == "~~":
            self._close_turn()
            self.in_shared = True
        elif line.startswith("? "):
            self._close_turn()
            self.queries.append(self._query(line[2:]))
        elif line[:1] in MARKS and line[1:2] == " ":
            mark = _mark(line[0])
            text = line[2:].strip()
            self._part(Part(mark, text if mark == "!" else text.replace("\\n", "\n")))
        elif not self.scripts and not self.in_shared:
            key, value = line.split(" ", 1)
            self.settings[key] = value.strip()
        else:
            raise ValueError("no line of the notation")

    def _part(self, part: Part) -> None:
        if part.mark == ">":
            self._close_turn()
        elif not self.open_turn:
            raise ValueError("a turn begins with a prompt")
        elif part.mark in ":x":
            calls = [before.mark for before in self.open_turn]
            if calls.count("!") <= calls.count(":") + calls.count("x"):
                raise ValueError("a result without a call")
        self.open_turn.append(part)

    def _close_turn(self) -> None:
        if not self.open_turn:
            return
        turn = tuple(self.open_turn)
        self.open_turn = []
        if self.in_shared:
            self.shared.append(turn)
        else:
            self.scripts[-1].turns.append(turn)

    def _script(self, text: str) -> Script:
        slug, title, *flags = (field.strip() for field in text.split("|"))
        script = Script(slug=slug, title=title, topic=self.settings["topic"])
        for flag in " ".join(flags).split():
            name, _, value = flag.partition("=")
            if name in ("asks", "searches", "aside"):
                setattr(script, name, True)
            elif name == "fork":
                parent, turns = value.split(":")
                script.fork = parent, int(turns)
            elif name == "sub":
                script.sub = value
            elif name == "filler":
                script.filler = int(value)
            else:
                raise ValueError(f"unknown flag {name}")
        return script

    def _query(self, text: str) -> Query:
        head, body = text.split(" : ", 1)
        kind, *options = head.split()
        targets = [] if kind == "negative" else [self.scripts[-1].slug]
        workspace = None
        for option in options:
            name, _, value = option.partition("=")
            if name == "also":
                targets += value.split(",")
            elif option == "here":
                workspace = self.settings["cwd"]
            else:
                raise ValueError(f"unknown option {option}")
        return Query(
            text=body.strip(),
            kind=_kind(kind),
            targets=tuple(targets),
            topic=self.settings["topic"],
            workspace=workspace,
        )


def _kind(text: str) -> Kind:
    for kind in KINDS:
        if kind == text:
            return kind
    raise ValueError(f"unknown kind {text}")


def _mark(text: str) -> Mark:
    for mark in MARKS:
        if mark == text:
            return mark
    raise ValueError(f"unknown mark {text}")
