"""What the labelled set promises, checked: a set that breaks a rule is not measured with.

Every rule is about the data alone, no searcher takes part. Words are compared generously: two words are
kin if one looks like a form of the other, so that a paraphrase cannot lean on an ending.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final

import attrs

from ...protocol.documents import build_documents
from .composing import LabelledSession
from .labelled_set import LabelledSet
from .notation import Query

SESSIONS_MIN: Final = 300
QUERIES_MIN: Final = 200
NEAR_DUPLICATES_MIN: Final = 10
PARAPHRASE_SHARED_MAX: Final = 1
WORDS_SHARED_MIN: Final = 2
"""A sentence or half-remembered query shares so many informative words with its answer: words can find it."""
COMMON_SHARE: Final = 0.12
"""A word that more than this share of the sessions holds says nothing about one of them."""

ENDING_MAX: Final = 4

_FUNCTION_WORDS: Final = """
    a about across after again against all almost alone also although always am an and another any anybody
    anyone anything are around as at away back be because been before being below between both but by can
    cannot come could did do does doing done down during each either else enough even ever every everybody
    everyone few first for from get give go had has have having he her here hers him his how however i if in
    instead into is it its itself just kind know last least less let like made make many may me mere might
    more most much must my myself near never no nobody none nor not nothing now of off on once one only onto
    or other others our out over own per put rather same say says set she should since so some somebody
    someone something soon still such take than that the their them then there these they thing this those
    though through till to together too two under until up upon us use used very via want was way we went
    were what when where whether which while who whom whose why will with within without would yes yet you
    your"""
FUNCTION_WORDS: Final = frozenset(_FUNCTION_WORDS.split())

_WORD: Final = re.compile(r"[a-z0-9äöüßéèçñåøæà-ÿāăąćčęěłńňřśšșțůýźžα-ωа-я]+")
_CASE_BORDER: Final = re.compile("(?<=[a-z0-9])(?=[A-Z])")
_PIECE: Final = re.compile(
    r"[\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff]+|[^\s/:(),\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)
_HAN_OR_KANA: Final = re.compile("[\u3005\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]{1,4}")


def words_of(text: str) -> set[str]:
    """The words of a text, folded, identifiers whole and by their parts."""
    return set(_WORD.findall(text.lower())) | set(_WORD.findall(_CASE_BORDER.sub(" ", text).lower()))


def kin(a: str, b: str) -> bool:
    """Whether two words look like forms of one: they begin alike, up to an ending of two letters or so."""
    shared = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        shared += 1
    return a == b or (shared >= max(4, min(len(a), len(b)) - 2) and abs(len(a) - len(b)) <= ENDING_MAX)


@attrs.define(eq=False)
class _Checked:
    """The set with the texts a rule needs, made once."""

    labelled: LabelledSet
    texts: dict[str, list[str]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.texts = {
            session.slug: [doc.text for doc in build_documents(session.events) if not doc.is_search]
            for session in self.labelled.sessions
        }

    @cached_property
    def words(self) -> dict[str, set[str]]:
        return {slug: words_of("\n".join(texts)) for slug, texts in self.texts.items()}

    @cached_property
    def common(self) -> set[str]:
        held = Counter(word for words in self.words.values() for word in words)
        limit = COMMON_SHARE * len(self.words)
        return {word for word, count in held.items() if count > limit}

    def informative(self, query: str) -> list[str]:
        """The words of a query that may tell sessions apart, an identifier's parts instead of itself."""
        found = _WORD.findall(_CASE_BORDER.sub(" ", query).lower())
        return [w for w in dict.fromkeys(found) if w not in FUNCTION_WORDS and w not in self.common]

    def shared(self, query: Query, slug: str) -> list[str]:
        return [w for w in self.informative(query.text) if any(kin(w, held) for held in self.words[slug])]


def defects(labelled: LabelledSet) -> list[str]:
    """Every broken rule, in words; empty for a sound set."""
    checked = _Checked(labelled)
    found = list(_sizes(labelled))
    for query in labelled.queries:
        where = f"{query.topic}: {query.kind} {query.text!r}"
        found += [f"{where}: {defect}" for defect in _query_defects(checked, query)]
    return found


def _sizes(labelled: LabelledSet) -> Iterator[str]:
    if len(labelled.sessions) < SESSIONS_MIN:
        yield f"{len(labelled.sessions)} sessions"
    if len(labelled.queries) < QUERIES_MIN:
        yield f"{len(labelled.queries)} queries"
    for name, count in near_duplicates(labelled.sessions).items():
        if count < NEAR_DUPLICATES_MIN:
            yield f"{name} has {count} sessions that tell of one matter each"
    for (text, workspace), count in Counter((q.text, q.workspace) for q in labelled.queries).items():
        if count > 1:
            yield f"{text!r} is asked {count} times in {workspace or 'every workspace'}"


def near_duplicates(sessions: Iterable[LabelledSession]) -> Counter[str]:
    """Sessions of each topic that answer, distractors and children left out."""
    return Counter(
        session.topic
        for session in sessions
        if not (session.asks or session.searches or session.aside or session.parent)
    )


def _query_defects(checked: _Checked, query: Query) -> Iterator[str]:
    unknown = [slug for slug in query.targets if slug not in checked.texts]
    if unknown:
        yield f"unknown target {unknown[0]}"
        return
    if query.kind == "negative":
        yield from _negative(checked, query)
        return
    for slug in query.targets:
        text = "\n".join(checked.texts[slug])
        if query.workspace and checked.labelled.by_slug[slug].header.cwd != query.workspace:
            yield f"{slug} is outside the query's workspace"
        if query.kind == "paraphrase" and len(shared := checked.shared(query, slug)) > PARAPHRASE_SHARED_MAX:
            yield f"shares {', '.join(shared)} with {slug}"
        elif query.kind in ("sentence", "half"):
            yield from _findable(checked, query, slug, text)
        elif query.kind in ("chinese", "japanese"):
            if not _HAN_OR_KANA.fullmatch(query.text) or query.text not in text:
                yield f"no word of one to four characters that {slug} holds"
        elif query.kind in ("identifier", "error", "mixed"):
            yield from _literal(query, slug, text)


def _findable(checked: _Checked, query: Query, slug: str, text: str) -> Iterator[str]:
    if query.text.lower() in text.lower():
        yield f"stands in {slug} word for word"
    if query.text.isascii() and len(checked.shared(query, slug)) < WORDS_SHARED_MIN:
        yield f"shares {checked.shared(query, slug)} with {slug}: no words could find it"


def _literal(query: Query, slug: str, text: str) -> Iterator[str]:
    """An identifier, error or mixed query names pieces that stand in the text, most of them at least."""
    pieces = _PIECE.findall(query.text.lower())
    held = sum(piece in text.lower() for piece in pieces)
    if held * 2 < len(pieces) or not pieces:
        yield f"{slug} holds {held} of its {len(pieces)} pieces"


def _negative(checked: _Checked, query: Query) -> Iterator[str]:
    """No event may hold every informative word, in any form or as part of a longer word."""
    wanted = checked.informative(query.text) or [query.text.lower()]
    for slug, texts in checked.texts.items():
        for text in texts:
            lowered = text.lower()
            held = words_of(text)
            if all(w in lowered or any(kin(w, other) for other in held) for w in wanted):
                yield f"an event of {slug} holds {', '.join(wanted)}"
                return
