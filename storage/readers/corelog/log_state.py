"""What a session needs to be remembered by between two reads of its log."""

from __future__ import annotations

import msgspec


class LogState(msgspec.Struct, kw_only=True):
    """All that is needed to go on with a session. Serialised between reads."""

    id: str
    created_at: int | None = None
    cwd: str | None = None
    parent: str | None = None
    origin: str | None = None
    depth: int | None = None
    preset: str | None = None
    next_seq: int = 0
    time: int | None = None
    guessed: bool = False
    """A first record without a time took the log's time of change."""
    surface: list[int] = []
    prompts: list[int] = []
    calls: dict[str, list[int]] = {}
    answered: dict[str, int] = {}
    abandoned: tuple[int, int] | None = None
    turn: int = 0
    step: int = 0
    turns_marked: bool = False
    turn_ended: bool = False
    title: str = ""
    title_time: int = 0
    title_source: dict[str, str] = {}
    titled: bool = False
    prompt_title: str = ""
    prompt_seq: int = 0
    prompt_time: int = 0
    inherited: int = 0
    notes: list[str] = []
