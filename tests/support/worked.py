"""The worked log of a reader's README, so that what is shown is what is tested."""

from __future__ import annotations

import re
from pathlib import Path

_READERS = Path(__file__).resolve().parents[2] / "storage" / "readers"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def worked_log(package: str) -> tuple[bytes, list[tuple[int, str]]]:
    """The last ``jsonl`` block of a reader's README and the ``text`` block behind it: ``seq type`` a line."""
    text = (_READERS / package / "README.md").read_text("utf-8")
    blocks = _BLOCK.findall(text)
    log = [body for kind, body in blocks if kind == "jsonl"][-1]
    listed = [body for kind, body in blocks if kind == "text"][-1]
    expected = [(int(line.split()[0]), line.split()[1]) for line in listed.splitlines() if line]
    return log.encode(), expected
