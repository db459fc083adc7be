"""The labelled set as committed: all topics, their logs and their queries."""

from __future__ import annotations

from collections import Counter
from functools import cache, cached_property
from pathlib import Path
from typing import Final

import attrs

from .composing import LabelledSession, compose, session_id
from .notation import KINDS, Kind, Query, Topic, Turn, read_topic

DATA: Final = Path(__file__).parent / "data"
COMMON: Final = "common-"
"""Begins the names of files that hold exchanges any session of a language may hold."""


@attrs.frozen(slots=False)
class LabelledSet:
    """Sessions and the queries about them. ``answers``: what counts as a hit, by slug.

    A question answered in a sub-agent is answered by its parent too, under which it is listed (SPEC 16.9).
    """

    topics: tuple[Topic, ...]
    sessions: tuple[LabelledSession, ...]
    queries: tuple[Query, ...]

    def answers(self, slug: str) -> frozenset[str]:
        """The ids of sessions that count as an answer where ``slug`` is the target."""
        session = self.by_slug[slug]
        ids = {session.header.id}
        if session.is_sub_agent and session.parent is not None:
            ids.add(session_id(session.parent))
        return frozenset(ids)

    @cached_property
    def by_slug(self) -> dict[str, LabelledSession]:
        return {session.slug: session for session in self.sessions}

    def kinds(self) -> dict[Kind, int]:
        """How many queries of each kind."""
        counts = Counter(query.kind for query in self.queries)
        return {kind: counts[kind] for kind in KINDS}


@cache
def load(folder: Path = DATA) -> LabelledSet:
    """Read and compose the whole set. Raises: NotationError, ValueError: the data files are defective."""
    topics = [read_topic(path) for path in sorted(folder.glob("*.txt"))]
    common: dict[str, list[Turn]] = {}
    for topic in topics:
        if topic.name.startswith(COMMON):
            common.setdefault(topic.lang, []).extend(topic.shared)
    sessions = compose(topics, common)
    queries = tuple(query for topic in topics for query in topic.queries)
    return LabelledSet(tuple(topics), tuple(sessions), queries)
