"""SPEC 10.7.10 over trees, recursively, as it reads."""

from __future__ import annotations

from collections.abc import Callable

Tree = tuple[str, list["Tree"]]


def visible_tree(tree: Tree, depth: int, may_see: Callable[[str], bool]) -> list[tuple[int, str | None]]:
    name, children = tree
    if not may_see(name):
        return [(depth, None)]
    shown: list[tuple[int, str | None]] = [(depth, name)]
    for child in children:
        shown += visible_tree(child, depth + 1, may_see)
    return shown


def flat_tree(tree: Tree, depth: int) -> list[tuple[int, str]]:
    name, children = tree
    return [(depth, name)] + [row for child in children for row in flat_tree(child, depth + 1)]
