"""What each idea of the ranking brings: the product's searcher with one idea taken away at a time.

An idea is a named constant or function of the index; taking it away sets another value for the time of
the measurement. A name that is gone raises AttributeError, so that no line measures nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from typing import Final, TypeAlias

from .composing import LabelledSession
from .engine import index_searcher
from .searching import Searcher, SearcherFactory

Change: TypeAlias = tuple[str, str, object]
"""A module of the index, a name in it, and what stands there instead."""

NOTHING: Final = "everything on"


def _no_forms(word: str) -> list[str]:
    return []


ABLATIONS: Final[dict[str, tuple[Change, ...]]] = {
    NOTHING: (),
    "without word forms": (("query_words", "word_forms", _no_forms),),
    "without ordered neighbours": (("relevance", "PAIR", 0.0),),
    "without the session as one text": (("relevance", "SESSION_SHARE", 0.0),),
    "best event alone": (("relevance", "SESSION_SHARE", 0.0), ("relevance", "BEST_EVENTS", (1.0,))),
    "without the length of a text": (("relevance", "LENGTH_SHARE", 0.0),),
    "with usual saturation and length (1.2, 0.75)": (
        ("relevance", "SATURATION", 1.2),
        ("relevance", "LENGTH_SHARE", 0.75),
    ),
    "prompts as good as answers": (("relevance", "PROMPT", 1.0), ("relevance", "QUESTION", 1.0)),
    "questions as good as other prompts": (("relevance", "QUESTION", 0.85),),
    "nothing negligible in auto": (("relaxed", "NEGLIGIBLE", 0.0),),
}


def ablated(name: str) -> SearcherFactory:
    """The product's searcher without the named idea. Raises: KeyError: no such ablation."""
    changes = ABLATIONS[name]

    def factory(sessions: Sequence[LabelledSession]) -> AbstractContextManager[Searcher]:
        return _searching(sessions, changes)

    return factory


@contextmanager
def _searching(sessions: Sequence[LabelledSession], changes: Sequence[Change]) -> Iterator[Searcher]:
    with ExitStack() as stack:
        for change in changes:
            stack.enter_context(changed(change))
        yield stack.enter_context(index_searcher(sessions))


@contextmanager
def changed(change: Change) -> Iterator[None]:
    """Put one other value in place. Raises: AttributeError: the module has no such name."""
    where, name, value = change
    module = import_module(f"...storage.index.{where}", __package__)
    before: object = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)
