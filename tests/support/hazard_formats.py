"""How each JSONL format writes a line, for the hazard suite and the fuzz run. One entry a format."""

from __future__ import annotations

import json
from typing import Final

from session_query.storage.readers.dsh import DshReader
from support.hazards import HazardFormat, mark


def _dsh_line(number: int) -> bytes:
    data = {
        "id": f"m-{number}",
        "role": "user",
        "content": [{"type": "text", "text": f"say {mark(number)}"}],
        "source": {"kind": "user"},
    }
    record = {"type": "user/message", "seq": number, "time": 1790000000000 + number, "data": data}
    return json.dumps({**record, "surfaceOp": "append"}).encode()


DSH: Final = HazardFormat(
    reader=DshReader(),
    name="--w--/s-1/session.jsonl",
    head=(
        b'{"type":"session","version":0,"id":"s-1","createdAt":1790000000000,"cwd":"/w","delegationDepth":0}',
    ),
    line=_dsh_line,
)

FORMATS: Final[dict[str, HazardFormat]] = {"dsh": DSH}
"""By format name. A format whose logs are not lines has no entry."""
