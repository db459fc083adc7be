"""What a whole service knows, as plain dictionaries: who published what, which stores are mounted.

Slow and obvious: every question goes through every session. Sessions of one id share a creation time, so
that equal workspaces make them one session, whichever store tells it (SPEC 16.6.3).
"""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeAlias

import attrs

Key: TypeAlias = tuple[str, str]
"""(id, workspace)."""


@attrs.frozen
class Known:
    """One session as a caller sees it. ``words``: the text of each event."""

    name: str
    source: str
    cwd: str
    live: bool
    words: tuple[str, ...]


@attrs.define
class ServiceModel:
    """``published``: key to words. ``live``: keys. ``stores``: by name, key to words. ``mounted``: in order.

    ``moves``: how often something happened, for everybody and for each workspace: what a cursor is tied to.
    ``unsure``: where something happened that may count or not. ``meanwhile``: the workspaces in which a
    store changed and no search has seen it yet, by store.
    """

    published: dict[Key, list[str]] = attrs.field(factory=dict)
    live: set[Key] = attrs.field(factory=set)
    stores: dict[str, dict[Key, list[str]]] = attrs.field(factory=dict)
    mounted: list[str] = attrs.field(factory=list)
    moves: Counter[str | None] = attrs.field(factory=Counter)
    unsure: set[str | None] = attrs.field(factory=set)
    meanwhile: dict[str, set[str | None]] = attrs.field(factory=dict)

    def moved(self, cwd: str) -> None:
        self.moves[None] += 1
        self.moves[cwd] += 1

    def stored_moved(self, store: str, key: Key) -> None:
        """A mounted store changed a session.

        What a live owner shadows is not looked at (SPEC 6.10.5), but that it came or went is seen.
        """
        if store in self.mounted and key not in self.live:
            self.moved(key[1])
        elif store in self.mounted:
            self.unsure |= {None, key[1]}
        self.meanwhile.setdefault(store, set()).add(key[1])

    def reconciled(self) -> None:
        """A search went through: the index knows what the mounted stores hold."""
        for store in self.mounted:
            self.meanwhile.pop(store, None)

    def moved_everywhere_of(self, store: str) -> None:
        """A mount or unmount: the whole corpus, and each workspace that sees a session of the store.

        A session that a better source answers for is not seen there, so a workspace of such alone need not
        move: it does when the store's rows are new to the index, and not when they were known before.
        """
        self.moves[None] += 1
        self.unsure |= self.meanwhile.get(store, set())
        for key in self.stores[store]:
            if self.answered_elsewhere(store, key):
                self.unsure.add(key[1])
            else:
                self.moves[key[1]] += 1

    def answered_elsewhere(self, store: str, key: Key) -> bool:
        """Whether another source of ours or another mounted store has this session too."""
        others = [self.stores[name] for name in self.mounted if name != store]
        return key in self.published or any(key in other for other in others)

    def everyone(self) -> dict[tuple[str, str, str], tuple[str, list[str], bool]]:
        """(source, place, id) to (workspace, words, live), each session once, from its best source."""
        found: dict[tuple[str, str, str], tuple[str, list[str], bool]] = {}
        taken: set[Key] = set()
        for (id_, cwd), words in self.published.items():
            found["journal", cwd, id_] = cwd, words, (id_, cwd) in self.live
            taken.add((id_, cwd))
        for store in self.mounted:
            for (id_, cwd), words in self.stores[store].items():
                if (id_, cwd) not in taken:
                    found[store, "", id_] = cwd, words, False
                    taken.add((id_, cwd))
        return found

    def seen(self, workspaces: tuple[str, ...] | None) -> list[Known]:
        """Everyone in reach, by name."""
        everyone = self.everyone().items()
        inside = {key: facts for key, facts in everyone if workspaces is None or facts[0] in workspaces}
        ids = Counter(id_ for _, _, id_ in inside)
        of_source = Counter((source, id_) for source, _, id_ in inside)
        known = []
        for (source, place, id_), (cwd, words, live) in inside.items():
            name = id_
            if ids[id_] > 1:
                name = f"{source}:{id_}" if of_source[source, id_] == 1 else f"{source}/{place}:{id_}"
            known.append(Known(name, source, cwd, live, tuple(words)))
        return sorted(known, key=lambda one: one.name)

    def matching(self, workspaces: tuple[str, ...] | None, word: str) -> list[str]:
        return [one.name for one in self.seen(workspaces) if any(word in text.split() for text in one.words)]

    def record(self, row: Any) -> tuple[str, str, str, bool]:
        """A record of the wire as the model tells it."""
        return row["header"]["id"], row["source"], row["header"]["cwd"], row["live"]
