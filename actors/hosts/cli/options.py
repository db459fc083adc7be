"""Options that many commands share, and what they mean."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

import attrs
import click
import platformdirs

from .errors import CommandError

if TYPE_CHECKING:
    from ...config import Source

P = ParamSpec("P")
R = TypeVar("R")

DATA_DIR_VARIABLE: Final = "SESSION_QUERY_DATA_DIR"


def default_data_dir() -> Path:
    """The platform's data directory for this user, unless the environment names another."""
    named = os.environ.get(DATA_DIR_VARIABLE)
    return Path(named) if named else Path(platformdirs.user_data_dir("session-query"))


@attrs.define
class Settings:
    """What was said before or after the command's name; the later one wins."""

    data_dir: Path
    as_json: bool = False


def _set_data_dir(ctx: click.Context, _: click.Parameter, value: Path | None) -> None:
    if value is not None:
        ctx.ensure_object(dict)["data_dir"] = value


def _set_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(dict)["json"] = True


def settings(ctx: click.Context) -> Settings:
    values = ctx.ensure_object(dict)
    return Settings(values.get("data_dir") or default_data_dir(), bool(values.get("json")))


def common(command: Callable[P, R]) -> Callable[P, R]:
    """``--data-dir`` and ``--json``, accepted before and after the command's name."""
    command = click.option(
        "--data-dir",
        type=click.Path(path_type=Path, file_okay=False),
        expose_value=False,
        callback=_set_data_dir,
        help="Where journal and index live [default: the platform's data directory, or "
        f"${DATA_DIR_VARIABLE}].",
    )(command)
    return click.option(
        "--json", is_flag=True, expose_value=False, callback=_set_json, help="Print JSON for programs."
    )(command)


def source_option(command: Callable[P, R]) -> Callable[P, R]:
    return click.option(
        "--source",
        "sources",
        multiple=True,
        metavar="FORMAT=PATH",
        help="A folder or file of logs, e.g. claude-code=~/.claude/projects. Repeatable; remembered. "
        "The usual places of every known tool are read as well, unless the first logs of the data "
        "directory were named.",
    )(command)


def parse_sources(values: tuple[str, ...]) -> tuple[Source, ...]:
    """Turn ``FORMAT=PATH`` words into sources. Raises CommandError for each kind of defect."""
    if not values:
        return ()
    from ....storage.readers.registry import READERS

    return tuple(_parse_source(value, tuple(READERS)) for value in values)


def parse_dropped(values: tuple[str, ...]) -> tuple[Source, ...]:
    """The same for sources that are to be read no more: their folders may be gone."""
    return tuple(_named_source(value, None) for value in values)


def _parse_source(value: str, formats: tuple[str, ...]) -> Source:
    source = _named_source(value, formats)
    if not source.root.exists():
        raise CommandError(f"no such file or folder: {source.root}", code="MISSING_PATH")
    if not os.access(source.root, os.R_OK):
        raise CommandError(f"cannot read {source.root}: permission denied", code="UNREADABLE_PATH")
    return source


def _named_source(value: str, formats: tuple[str, ...] | None) -> Source:
    """``formats`` None: any, also that of a reader that is no longer there."""
    from ...config import Source

    name, mark, path = value.partition("=")
    if not mark or not path:
        raise CommandError(f"a source is FORMAT=PATH, not {value!r}", code="BAD_SOURCE")
    if formats is not None and name not in formats:
        raise CommandError(
            f"unknown format {name!r}; known: {', '.join(sorted(formats))}", code="UNKNOWN_FORMAT"
        )
    return Source(format=name, root=Path(path).expanduser().absolute())


def workspace_options(command: Callable[P, R]) -> Callable[P, R]:
    command = click.option(
        "--workspace",
        "workspace",
        metavar="DIR",
        help="Look in the sessions of this folder [default: the nearest ancestor of the current folder "
        "that has sessions].",
    )(command)
    return click.option("--all", "everywhere", is_flag=True, help="Look in every workspace.")(command)


def match_option(command: Callable[P, R]) -> Callable[P, R]:
    return click.option(
        "--match",
        type=click.Choice(["auto", "exact", "words", "some"]),
        default="auto",
        show_default=True,
        help="exact: the phrase as typed. words: all words in one event. some: any of them. "
        "auto: all of these, best first.",
    )(command)
