"""A slow, obvious search engine: every document is looked at for every question (SPEC 6, 16).

It shares with the real one the tokenizer, the literal test and the arithmetic of relevance, each of which
has tests of its own; everything it is given by them it counts itself, over plain lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import attrs

from session_query.protocol.documents import Document
from session_query.protocol.filters import TypeClause
from session_query.protocol.predicates import event_predicate, session_predicate
from session_query.protocol.records import TIERS, EventDocument, SessionRecord
from session_query.protocol.snippet import snippet
from session_query.protocol.tokens import Places, parts, phrase_spans, prepare, tokens
from session_query.storage.index.door import Reach, SearchSpec, SessionKey, SessionState
from session_query.storage.index.literal import find_literal, literal_pattern, literal_pieces
from session_query.storage.index.query_words import Word, query_words
from session_query.storage.index.relevance import (
    event_score,
    rounded,
    session_score,
    speaker_share,
    word_weight,
)


@attrs.define(eq=False)
class ModelSession:
    sid: int
    key: SessionKey
    state: SessionState
    documents: list[Document]

    @property
    def age(self) -> tuple[int, str, str, str]:
        return self.state.header.created_at, self.key.id, self.key.source, self.key.place

    @property
    def tie(self) -> tuple[str, str, str]:
        return self.key.id, self.key.source, self.key.place


@attrs.frozen
class ModelHit:
    """(tier, session listed, session of the best event, its seq, snippet in ``exact``, sub-agents)."""

    tier: str
    sid: int
    best_sid: int
    seq: int
    snippet: str | None
    members: tuple[int, ...]


@attrs.define(eq=False)
class IndexModel:
    sessions: dict[int, ModelSession] = attrs.field(factory=dict)
    hidden_sources: set[str] = attrs.field(factory=set)

    # -- who is seen --

    def visible(self, session: ModelSession) -> bool:
        if session.key.source in self.hidden_sources:
            return False
        return not any(
            self._better(other, session)
            for other in self.sessions.values()
            if other.key.source not in self.hidden_sources and self._covers(other, session)
        )

    @staticmethod
    def _better(a: ModelSession, b: ModelSession) -> bool:
        def order(s: ModelSession) -> tuple[bool, int, str, str]:
            return s.state.error is not None, s.state.rank, s.key.source, s.key.place

        return order(a) < order(b)

    @staticmethod
    def _covers(upper: ModelSession, lower: ModelSession) -> bool:
        a, b = upper.state.header, lower.state.header
        if (a.id, a.cwd, a.created_at) != (b.id, b.cwd, b.created_at):
            return False
        if upper.key.source == lower.key.source:
            return False
        return upper.key.source != "live" or a.parent_session == b.parent_session

    def seen(self, reach: Reach, spec: SearchSpec | None) -> list[ModelSession]:
        clauses = spec.session_clauses if spec else ()
        test = session_predicate(clauses)
        return [
            s
            for s in self.sessions.values()
            if self.visible(s)
            and s.state.error is None
            and s.sid not in reach.hidden
            and s.sid not in reach.excluded
            and (reach.workspaces is None or s.state.header.cwd in reach.workspaces)
            and test(
                SessionRecord(header=s.state.header, live=s.sid in reach.live, persisted=s.state.persisted)
            )
        ]

    def passing(self, session: ModelSession, reach: Reach, spec: SearchSpec) -> list[Document]:
        test = event_predicate(spec.event_clauses)
        named = any(isinstance(c, TypeClause) for c in spec.event_clauses)
        return [
            d
            for d in session.documents
            if (named or not d.is_search)
            and d.seq < reach.cuts.get(session.sid, 1 << 60)
            and test(
                EventDocument(
                    session_id=session.key.id,
                    seq=d.seq,
                    type=d.type,
                    time=d.time,
                    surface=d.surface,
                    text=d.text,
                )
            )
        ]

    # -- families --

    def parent(self, session: ModelSession, reach: Reach) -> ModelSession | None:
        wanted = session.state.header.parent_session
        found = [
            s
            for s in self.sessions.values()
            if s.key.id == wanted
            and s is not session
            and self.visible(s)
            and s.sid not in reach.hidden
            and (reach.workspaces is None or s.state.header.cwd in reach.workspaces)
        ]
        return min(
            found,
            key=lambda p: (
                p.key.source != session.key.source,
                p.key.place != session.key.place,
                p.state.header.cwd != session.state.header.cwd,
                p.state.rank,
                p.key.source,
                p.key.place,
            ),
            default=None,
        )

    def copies(self, session: ModelSession, reach: Reach) -> list[tuple[object, int]]:
        """Ancestors (a sid, or a name for a missing one) with how many leading events are theirs."""
        found: list[tuple[object, int]] = []
        at, count, met = session, 1 << 60, {session.sid}
        while at.state.inherited > 0:
            count = min(count, at.state.inherited)
            parent = self.parent(at, reach)
            if parent is None or parent.sid in met:
                found.append(((at.key.source, at.key.place, at.state.header.parent_session), count))
                break
            found.append((parent.sid, count))
            met.add(parent.sid)
            at = parent
        return found

    def circle(self, session: ModelSession, reach: Reach) -> list[ModelSession]:
        """The forks that name each other as origin, this one among them; empty if they do not."""
        found = [session]
        while found[-1].state.inherited > 0:
            parent = self.parent(found[-1], reach)
            if parent is session:
                return found
            if parent is None or parent in found:
                return []
            found.append(parent)
        return []

    def shown_elsewhere(
        self, session: ModelSession, seq: int, scope: list[ModelSession], reach: Reach
    ) -> ModelSession | None:
        by_sid = {s.sid: s for s in scope}
        circle = self.circle(session, reach)
        if circle and session is min((s for s in circle if s in scope), key=lambda s: s.age, default=None):
            return None
        for ancestor, count in self.copies(session, reach):
            if isinstance(ancestor, int) and ancestor in by_sid:
                return by_sid[ancestor] if seq < count else None
            for other in sorted(scope, key=lambda s: s.age):
                if other.age < session.age and seq < min(
                    count, dict(self.copies(other, reach)).get(ancestor, 0)
                ):
                    return other
        return None

    def root(self, session: ModelSession, scope: list[ModelSession], reach: Reach) -> ModelSession:
        at, met = session, {session.sid}
        while at.state.header.origin == "subagent":
            parent = self.parent(at, reach)
            if parent is None or parent.sid in met or parent not in scope:
                break
            at = parent
            met.add(at.sid)
        return at

    # -- searching --

    def search(self, spec: SearchSpec, reach: Reach) -> list[ModelHit]:
        scope = self.seen(reach, spec)
        rows: list[tuple[ModelSession, Document]] = []
        passing = {s.sid: self.passing(s, reach, spec) for s in scope}
        for session in scope:
            for document in passing[session.sid]:
                if spec.tools:
                    other = self.shown_elsewhere(session, document.seq, scope, reach)
                    if other is not None and any(
                        (d.type, d.text) == (document.type, document.text) for d in passing[other.sid]
                    ):
                        continue
                rows.append((session, document))
        listed: dict[int, ModelHit] = {}
        self._exact(spec, reach, scope, rows, listed)
        if spec.match != "exact" and tokens(spec.query):
            self._relaxed(spec, reach, scope, rows, listed)
        return list(listed.values())

    def exact_keys(self, spec: SearchSpec, document: Document) -> tuple[int, ...] | None:
        phrase = tokens(spec.query)
        if phrase:
            count = len(phrase_spans(Places.of(document.text), phrase))
            plain = bool(literal_pieces(spec.query)) and not literal_pattern(spec.query)(document.text)
        else:
            count, plain = len(find_literal(document.text, spec.query)), False
        prompt = spec.tools and document.type == "user/message"
        if not count:
            return None
        return int(plain), -count, int(prompt), len(document.text), -document.time

    def _exact(
        self,
        spec: SearchSpec,
        reach: Reach,
        scope: list[ModelSession],
        rows: list[tuple[ModelSession, Document]],
        listed: dict[int, ModelHit],
    ) -> None:
        found = []
        for session, document in rows:
            keys = self.exact_keys(spec, document)
            if keys is not None:
                root = self.root(session, scope, reach) if spec.tools else session
                found.append((keys, root.tie, session.tie, -document.seq, root, session, document))
        found.sort(key=lambda item: item[:4])
        for *_, root, session, document in found:
            if root.sid not in listed:
                phrase = tokens(spec.query)
                spans = (
                    phrase_spans(Places.of(document.text), phrase)
                    if phrase
                    else find_literal(document.text, spec.query)
                )
                text = document.text.replace("\0", "\ufffd")
                members = tuple(
                    dict.fromkeys(
                        item[5].sid
                        for item in sorted(found, key=lambda i: (i[0], i[2], i[3]))
                        if item[4] is root
                    )
                )
                listed[root.sid] = ModelHit(
                    "exact",
                    root.sid,
                    session.sid,
                    document.seq,
                    snippet(text, spans[0][0], spec.snippet_chars),
                    members,
                )

    def _relaxed(
        self,
        spec: SearchSpec,
        reach: Reach,
        scope: list[ModelSession],
        rows: list[tuple[ModelSession, Document]],
        listed: dict[int, ModelHit],
    ) -> None:
        words = query_words(spec.query)
        everyone = [s for s in self.seen(reach, None) if s.documents]
        everything = [d for s in everyone for d in s.documents]
        ordinary = [d for d in everything if not d.is_search]
        mean = sum(len(d.text) for d in ordinary) / len(ordinary) if ordinary else 0.0
        holders = [sum(self._session_holds(s.documents, word) for s in everyone) for word in words.words]
        weights = [word_weight(n, max(len(everyone), n)) for n in holders]
        informative = self.informative(words.words, holders, len(everyone), everything)
        if not informative:
            return
        held: dict[int, list[tuple[Document, set[int]]]] = {}
        for session, document in rows:
            mask = {n for n in informative if holds(document, words.words[n])}
            if mask:
                held.setdefault(session.sid, []).append((document, mask))
        full = set(informative)
        order = [n for n in words.order if n in full]
        pairs = [(a, b) for a, b in pairwise(order) if a != b]
        tiers: dict[str, list[int]] = {"words": [], "session": [], "some": []}
        for sid, found in held.items():
            union = set().union(*(mask for _, mask in found))
            tier = (
                "words" if any(mask == full for _, mask in found) else "session" if union == full else "some"
            )
            tiers[tier].append(sid)
        by_sid = {s.sid: s for s in scope}
        for tier in {"words": ["words"], "auto": list(tiers), "some": list(tiers)}[spec.match]:
            results = []
            for sid in tiers[tier]:
                found = held[sid]
                union = set().union(*(mask for _, mask in found))
                candidates = [(d, m) for d, m in found if tier != "words" or m == full]
                candidates.sort(key=lambda item: (-sum(weights[n] for n in item[1]), -item[0].seq))
                scored = sorted(
                    (-self.score(d, m, words.words, weights, pairs, mean, informative), -d.time, -d.seq)
                    for d, m in candidates[:3]
                )
                score = session_score(
                    [-negative for negative, _, _ in scored], sum(weights[n] for n in sorted(union))
                )
                root = self.root(by_sid[sid], scope, reach) if spec.tools else by_sid[sid]
                results.append(
                    (-rounded(score), scored[0][1], root.tie, by_sid[sid].tie, root.sid, sid, -scored[0][2])
                )
            results.sort()
            new: dict[int, ModelHit] = {}
            for _, _, _, _, root_sid, sid, seq in results:
                if root_sid not in listed and root_sid not in new:
                    members = tuple(r[5] for r in results if r[4] == root_sid)
                    new[root_sid] = ModelHit(tier, root_sid, sid, seq, None, members)
            if tier == "some" and spec.match == "auto":
                best = max(
                    (sum(weights[n] for n in set().union(*(m for _, m in held[s]))) for s in tiers[tier]),
                    default=0,
                )
                new = (
                    {}
                    if best < 0.2 * sum(weights[n] for n in informative if holders[n])
                    else dict(list(new.items())[:20])
                )
            listed.update(new)

    @staticmethod
    def _session_holds(documents: Sequence[Document], word: Word) -> bool:
        """Spans know no order: a pair is held when both characters occur anywhere in the session."""
        found = {
            token
            for d in documents
            if not d.is_search
            for token in [*tokens(d.text), *parts(prepare(d.text))]
        }
        return any(all(token in found for token in alternative) for alternative in word.alternatives)

    @staticmethod
    def informative(
        words: Sequence[Word], holders: list[int], total: int, everything: list[Document]
    ) -> list[int]:
        def common(n: int, share: float) -> bool:
            if total < 8 or holders[n] <= total / 2:
                return False
            holding = sum(holds(d, words[n]) for d in everything if not d.is_search)
            return holding >= int(share * len(everything)) + 1

        every = range(len(words))
        return [n for n in every if not common(n, 0.05)] or [n for n in every if not common(n, 0.25)]

    @staticmethod
    def score(
        document: Document,
        mask: set[int],
        words: Sequence[Word],
        weights: Sequence[float],
        pairs: Sequence[tuple[int, int]],
        mean: float,
        informative: Sequence[int],
    ) -> float:
        found = tokens(document.text)
        places = {
            n: sorted(
                at
                for alternative in word.alternatives
                for at in range(len(found))
                if tuple(found[at : at + len(alternative)]) == alternative
            )
            for n, word in enumerate(words)
        }
        counts = {n: max(len(places[n]), 1) for n in mask}
        together = sorted(
            {
                (a, b)
                for a, b in pairs
                for place in places[b]
                if any(0 < place - other <= 3 for other in places[a])
            }
        )
        ratio = len(document.text) / mean if mean else 1.0
        return rounded(
            event_score(
                weights,
                counts,
                together,
                ratio,
                speaker_share(document.type == "user/message", document.text),
            )
        )

    # -- inside one session --

    def search_events(self, spec: SearchSpec, reach: Reach, sid: int) -> list[tuple[str, int]]:
        session = self.sessions[sid]
        rows = self.passing(session, reach, spec)
        exact = sorted((*keys, -d.seq) for d in rows if (keys := self.exact_keys(spec, d)) is not None)
        listed = [("exact", -keys[-1]) for keys in exact]
        if spec.match == "exact" or not tokens(spec.query):
            return listed
        words = query_words(spec.query)
        whole = [d for d in self.passing(session, reach, SearchSpec(query="x")) if not d.is_search]
        holders = [sum(holds(d, word) for d in whole) for word in words.words]
        total = len(whole)
        weights = [word_weight(n, max(total, n)) for n in holders]
        informative = [n for n in range(len(holders)) if total < 8 or holders[n] <= total / 2]
        if not informative:
            return listed
        mean = sum(len(d.text) for d in whole) / total if total else 0.0
        full = set(informative)
        order = [n for n in words.order if n in full]
        pairs = [(a, b) for a, b in pairwise(order) if a != b]
        taken = {seq for _, seq in listed}
        tiers: dict[str, list[tuple[float, int, int, float]]] = {"words": [], "some": []}
        for d in rows:
            mask = {n for n in informative if holds(d, words.words[n])}
            if mask and d.seq not in taken:
                score = self.score(d, mask, words.words, weights, pairs, mean, informative)
                weight = sum(weights[n] for n in mask)
                tiers["words" if mask == full else "some"].append((-score, -d.time, -d.seq, weight))
        for tier in ["words"] if spec.match == "words" else ["words", "some"]:
            found = sorted(tiers[tier])
            if tier == "some" and spec.match == "auto":
                best = max((item[3] for item in found), default=0.0)
                found = found[:20] if best >= 0.2 * sum(weights[n] for n in informative if holders[n]) else []
            listed += [(tier, -item[2]) for item in found]
        return sorted(listed, key=lambda item: TIERS.index(item[0]))  # type: ignore[arg-type]


def holds(document: Document, word: Word) -> bool:
    """Whether a document holds a word, whole, in another form, or as a part of an identifier."""
    found, pieces = tokens(document.text), parts(prepare(document.text))
    return any(
        tuple(found[at : at + len(alternative)]) == alternative
        for alternative in word.alternatives
        for at in range(len(found))
    ) or any(len(alternative) == 1 and alternative[0] in pieces for alternative in word.alternatives)
