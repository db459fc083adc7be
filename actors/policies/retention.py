"""Retention of spilled results: what is too old or too much is deleted (SPEC 12.1.8, 14 L34)."""

from __future__ import annotations

import logging
import time
from typing import Final

import trio

from ...storage.spill import SpillRetention, SpillStore

logger = logging.getLogger(__name__)

SWEEP_EVERY_S: Final = 3600.0


async def keep_swept(store: SpillStore, retention: SpillRetention, *, every_s: float = SWEEP_EVERY_S) -> None:
    """Sweep the store now and then every ``every_s`` seconds; ends only by cancellation.

    A store that cannot be swept is logged and tried again: results are kept too long rather than not served.
    Cancellation: a sweep that has begun is awaited.
    """
    while True:
        try:
            swept = await trio.to_thread.run_sync(store.sweep, time.time(), retention)
        except OSError as exc:
            logger.warning("spilled results could not be swept: %s", type(exc).__name__)
        else:
            if swept.files:
                logger.info("%d spilled results of %d bytes were deleted", swept.files, swept.bytes)
        await trio.sleep(every_s)
