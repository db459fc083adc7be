"""Two made-up formats for tests of the sources: lines that grow, and a document that is rewritten whole.

A line is ``{"id", "text", "at"?, "cwd"?, "parent"?, "replace"?, "title"?, "boom"?}``: one prompt of the
session ``id``. ``replace`` [start, end] takes surface nodes away. ``boom`` makes the reader fail.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from session_query.protocol.event import Event
from session_query.protocol.header import SessionHeader
from session_query.protocol.json_value import JSON
from session_query.protocol.records import Title
from session_query.storage.readers.discovery import one_file, walk
from session_query.storage.readers.driver import Record, read_jsonl
from session_query.storage.readers.seam import (
    Checkpoint,
    LogUnit,
    ReadBatch,
    Refusal,
    SessionDelta,
    SkippedPath,
)

CREATED = 1_700_000_000_000


def line(session: str, text: str, **more: JSON) -> bytes:
    """One line of a toy log, with its line feed."""
    return json.dumps({"id": session, "text": text, **more}).encode() + b"\n"


class _Session:
    def __init__(self, obj: Mapping[str, JSON]) -> None:
        self.header = SessionHeader(
            id=str(obj["id"]),
            created_at=int(str(obj.get("created", CREATED))),
            cwd=str(obj.get("cwd", "/w")) if obj.get("cwd", "/w") is not None else None,
            parent_session=None if obj.get("parent") is None else str(obj["parent"]),
        )
        self.next = 0
        self.first = 0
        self.events: list[Event] = []
        self.title: Title | None = None

    def feed(self, obj: Mapping[str, JSON]) -> None:
        seq = self.next
        time = int(str(obj.get("at", CREATED + seq)))
        kind = "session/title" if "rename" in obj else "user/message"
        data: JSON = {"content": [{"type": "text", "text": obj.get("text", "")}], "source": {"kind": "user"}}
        extra: dict[str, JSON] = {"surface_op": "append"}
        replace = obj.get("replace")
        if isinstance(replace, list):
            start, end = replace
            extra = {
                "surface_op": {"op": "replace", "start": start, "end": end},
                "source_event_seqs": list(range(seq)),
            }
        if kind == "session/title":
            data, extra = {"title": obj["rename"], "messageSeqs": [], "source": {"kind": "user"}}, {}
        self.events.append(Event(type=kind, seq=seq, time=time, data=data, **extra))
        if "title" in obj:
            self.title = Title(title=str(obj["title"]), message_seqs=(), source=None, seq=None, time=time)
        self.next += 1

    def take(self) -> SessionDelta | None:
        if not self.events:
            return None
        events, self.events = self.events, []
        return SessionDelta(
            header=self.header, first_seq=events[0].seq, events=events, title=self.title, inherited=0
        )


class ToyMapper:
    """Sessions by id, in the order of their first line."""

    def __init__(self, state: bytes | None) -> None:
        self.sessions: dict[str, _Session] = {}
        self.seen = False
        for obj in json.loads(state) if state else []:
            session = self.sessions[obj["id"]] = _Session(obj)
            session.next = obj["next"]
            self.seen = True

    def feed(self, record: Record) -> str | None:
        obj = record.obj
        if obj.get("boom"):
            raise RuntimeError("the toy reader fails on " + str(obj.get("text")))
        if "id" not in obj:
            return "no id"
        self.seen = True
        self.sessions.setdefault(str(obj["id"]), _Session(obj)).feed(obj)
        return None

    def take(self) -> list[SessionDelta]:
        return [delta for session in self.sessions.values() if (delta := session.take()) is not None]

    def state(self) -> bytes:
        return json.dumps(
            [
                {
                    "id": session.header.id,
                    "cwd": session.header.cwd,
                    "created": session.header.created_at,
                    "parent": session.header.parent_session,
                    "next": session.next,
                }
                for session in self.sessions.values()
            ]
        ).encode()

    def repeats(self) -> bool:
        return True

    def verdict(self) -> bool | Refusal:
        if "newer" in self.sessions:
            return Refusal(kind="newer-version", message="written by a newer version")
        return self.seen


class ToyReader:
    """``*.toy``, one record a line. Counts its reads and its walks; ``fail`` raises instead of reading."""

    def __init__(self, version: int = 1, name: str = "toy") -> None:
        self.format = name
        self.version = version
        self.reads: list[tuple[str, int]] = []
        self.walks = 0
        self.fail: BaseException | None = None

    def usual_places(self, environ: Mapping[str, str], home: Path, platform: str) -> list[Path]:
        return [Path(environ.get("TOY_HOME", str(home / ".toy"))), home / ".other-toy"]

    def units(self, root: Path) -> Iterator[LogUnit | SkippedPath]:
        self.walks += 1
        for found in walk(root, lambda name: name.endswith(".toy")):
            yield found if isinstance(found, SkippedPath) else one_file(self.format, root, found)

    def read(
        self, unit: LogUnit, checkpoint: Checkpoint | None, stopped: Callable[[], bool]
    ) -> Iterator[ReadBatch]:
        self.reads.append((unit.path.name, 0 if checkpoint is None else checkpoint.offset))
        if self.fail is not None:
            raise self.fail
        return read_jsonl(unit, checkpoint, ToyMapper, stopped)


class DocumentReader(ToyReader):
    """``*.doc``: one JSON list of records, always rewritten whole and read without checkpoints."""

    def __init__(self, version: int = 1) -> None:
        super().__init__(version, "doc")

    def units(self, root: Path) -> Iterator[LogUnit | SkippedPath]:
        self.walks += 1
        for found in walk(root, lambda name: name.endswith(".doc")):
            yield found if isinstance(found, SkippedPath) else one_file(self.format, root, found)

    def read(
        self, unit: LogUnit, checkpoint: Checkpoint | None, stopped: Callable[[], bool]
    ) -> Iterator[ReadBatch]:
        self.reads.append((unit.path.name, 0))
        content = unit.path.read_bytes()
        try:
            records = json.loads(content)
        except ValueError:
            yield ReadBatch(
                sessions=(), restart=True, refusal=Refusal(kind="corrupt", message="half written")
            )
            return
        mapper = ToyMapper(None)
        restart = True
        for at in range(0, max(len(records), 1), 5):  # several batches, so that sessions span them
            some = records[at : at + 5]
            for record in some:
                mapper.feed(Record(record, 0, 0))
            yield ReadBatch(
                sessions=tuple(mapper.take()),
                records=len(some),
                held=len(some),
                restart=restart,
                bytes_read=len(content) if restart else 0,
            )
            restart = False
            if stopped():
                return
