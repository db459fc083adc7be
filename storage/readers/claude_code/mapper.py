"""The claude-code mapper: records of one log to the events of its sessions, one record at a time.

A log holds one main session and, up to versions 1.x, the side chains of its sub-agents; each of those
becomes a session of its own. What comes out depends on the bytes so far and on nothing else: the same
prefix yields the same sessions and seqs however often the log was read in between (SPEC 16.7.5).
"""

from __future__ import annotations

from typing import Final

import msgspec

from ....protocol.json_value import JSON
from ..driver import Record
from ..record_table import CallRows, CallTable, Entry
from ..seam import Refusal, SessionDelta
from .drafts import Draft, drafts_text, with_native
from .fields import items, string
from .identity import MISPLACED_LANE, Belongs, Identity
from .links import Links, LinksState
from .mapping import kept, map_record, prompt_text
from .records import content_digest, is_claude_record, is_side, time_of
from .session_build import Facts, SessionBuild
from .surface_track import LOG_ONLY, SurfaceStep
from .titles import TITLE_TYPES, Titles

LANES_MAX: Final = 128
"""Side chains of one log that become sessions; those beyond stay in the main one, log-only."""
NOTE_LANES: Final = "too many side chains: the later ones are kept as log-only events with text"
NOTE_SIDE: Final = "side-chain messages of no known chain are kept as log-only events with text"
NOTE_ELSEWHERE: Final = "messages of another session stand in this log; kept as log-only events with text"


class Beside(msgspec.Struct, frozen=True, array_like=True):
    """What the paths and the files beside a log say of it."""

    stem: str
    folder: str | None = None
    title: tuple[str, str, int] | None = None


class _State(msgspec.Struct, array_like=True):
    identity: Identity
    facts: list[Facts]
    lanes: dict[str, int]
    links: LinksState
    calls: CallRows
    titles: Titles
    known: bool


