"""Where the handed corpus of real logs is, if it is here at all. It is never copied into the tree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


def corpus_root() -> Path | None:
    """``SESSION_QUERY_CORPUS``, else ``../shared/corpus`` beside the checkout; None if there is none."""
    named = os.environ.get("SESSION_QUERY_CORPUS")
    root = Path(named) if named else _ROOT.parent / "shared" / "corpus"
    return root if root.is_dir() else None


def corpus_files(*folders: str) -> list[Path]:
    """Every file below the named folders of the corpus, sorted; empty without a corpus.

    For ``pytest.mark.parametrize``: with an empty list pytest itself reports a skipped case.
    """
    root = corpus_root()
    if root is None:
        return []
    tops = [root / folder for folder in folders] or [root]
    return sorted(path for top in tops for path in top.rglob("*") if path.is_file())


def need_corpus() -> Path:
    """The corpus, or a skip that says how to bring one."""
    root = corpus_root()
    if root is None:
        pytest.skip("no corpus: set SESSION_QUERY_CORPUS to a folder of real logs")
    return root
