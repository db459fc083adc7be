"""How random cases are drawn: always the same ones, unless somebody goes exploring.

A landing must not fail by chance, so Hypothesis derives every case from the test itself (``derandomize``).
``SESSION_QUERY_EXPLORE=4`` draws new ones, four times as many; what it finds is printed with a blob that
repeats it, and is kept in ``.hypothesis``.
"""

from __future__ import annotations

import os
from typing import Any, Final

import pytest
from hypothesis import settings

EXPLORE: Final = int(os.environ.get("SESSION_QUERY_EXPLORE", "0"))

settings.register_profile("repeatable", derandomize=True, deadline=None)  # no test is about time
settings.register_profile("explore", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("explore" if EXPLORE else "repeatable")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give a random test ``EXPLORE`` times the examples it asks for, wherever it says how many."""
    if not EXPLORE:
        return
    machine = getattr(item, "cls", None)
    if machine is not None and hasattr(machine, "settings"):  # a state machine's test case
        if "settings_before_exploring" not in vars(machine):
            machine.settings_before_exploring = machine.settings
            machine.settings = more(machine.settings)
        return
    test: Any = getattr(item, "obj", None)
    own: settings | None = getattr(test, "_hypothesis_internal_use_settings", None)
    if own is not None and not hasattr(test, "settings_before_exploring"):  # once for all its parameters
        test.settings_before_exploring = own
        test._hypothesis_internal_use_settings = more(own)


def more(own: settings) -> settings:
    return settings(own, max_examples=own.max_examples * EXPLORE)
