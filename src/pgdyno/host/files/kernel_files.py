"""Read kernel files and CPU registers that are requested by path or by pattern."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

from pgdyno.base.facts import Fact
from pgdyno.host.files.tree import Tree, parsed
from pgdyno.host.msr import register_of

_LIMIT_BYTES = 4096  # a page, which is what the kernel gives at most for one value


def read_kernel_files(tree: Tree, patterns: Iterable[str]) -> dict[str, Fact[str]]:
    """Return the first line of every file that a pattern names, by path.

    Registers are named as ``host/msr.py`` says.

    ``*`` stands for any one name in a directory: ``/sys/block/*/queue/scheduler``. A path without it that
    leads nowhere is unknown; a pattern that matches nothing adds nothing.
    """
    found: dict[str, Fact[str]] = {}
    for pattern in patterns:
        for path in _matching(tree, pattern):
            fact = _value(tree, path)
            if fact.is_known or "*" not in pattern:
                found[path] = fact
    return found


def _value(tree: Tree, path: str) -> Fact[str]:
    register = register_of(path)
    if register is not None:
        return parsed(tree.register(register.device, register.number), hex)
    return parsed(tree.text(path, _LIMIT_BYTES), _first_line)


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _matching(tree: Tree, pattern: str) -> list[str]:
    """Return the paths that a pattern may stand for; whether the last name is there is not looked for."""
    found = [""]
    for part in pattern.strip("/").split("/"):
        if "*" in part:
            found = [f"{path}/{name}" for path in found for name in _names(tree, path, part)]
        else:
            found = [f"{path}/{part}" for path in found]
    return found


def _names(tree: Tree, path: str, pattern: str) -> list[str]:
    return fnmatch.filter(tree.names(path or "/").or_else(()), pattern)
