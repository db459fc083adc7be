"""The obvious model of an idempotent append: write each event at its place, one by one."""

from __future__ import annotations

from typing import Any


def append(stored: list[Any], from_seq: int, events: list[Any]) -> tuple[str, list[Any]]:
    """(outcome, log afterwards); the outcome is ``ok``, ``gap`` or ``conflict``, and only ``ok`` writes."""
    log = list(stored)
    if from_seq > len(log):
        return "gap", stored
    for place, event in enumerate(events):
        seq = from_seq + place
        if seq < len(log):
            if log[seq] != event:
                return "conflict", stored
        else:
            log.append(event)
    return "ok", log
