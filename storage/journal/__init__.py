"""The canonical store of published sessions and of retained copies; see README.md."""

from .originals import Original, OriginalDamaged, Originals
from .reading import JournalReader
from .records import (
    PUBLISHED,
    Batch,
    Copy,
    Forgotten,
    HeaderConflict,
    JournalDamaged,
    JournalRefusal,
    JournalSession,
    SeqConflict,
    SeqGap,
    UnknownSession,
)
from .schema import SCHEMA
from .writing import Journal

__all__ = [
    "PUBLISHED",
    "SCHEMA",
    "Batch",
    "Copy",
    "Forgotten",
    "HeaderConflict",
    "Journal",
    "JournalDamaged",
    "JournalReader",
    "JournalRefusal",
    "JournalSession",
    "Original",
    "OriginalDamaged",
    "Originals",
    "SeqConflict",
    "SeqGap",
    "UnknownSession",
]
