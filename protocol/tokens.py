"""Tokens: the words of texts and queries (SPEC 6.3, 16.2). One set of steps for both sides.

``prepare`` turns a text into one whose tokens are simply the maximal runs of ASCII letters, ASCII digits
and characters beyond ASCII, compared with ASCII case folded. A full-text engine with the plainest of
tokenizers then agrees with this module by construction, whatever its own Unicode tables say. ASCII
text, the common case, is already prepared.

Places in the original text are found only for the few texts that are shown: ``Places``.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import attrs

from .token_chars import TABLE, compose

TOKENS_VERSION: Final = f"1/{unicodedata.unidata_version}"
"""An index made with another version holds other tokens and has to be built again."""

_GAP_CLASS: Final = "\0-/:-@\\[-`{-\x7f"
TOKEN_CLASS: Final = f"^{_GAP_CLASS}"
"""For ``[...]`` in a pattern: all but the ASCII gaps. Naming the range beyond ASCII itself makes a pattern
take 6.8 ms to compile instead of 0.15, and every query is a new one."""
_TOKEN: Final = re.compile(f"[{TOKEN_CLASS}]+")
_RUN: Final = re.compile("[^\x00-\x7f]+")
_RUN_CACHE_MAX: Final = 20_000
_RUN_CACHE_CHARS: Final = 12
_runs: dict[str, str] = {}


def prepare(text: str) -> str:
    """Return ``text`` as the full-text engine is given it. Case of ASCII letters is left alone."""
    if text.isascii():
        return text.replace("\0", " ") if "\0" in text else text
    return _RUN.sub(_prepare_run, compose(text)).replace("\0", " ")


def _prepare_run(match: re.Match[str]) -> str:
    run = match[0]
    if len(run) > _RUN_CACHE_CHARS:
        return run.translate(TABLE)
    found = _runs.get(run)
    if found is None:
        if len(_runs) >= _RUN_CACHE_MAX:
            _runs.clear()  # the few that matter come back at once
        found = _runs[run] = run.translate(TABLE)
    return found


def lower_ascii(prepared: str) -> str:
    """Fold the case of ASCII letters alone; the rest of a prepared text is folded already."""
    if prepared.isascii():
        return prepared.lower()
    return prepared.encode("utf-8", "replace").lower().decode("utf-8")


_GAPS_AND_CASE: Final = bytes(
    code if code >= 0x80 else ord(chr(code).lower()) if chr(code).isalnum() else 0x20 for code in range(256)
)


def split_tokens(prepared: str) -> list[str]:
    """Return the tokens of a prepared text in order, folded. Five times as fast as a pattern."""
    return prepared.encode().translate(_GAPS_AND_CASE).decode().split()


def split_bytes(prepared: str) -> list[bytes]:
    """Return the same tokens in UTF-8: a fifth cheaper where most are only looked up."""
    return prepared.encode().translate(_GAPS_AND_CASE).split()


def tokens(text: str) -> list[str]:
    """Return the tokens of ``text`` in order, folded."""
    return split_tokens(prepare(text))


_CASE_BORDER: Final = re.compile("[A-Z](?:(?<=[0-9a-z][A-Z])|(?<=[A-Z][A-Z])(?=[a-z]))")
_PART: Final = re.compile("[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+")
_SHAPES: Final = bytes(
    0x20 if code >= 0x80 or not chr(code).isalnum() else ord("A") if chr(code).isupper() else ord("a")
    for code in range(256)
)
"""Every capital as one, every small letter and digit as one: case borders are found by plain byte search."""
_PARTS_CACHE_MAX: Final = 20_000
_PARTS_CACHE_BYTES: Final = 64
_parts: dict[bytes, tuple[str, ...]] = {}


def parts(prepared: str) -> list[str]:
    """Return the distinct parts, folded, of identifiers that have case borders (SPEC 16.2.2).

    ``openNursery`` gives ``open`` and ``nursery``, ``parseHTTPReply2`` ``parse``, ``http``, ``reply2``.
    Parts of one letter tell nothing and are left out. 5 us for 600 characters; with a pattern for borders
    and no memory of identifiers it was 9 to 12.
    """
    data = prepared.encode()
    shapes = data.translate(_SHAPES)
    found: list[str] = []
    for border in (b"aA", b"AAa"):
        at = shapes.find(border)
        while at >= 0:
            end = shapes.find(b" ", at)
            if end < 0:
                end = len(data)
            word = data[shapes.rfind(b" ", 0, at) + 1 : end]
            known = _parts.get(word)
            found += _learn_parts(word) if known is None else known
            at = shapes.find(border, end)
    return sorted(set(found)) if found else found


def _learn_parts(word: bytes) -> tuple[str, ...]:
    text = word.decode()
    found: tuple[str, ...] = ()
    if _CASE_BORDER.search(text):  # not so in ``HTTP2``: digits have the shape of small letters
        found = tuple(part for part in case_parts(text) if len(part) > 1)
    if len(word) <= _PARTS_CACHE_BYTES:
        if len(_parts) >= _PARTS_CACHE_MAX:
            _parts.clear()  # the few that matter come back at once
        _parts[word] = found
    return found


def case_parts(word: str) -> list[str]:
    """Return one identifier's parts at case borders, folded; the word itself if it has none."""
    return [part.lower() for part in _PART.findall(word)]


