"""Which session a log is, whose child it is, and which of its records belong to it (SPEC 16.6, 16.7)."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final

import msgspec

from ....protocol.json_value import JSON
from ..record_table import Entry
from .fields import mapping, string
from .records import is_side

MISPLACED_LANE: Final = -1
"""The lane of records that another session wrote into this log by mistake."""

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")


class Belongs(Enum):
    HERE = auto()
    COPIED = auto()
    """Written by the session this one was resumed or forked from, and copied to the start of this log."""
    ELSEWHERE = auto()


class Identity(msgspec.Struct, array_like=True):
    """What the names and the records so far say. ``stem`` and ``folder`` come from the path.

    ``own`` is the session id that records of this log carry, None until known. ``begun`` tells that a
    record of this very session was seen, which ends the copies at the start.
    """

    stem: str
    folder: str | None
    """The session whose ``subagents`` folder the log lies in."""
    session_id: str
    parent: str | None = None
    own: str | None = None
    is_agent: bool = False
    side_is_main: bool = False
    begun: bool = False
    seen_any: bool = False
    seen_talk: bool = False

    def see(self, obj: dict[str, JSON]) -> None:
        """Learn from the next record. Ids are settled by the first record, so that they never change."""
        if not self.seen_any:
            self.seen_any = True
            self._settle(obj)
        if not self.seen_talk and isinstance(obj.get("isSidechain"), bool):
            self.seen_talk = True
            self._settle_kind(obj)
        if self.parent is None and "forkedFrom" in obj:
            self.parent = string(mapping(obj, "forkedFrom"), "sessionId")

    def _settle(self, obj: dict[str, JSON]) -> None:
        if not self.stem.startswith("agent-"):
            return
        flat = is_side(obj) or string(obj, "agentId") is not None
        parent = self.folder or (string(obj, "sessionId") if flat else None)
        if parent is not None and parent != self.stem:
            self.is_agent = self.side_is_main = True
            self.parent = parent
            self.session_id = f"{parent}/{self.stem}"

    def _settle_kind(self, obj: dict[str, JSON]) -> None:
        """A log that begins with a side record is a sub-agent's, whatever its name."""
        if is_side(obj) and not self.is_agent:
            self.side_is_main = True
            writer = string(obj, "sessionId")
            if string(obj, "agentId") is not None and writer not in (None, self.stem):
                self.is_agent = True
                self.parent = self.parent or writer

    def place(self, obj: dict[str, JSON], parent: Entry | None) -> Belongs:
        """Tell where a record belongs. Call after ``see``."""
        if self.is_agent:
            return Belongs.HERE
        if "forkedFrom" in obj and not self.begun:
            return Belongs.COPIED
        writer = string(obj, "sessionId")
        if writer is None:
            return Belongs.HERE
        if self.own is None:
            self.own = self.stem if _UUID.fullmatch(self.stem) else writer
        talks = "uuid" in obj or obj.get("type") in ("user", "assistant")
        if writer == self.own:
            self.begun = self.begun or talks
            return Belongs.HERE
        if not self.begun:
            self.parent = self.parent or (writer if talks else None)
            return Belongs.COPIED if talks else Belongs.HERE
        if talks and (parent is None or parent.lane == MISPLACED_LANE):
            return Belongs.ELSEWHERE
        return Belongs.HERE
