"""Typed looks into a record of which nothing is certain: a wrong type reads as absent."""

from __future__ import annotations

from ....protocol.json_value import JSON


def string(value: JSON, key: str) -> str | None:
    """``value[key]`` if it is a non-empty string, else None."""
    if type(value) is not dict:  # decoded JSON: no subclasses
        return None
    found = value.get(key)
    return found if type(found) is str and found else None


def mapping(value: JSON, key: str) -> dict[str, JSON]:
    """``value[key]`` if it is an object, else an empty one."""
    found = value.get(key) if type(value) is dict else None
    return found if type(found) is dict else {}


def items(value: JSON, key: str) -> list[JSON]:
    """``value[key]`` if it is an array, else an empty one."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def strings(value: JSON, key: str) -> list[str]:
    """The non-empty strings of the array ``value[key]``."""
    return [item for item in items(value, key) if isinstance(item, str) and item]
