"""What an index of real logs weighs on disk, beside the text it holds, and which tables weigh it.

A whole store is opened over a folder with one sub-folder a format (as ``loss_table`` takes it), everything
is read, idle work runs to its end, and ``index.db`` is closed: its size is the figure, catalog and free
pages included. What a table weighs is told by dropping it in a copy and counting the pages that became free.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import msgspec

from ...storage import sqlite
from ...storage.index.bodies import Bodies
from ...storage.sources.spec import SourceSpec
from ...storage.sqlite import Connection
from ...storage.store import StoreSettings, open_store
from ...storage.text_codec import TextCodec
from ..loss_table import FORMAT_OF_FOLDER

GATE: Final = 0.85
AIM: Final = 0.7
PARTS: Final = {
    "full text": ("fts",),
    "text copies and skeletons": ("body", "body_new"),
    "documents": ("doc", "type"),
    "sessions": ("session", "workspace", "source", "block"),
    "spans": ("span", "span_end", "span_word", "span_todo"),
    "repeats": ("repeats", "repeats_todo"),
    "catalog of the logs": (
        "catalog_root",
        "catalog_unit",
        "catalog_session",
        "catalog_loss",
        "catalog_skipped",
    ),
}
CATALOG: Final = "catalog of the logs"


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes. ``parts`` are whole pages of tables with their indexes; the rest of the file is bookkeeping."""

    sessions: int
    documents: int
    text_bytes: int
    file_bytes: int
    parts: dict[str, int]

    @property
    def file_ratio(self) -> float:
        """The whole file over the text: what the promise is about."""
        return self.file_bytes / self.text_bytes

    @property
    def index_ratio(self) -> float:
        """The same without the catalog, which grows with the number of logs and not with their text."""
        return (self.file_bytes - self.parts[CATALOG]) / self.text_bytes


def sources_of(corpus: Path) -> list[SourceSpec]:
    """The roots below a folder: of each branch the folder nearest to the top whose name tells a format."""
    found: list[SourceSpec] = []
    for path in sorted(path for path in corpus.rglob("*") if path.is_dir()):
        depth = len(path.relative_to(corpus).parts)
        known = path.name in FORMAT_OF_FOLDER and (
            depth == 1 or path.relative_to(corpus).parts[0] == "others"
        )
        if known and not any(spec.root in path.parents for spec in found):
            found.append(SourceSpec(format=FORMAT_OF_FOLDER[path.name], root=path))
    return found


def measure_sizes(corpus: Path, folder: Path) -> Sizes:
    """Read everything below ``corpus`` into a store in ``folder``, an empty directory, and weigh it.

    Raises: ValueError: no text is there.
    """
    store = open_store(StoreSettings(data_dir=folder / "data", sources=tuple(sources_of(corpus))))
    try:
        store.index.bulk(True)  # as a service does for a first build
        for _ in store.sources.refresh():
            pass
        store.index.bulk(False)
        while store.index.merge_step():
            pass
        texts = Bodies(store.connection, TextCodec())
        text_bytes = sum(len(text.encode()) for _, text in texts.between(0, 1 << 60))
        sessions, documents = (
            int(store.connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])
            for table in ("session", "doc")
        )
    finally:
        store.close()
    if not text_bytes:
        raise ValueError(f"no text below {corpus}")
    path = folder / "data" / "index.db"
    copy = folder / "copy.db"
    shutil.copyfile(path, copy)
    return Sizes(
        sessions=sessions,
        documents=documents,
        text_bytes=text_bytes,
        file_bytes=path.stat().st_size,
        parts=_weigh(copy),
    )


def _weigh(path: Path) -> dict[str, int]:
    connection = sqlite.connect_writer(path, journal_mode="delete")
    try:
        return {part: _drop(connection, tables) for part, tables in PARTS.items()}
    finally:
        connection.close()


def _drop(connection: Connection, tables: tuple[str, ...]) -> int:
    before = _free_bytes(connection)
    for table in tables:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    return _free_bytes(connection) - before


def _free_bytes(connection: Connection) -> int:
    pages, size = (
        int(connection.execute(f"PRAGMA {name}").fetchall()[0][0]) for name in ("freelist_count", "page_size")
    )
    return pages * size


def as_text(sizes: Sizes) -> str:
    """The table as committed."""
    text = sizes.text_bytes
    lines = [
        f"{sizes.sessions} sessions, {sizes.documents} documents, {text:,} bytes of text",
        "",
        "| what | bytes | × the text |",
        "| --- | --- | --- |",
        *(f"| {name} | {size:,} | {size / text:.3f} |" for name, size in sizes.parts.items()),
        f"| bookkeeping | {_rest(sizes):,} | {_rest(sizes) / text:.3f} |",
        f"| **index.db, whole** | {sizes.file_bytes:,} | **{sizes.file_ratio:.3f}** |",
        f"| without the catalog | {sizes.file_bytes - sizes.parts[CATALOG]:,} | {sizes.index_ratio:.3f} |",
        "",
        f"Gate: whole file ≤ {GATE} × the text: {'PASS' if sizes.file_ratio <= GATE else 'MISS'}."
        f" Aim: ≤ {AIM} ×: {'PASS' if sizes.file_ratio <= AIM else 'MISS'}.",
    ]
    return "\n".join(lines)


def _rest(sizes: Sizes) -> int:
    return sizes.file_bytes - sum(sizes.parts.values())
