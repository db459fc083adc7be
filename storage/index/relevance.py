"""How well an event, and a session, answers the words of a query. Pure arithmetic; README.md explains it.

Every number that goes in was counted inside the caller's reach, so nothing outside it can choose, order
or shift a result (SPEC 16.1.3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

SATURATION: Final = 0.6
"""How slowly repeated words add up: twice is worth 1.23 times once, ever so often 1.6 times."""
LENGTH_SHARE: Final = 0.3
"""How much of the saturation follows the document's length (mild)."""
PAIR: Final = 0.5
"""What two neighbouring query words standing together in order add, in weights of the rarer-weighing one."""
PAIR_DISTANCE_MAX: Final = 3
"""Tokens apart at which two words still stand together."""
PROMPT: Final = 0.85
"""A prompt repeats the words of a question; who asked is no answer."""
QUESTION: Final = 0.5
"""A short prompt that only asks holds the words of the query and nothing else; longer ones also tell."""
QUESTION_CHARS_MAX: Final = 160
BEST_EVENTS: Final = (1.0, 0.5, 0.25)
"""The share of a session's best, second and third event."""
SESSION_SHARE: Final = 2.0
"""The weight of the session taken as one text, beside its best events."""
SCORE_DIGITS: Final = 6


def word_weight(holders: int, total: int) -> float:
    """The weight of a word held by ``holders`` of ``total`` sessions (or events) in reach."""
    return math.log(1.0 + (total - holders + 0.5) / (holders + 0.5))


def event_score(
    weights: Sequence[float],
    counts: Mapping[int, int],
    pairs: Sequence[tuple[int, int]],
    length_ratio: float,
    share: float,
) -> float:
    """The score of one event.

    Args: ``counts``: word to how often it occurs. ``pairs``: neighbouring query words that stand
        together in order here. ``length_ratio``: its length over the mean length in reach. ``share``: what
        its speaker leaves of the score, see ``speaker_share``.
    """
    base = SATURATION * (1.0 - LENGTH_SHARE + LENGTH_SHARE * length_ratio)
    score = 0.0
    for word in sorted(counts):
        count = counts[word]
        score += weights[word] * (count * (1.0 + SATURATION)) / (count + base)
    for first, second in pairs:
        score += PAIR * min(weights[first], weights[second])
    return score * share


def speaker_share(prompt: bool, text: str) -> float:
    """What counts of an event's score, by who says it: answers and tool results in full, questions least."""
    if not prompt:
        return 1.0
    asks = len(text) <= QUESTION_CHARS_MAX and ("?" in text or "？" in text)
    return QUESTION if asks else PROMPT


def session_score(best: Sequence[float], held: float) -> float:
    """The score of a session from its best events, best first, and the weights of all words it holds."""
    total = SESSION_SHARE * held
    for share, score in zip(BEST_EVENTS, best, strict=False):
        total += share * score
    return total


def rounded(score: float) -> float:
    """A score as it is compared: far below any meaning, far above the noise of adding up (SPEC 16.1.3)."""
    return round(score, SCORE_DIGITS)