def can_overlap(phrase: Sequence[str]) -> bool:
    """Whether two occurrences of ``phrase`` can share a token: some proper prefix is also a suffix.

    Linear: the longest such prefix of each start follows from those before it; queries may be long.
    """
    borders, border = [0], 0
    for token in phrase[1:]:
        while border and token != phrase[border]:
            border = borders[border - 1]
        border += token == phrase[border]
        borders.append(border)
    return border > 0


def phrase_pattern(phrase: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern that finds ``phrase`` as consecutive tokens in prepared, lower-cased text."""
    return _phrase_pattern(tuple(phrase))


@lru_cache(maxsize=64)
def _phrase_pattern(phrase: tuple[str, ...]) -> re.Pattern[str]:
    """Made once a query and not once a text: putting it together takes as long as looking for it."""
    body = f"[{_GAP_CLASS}]+".join(map(re.escape, phrase))
    return re.compile(f"(?<![{TOKEN_CLASS}]){body}(?![{TOKEN_CLASS}])")


def count_phrase(prepared_lower: str, phrase: Sequence[str]) -> int:
    """Return how many spans of ``phrase`` a prepared, lower-cased text holds (SPEC 6.5).

    Occurrences that share a token are one span; those that merely touch are two.
    """
    if not phrase:
        return 0
    if can_overlap(phrase):
        return sum(1 for _ in _merged(prepared_lower, list(phrase)))
    return sum(1 for _ in phrase_pattern(phrase).finditer(prepared_lower))


def _merged(prepared_lower: str, phrase: list[str]) -> Iterator[tuple[int, int]]:
    """Spans in the prepared text of a phrase whose occurrences may share tokens."""
    found = list(_TOKEN.finditer(prepared_lower))
    words = [match[0] for match in found]
    size = len(phrase)
    begin, through = 0, -1  # the span being grown: its first and its last token
    for at in range(len(words) - size + 1):
        if words[at] != phrase[0] or words[at : at + size] != phrase:
            continue
        if at > through:
            if through >= 0:
                yield found[begin].start(), found[through].end()
            begin = at
        through = at + size - 1
    if through >= 0:
        yield found[begin].start(), found[through].end()


@attrs.define(eq=False)
class Places:
    """A text's prepared form with the way back to places in the text itself.

    ``lower`` is what ``lower_ascii(prepare(text))`` gives, up to the number of gaps between tokens.
    """

    lower: str
    _starts: list[int]
    _origins: list[tuple[int, int]]
    _ascii: list[bool]

    @classmethod
    def of(cls, text: str) -> Places:
        if text.isascii():
            return cls(prepare(text).lower(), [], [], [])
        pieces: list[str] = []
        starts: list[int] = []
        origins: list[tuple[int, int]] = []
        plain: list[bool] = []
        size = 0
        for piece, start, end in _pieces(text):
            pieces.append(piece)
            starts.append(size)
            origins.append((start, end))
            plain.append(text[start:end].isascii())
            size += len(piece)
        return cls(lower_ascii("".join(pieces)), starts, origins, plain)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return the place in the text of ``lower[start:end]``, marks of its last letter included."""
        if not self._starts:
            return start, end
        return self._edge(start)[0], self._edge(end - 1)[1]

    def _edge(self, place: int) -> tuple[int, int]:
        """The part of the text that ``lower[place]`` stands for."""
        piece = bisect_right(self._starts, place) - 1
        start, end = self._origins[piece]
        if self._is_plain(piece):
            start += place - self._starts[piece]
            end = start + 1
        return start, end

    def _is_plain(self, piece: int) -> bool:
        """Whether the piece maps character by character: an ASCII stretch."""
        following = self._starts[piece + 1] if piece + 1 < len(self._starts) else len(self.lower)
        size = following - self._starts[piece]
        start, end = self._origins[piece]
        return end - start == size and self._ascii[piece]


_CLUSTERS: Final = re.compile("[\x00-\x7f]+|[^\x00-\x7f]")


def _pieces(text: str) -> Iterator[tuple[str, int, int]]:
    """Cut ``text`` so that preparing the pieces one by one gives what preparing it whole gives.

    A piece is an ASCII stretch, or one character with everything that may compose with it.
    """
    start, cluster = 0, ""
    for match in _CLUSTERS.finditer(text):
        part = match[0]
        if not part.isascii():
            if cluster and (part in _apart or not _joins(cluster, part)):
                yield _prepare_cluster(cluster), start, match.start()
                cluster = ""
            if not cluster:
                start = match.start()
            cluster += part
            continue
        if cluster:
            yield _prepare_cluster(cluster), start, match.start()
        if len(part) > 1:  # the last ASCII character may take marks from what follows
            yield part[:-1].replace("\0", " "), match.start(), match.end() - 1
        start, cluster = match.end() - 1, part[-1]
    if cluster:
        yield _prepare_cluster(cluster), start, len(text)


_apart: set[str] = set()
"""Characters met that join nothing, whatever stands before them: most of them."""
_alone: dict[str, str] = {}
"""Characters met with their prepared forms: 25 us less for 40 Han characters."""


def _joins(cluster: str, char: str) -> bool:
    """Whether ``char`` belongs to what stands before it: a mark, or a letter that composes with it."""
    if unicodedata.category(char)[0] == "M":
        return True
    if "\u1160" <= char <= "\u11ff" or "\uff9e" <= char <= "\uffdc":  # Jamo and half-width voice marks
        return len(compose(cluster[-2:] + char)) < len(compose(cluster[-2:])) + 1
    if len(_apart) >= _RUN_CACHE_MAX:
        _apart.clear()
    _apart.add(char)
    return False


def _prepare_cluster(cluster: str) -> str:
    if len(cluster) > 1:
        return prepare(cluster)
    found = _alone.get(cluster)
    if found is None:
        if len(_alone) >= _RUN_CACHE_MAX:
            _alone.clear()
        found = _alone[cluster] = prepare(cluster)
    return found


def phrase_spans(places: Places, phrase: Sequence[str]) -> list[tuple[int, int]]:
    """Return the spans of ``phrase`` as (start, end) in the original text, in order (SPEC 6.5)."""
    if not phrase:
        return []
    if can_overlap(phrase):
        found: Iterator[tuple[int, int]] = _merged(places.lower, list(phrase))
    else:
        found = (match.span() for match in phrase_pattern(phrase).finditer(places.lower))
    return [places.origin(*span) for span in found]


def first_phrase(text: str, phrase: Sequence[str]) -> int | None:
    """Return where the first span of ``phrase`` begins in ``text``, None without any (SPEC 6.7)."""
    if not phrase:
        return None
    pattern = phrase_pattern(phrase)
    found = pattern.search(lower_ascii(text))
    if text.isascii():
        return None if found is None else found.start()
    if found is not None and text[found.start() : found.end() + 2].isascii():
        # Nothing composes there, so it stands in the prepared text as well: it is the first one unless
        # something before it comes to the same (full-width letters, say). A fifth of the way over ``Places``.
        ready = lower_ascii(prepare(text[: found.end()]))
        first = pattern.search(ready)
        if first is not None and first.end() == len(ready):
            return found.start()
    spans = phrase_spans(Places.of(text), phrase)
    return spans[0][0] if spans else None
