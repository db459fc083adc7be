"""How many bytes some objects hold: themselves and what they alone lead to."""

from __future__ import annotations

import gc
import sys
import types

import msgspec

_SHARED = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.CodeType,
    types.FrameType,
)


def held_bytes(*roots: object) -> int:
    """The sum over everything that can be reached, each object once; classes, modules and code left out."""
    seen: set[int] = set()
    waiting: list[object] = list(roots)
    total = 0
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, _SHARED):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)
        if isinstance(one, msgspec.Struct):  # those without a collector's header lead nowhere by themselves
            waiting.extend(getattr(one, name) for name in one.__struct_fields__)
        waiting.extend(gc.get_referents(one))
    return total
