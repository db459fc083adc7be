"""What a running service says of itself to its operator: queues, counters, index, sources, memory.

Everything is a plain number or a short text, keys in snake_case; ``metrics`` turns the same value into
Prometheus text. Nothing in here is for a confined token: counts of all workspaces stand beside each other.
"""

from __future__ import annotations

import math
import shutil
import sys
from pathlib import Path
from typing import Final

from ..protocol.json_value import JSON
from ..storage.index.door import Reach
from ..storage.store_reader import StoreReader
from .house import House

_PROCESS_STATUS: Final = Path("/proc/self/status")
_KIB_LINES: Final = {"VmRSS:": "resident_bytes", "VmHWM:": "peak_bytes"}


async def house_statistics(house: House, data_dir: Path | None) -> dict[str, JSON]:
    """The opened parts' numbers. One hop to a reader; some ms with 10,000 sessions."""
    search = house.search.statistics()
    storage = house.storage
    return {
        "live_sessions": len(house.live),
        "searches": {
            "queued": search.queued,
            "running": search.running,
            "served": search.served,
            "refused": search.refused,
        },
        "reads_under_way": house.exact.pool.under_way,
        **storage.statistics(),
        "index": await storage.read(_index),
        "sources": await _sources(house),
        "parsed_cache": {
            "bytes": house.cache.bytes,
            "hits": house.cache.hits,
            "misses": house.cache.misses,
        },
        "disk_free_bytes": _free_bytes(data_dir),
    }


def _index(reader: StoreReader) -> JSON:
    everything = Reach()
    (pages,) = reader.connection.execute("PRAGMA page_count").fetchone() or (0,)
    (page_bytes,) = reader.connection.execute("PRAGMA page_size").fetchone() or (0,)
    return {
        "generation": reader.index.generation(),
        "sessions": reader.index.count(everything),
        "unread_sessions": len(reader.index.unread(everything)),
        "lost_records": reader.index.losses(everything),
        "bytes": pages * page_bytes,
    }


async def _sources(house: House) -> JSON:
    """Freshness first: ``checked_ago_s`` null means that the index is current."""
    freshness = house.freshness
    told = await freshness.status()
    found = told.get("sources") if isinstance(told, dict) else None
    age_s = freshness.checked_ago_s()
    building = freshness.first_index()
    return {
        "watched": house.storage.marks().watched,
        "checked_ago_s": None if age_s is None or math.isinf(age_s) else round(age_s, 3),
        "first_index": None if building is None else {"done_bytes": building[0], "total_bytes": building[1]},
        "listed": [_short(source) for source in found] if isinstance(found, list) else [],
    }


def _short(source: JSON) -> JSON:
    """One source without the list of what was skipped, which `sources` tells."""
    if not isinstance(source, dict):
        return None
    skipped = source.get("skipped")
    count = len(skipped) if isinstance(skipped, list) else 0
    return source | {"skipped": count}


def _free_bytes(data_dir: Path | None) -> int | None:
    if data_dir is None:
        return None
    try:
        return shutil.disk_usage(data_dir).free
    except OSError:
        return None


def memory() -> JSON:
    """This process's memory in bytes, now and at its highest; null where the system does not say."""
    found: dict[str, JSON] = {"resident_bytes": None, "peak_bytes": None}
    try:
        text = _PROCESS_STATUS.read_text("ascii", "replace")
    except OSError:
        return found | {"peak_bytes": _peak_bytes()}
    for line in text.splitlines():
        name, _, rest = line.partition("\t")
        if name in _KIB_LINES:
            found[_KIB_LINES[name]] = int(rest.split()[0]) * 1024
    return found


def _peak_bytes() -> int | None:
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
