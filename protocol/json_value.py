"""JSON values as the product holds them: plain, lossless, arbitrarily deep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard

if TYPE_CHECKING:
    JSON: TypeAlias = bool | int | float | str | list["JSON"] | dict[str, "JSON"] | None
else:
    JSON = Any  # msgspec reads field types at run time and knows no recursive alias

SAFE_INTEGER_MAX: Final = 2**53 - 1


def is_safe_integer(value: object) -> TypeGuard[int]:
    """True for a whole number of at most 2^53 - 1 in size. A boolean is never a number.

    A float such as ``4.0`` is *not* accepted here: decoding turns whole floats into integers
    where an integer is meant (see ``whole``), so that no later code has to think of both.
    """
    return type(value) is int and -SAFE_INTEGER_MAX <= value <= SAFE_INTEGER_MAX


def whole(value: object) -> object:
    """Return ``value`` as an integer if it is a float that counts as one (``4.0``), else unchanged."""
    if type(value) is float and value.is_integer() and abs(value) <= SAFE_INTEGER_MAX:
        return int(value)
    return value
