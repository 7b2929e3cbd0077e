"""Reads those files of the kernel that somebody asks for, by path or by pattern."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

from pgdyno.host.tree import Tree, parsed
from pgdyno.model.facts import Fact

_LIMIT_BYTES = 4096  # a page, which is what the kernel gives at most for one value


def read_kernel_files(tree: Tree, patterns: Iterable[str]) -> dict[str, Fact[str]]:
    """Return the first line of every file that a pattern names, by path.

    ``*`` stands for any one name in a directory: ``/sys/block/*/queue/scheduler``. A path without it that leads
    nowhere is unknown; a pattern that matches nothing adds nothing.
    """
    paths = dict.fromkeys(path for pattern in patterns for path in _matching(tree, pattern))
    return {path: parsed(tree.text(path, _LIMIT_BYTES), _first_line) for path in paths}


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _matching(tree: Tree, pattern: str) -> list[str]:
    """Return the paths that a pattern stands for, directory by directory."""
    found = [""]
    for part in pattern.strip("/").split("/"):
        if "*" in part:
            found = [f"{path}/{name}" for path in found for name in _names(tree, path, part)]
        else:
            found = [f"{path}/{part}" for path in found]
    return found if "*" not in pattern else [path for path in found if tree.text(path, 1).is_known]


def _names(tree: Tree, path: str, pattern: str) -> list[str]:
    return fnmatch.filter(tree.names(path or "/").or_else(()), pattern)
