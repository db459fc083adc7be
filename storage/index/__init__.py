"""The derived full-text index: one file, one writer, many snapshot readers. Start reading at README.md."""

from .door import (
    EventsFound,
    Facts,
    FoundEvent,
    FoundInSession,
    IndexReader,
    IndexWriter,
    Reach,
    SearchSpec,
    SessionKey,
    SessionsFound,
    SessionState,
    Skeleton,
    StoredSession,
)
from .reader import open_reader
from .schema import INDEX_TABLES, INDEX_VERSION, create_index, tokens_agree
from .writer import open_writer

__all__ = [
    "INDEX_TABLES",
    "INDEX_VERSION",
    "EventsFound",
    "Facts",
    "FoundEvent",
    "FoundInSession",
    "IndexReader",
    "IndexWriter",
    "Reach",
    "SearchSpec",
    "SessionKey",
    "SessionState",
    "SessionsFound",
    "Skeleton",
    "StoredSession",
    "create_index",
    "open_reader",
    "open_writer",
    "tokens_agree",
]