class ClaudeMapper:
    """Has one owner, the read that made it. ``start`` is the time of records before the first time."""

    def __init__(self, beside: Beside, state: bytes | None, start: int) -> None:
        kept_state = _fresh(beside, start) if state is None else _decode(state)
        self._identity = kept_state.identity
        self._builds = [SessionBuild(facts) for facts in kept_state.facts]
        self._lanes = kept_state.lanes
        self._links = Links(kept_state.links)
        self._calls = CallTable(kept_state.calls)
        self._titles = kept_state.titles
        self._known = kept_state.known
        self._main.see_title_beside(beside.title)

    @property
    def _main(self) -> SessionBuild:
        return self._builds[0]

    def time_of(self, obj: dict[str, JSON]) -> int | None:
        return time_of(obj)

    def feed(self, record: Record) -> str | None:
        lines = items(record.obj, "loglines")
        if not lines:
            self._feed(record.obj)
        for obj in lines:
            if isinstance(obj, dict):
                self._feed(obj)
        return None

    def _feed(self, obj: dict[str, JSON]) -> None:
        self._known = self._known or is_claude_record(obj)
        self._identity.see(obj)
        main = self._main
        main.facts.id = self._identity.session_id
        main.facts.is_subagent = self._identity.is_agent
        main.see_time(time_of(obj))
        if main.facts.cwd is None:
            main.see_cwd(string(obj, "cwd"))
        parent = self._links.find(string(obj, "parentUuid"))
        belongs = self._identity.place(obj, parent)
        main.facts.parent = self._identity.parent
        if belongs is Belongs.ELSEWHERE:
            self._keep(obj, MISPLACED_LANE, NOTE_ELSEWHERE)
        elif is_side(obj) and not self._identity.side_is_main:
            self._feed_side(obj, parent)
        else:
            self._feed_main(obj, parent)
        if belongs is Belongs.COPIED:
            main.inherit()

    def _feed_main(self, obj: dict[str, JSON], parent: Entry | None) -> None:
        main, digest = self._main, content_digest(obj)
        uuid = string(obj, "uuid")
        earlier = self._links.find(uuid)
        if earlier is not None and self._links.is_repeat(earlier, digest):
            self._emit(main, kept(obj))
            return
        drafts = self._title_drafts(obj) or map_record(obj, self._record_id(obj, main))
        first, anchor, nodes = main.facts.next_seq, self._links.anchor_behind(parent), 0
        for draft in drafts:
            step = LOG_ONLY
            if draft.is_surface:
                step = self._place(draft, main.facts.next_seq, obj, parent, follows=nodes > 0)
                # Messages that a compaction kept stand behind its summary: the chain goes on from them.
                anchor = self._links.surface.last
                nodes += anchor == main.facts.next_seq
            seq = self._emit(main, draft, 0, step, parent)
            if nodes == 1 and main.lacks_prompt and draft.is_human:
                main.see_prompt(prompt_text(obj), seq)
        self._links.see_log_only(obj, first)
        self._links.remember(obj, Entry(0, first, anchor, nodes, digest))
        if (titled := self._titles.draft_for_leaf(uuid)) is not None:
            self._emit(main, titled)
        if self._links.notes:
            for note in self._links.notes:
                main.note(note)
            self._links.notes.clear()

    def _place(
        self, draft: Draft, seq: int, obj: dict[str, JSON], parent: Entry | None, *, follows: bool
    ) -> SurfaceStep:
        if follows:  # the rest of one record stands behind its first part
            return self._links.append(seq, draft.node_kind)
        return self._links.place(draft, seq, obj, parent)

    def _title_drafts(self, obj: dict[str, JSON]) -> list[Draft]:
        if obj.get("type") not in TITLE_TYPES:
            return []
        writer = string(obj, "sessionId")
        if writer is not None and not self._identity.is_agent and writer != self._identity.own:
            return []
        leaf = self._links.find(string(obj, "leafUuid"))
        draft = self._titles.draft(obj, leaf is not None and leaf.lane == 0)
        return [] if draft is None else with_native([draft], obj)

    def _emit(
        self,
        build: SessionBuild,
        draft: Draft,
        lane: int = 0,
        step: SurfaceStep = LOG_ONLY,
        parent: Entry | None = None,
    ) -> int:
        sources: list[int] = []
        if draft.is_surface:
            called = self._calls.get(lane, draft.answers) if draft.answers is not None else None
            sources = [called] if called is not None else []
            sources += step.removed
            sources += self._links.cited if lane == 0 else []
            sources += [parent.first] if parent is not None and parent.lane == lane else []
        seq = build.emit(draft.type, draft.data, step.op, sources)
        if draft.call is not None:
            self._calls.put(lane, draft.call, seq)
        return seq

    def _feed_side(self, obj: dict[str, JSON], parent: Entry | None) -> None:
        lane = self._lane_of(obj, parent)
        if lane is None:
            self._keep(obj, MISPLACED_LANE, NOTE_LANES if len(self._builds) > LANES_MAX else NOTE_SIDE)
            return
        build, digest = self._builds[lane], content_digest(obj)
        build.see_time(time_of(obj))
        build.see_cwd(string(obj, "cwd"))
        first = build.facts.next_seq
        earlier = self._links.find(string(obj, "uuid"))
        if earlier is not None and self._links.is_repeat(earlier, digest):
            self._emit(build, kept(obj), lane)
            return
        for draft in map_record(obj, self._record_id(obj, build)):
            step = SurfaceStep("append", ()) if draft.is_surface else LOG_ONLY
            seq = self._emit(build, draft, lane, step, parent)
            if draft.is_human:
                build.see_prompt(prompt_text(obj), seq)
        self._links.remember(obj, Entry(lane, first, -1, 0, digest))

    def _lane_of(self, obj: dict[str, JSON], parent: Entry | None) -> int | None:
        """A record's side chain: its agent's, else its parent's, else a new one if it can begin one."""
        agent, uuid = string(obj, "agentId"), string(obj, "uuid")
        if agent is None and parent is not None and parent.lane != 0:
            return parent.lane if parent.lane > 0 else None
        if agent is not None:
            key = f"agent-{agent}"
        elif uuid is not None and (parent is not None or obj.get("parentUuid") is None):
            key = f"side-{uuid}"
        else:
            return None
        lane = self._lanes.get(key)
        if lane is None and len(self._builds) <= LANES_MAX:
            lane = self._lanes[key] = len(self._builds)
            main = self._main.facts
            self._builds.append(
                SessionBuild(Facts(id=f"{main.id}/{key}", time=main.time, parent=main.id, is_subagent=True))
            )
        return lane

    def _keep(self, obj: dict[str, JSON], lane: int, note: str) -> None:
        """Keep a record that belongs to no session of this log: one log-only event with its text."""
        seq = self._emit(self._main, kept(obj, drafts_text(map_record({**obj}, "none"))))
        self._links.remember(obj, Entry(lane, seq, -1, 0, content_digest(obj)))
        self._main.note(note)

    @staticmethod
    def _record_id(obj: dict[str, JSON], build: SessionBuild) -> str:
        return string(obj, "uuid") or f"record:{build.facts.next_seq}"

    def take(self) -> list[SessionDelta]:
        return [delta for build in self._builds if (delta := build.take()) is not None]

    def state(self) -> bytes:
        return msgspec.msgpack.encode(
            _State(
                self._identity,
                [build.facts for build in self._builds],
                self._lanes,
                self._links.state(),
                self._calls.rows(),
                self._titles,
                self._known,
            )
        )

    def verdict(self) -> bool | Refusal:
        return self._known


def _fresh(beside: Beside, start: int) -> _State:
    identity = Identity(beside.stem, beside.folder, beside.stem)
    facts = Facts(id=beside.stem, time=start)
    return _State(identity, [facts], {}, LinksState(), CallRows(), Titles(), False)


def _decode(state: bytes) -> _State:
    try:
        return msgspec.msgpack.decode(state, type=_State)
    except msgspec.MsgspecError as exc:
        raise ValueError("not the state of a claude-code mapper") from exc
