"""The effective flags of a build, read from its log.

configure and makefiles drop, replace and add flags; only the executed command lines show the result.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

_OBJECT = "-c"
_WITH_VALUE = frozenset({"-o", "-I", "-D", "-U", "-L", "-l", "-MF", "-MT", "-MQ", "-include", "-x"})
_OF_ONE_FILE = ("-I", "-L", "-l", "-D", "-U", "-M", "-o", "-c", "-S", "-E")
"""Options that name files, directories or macros: they differ per file and do not affect code generation."""
_HARDENING = "-D_FORTIFY_SOURCE"  # the only macro that changes the code of every file


@dataclass(frozen=True)
class UsedFlags:
    """Flags of a build.

    ``common``: flags of every object file, in order; ``some``: other flags, each with its number of files.
    """

    objects: int
    common: tuple[str, ...]
    some: tuple[tuple[str, int], ...]
    linking: tuple[str, ...]  # of the server's program


def used_flags(lines: Iterable[str], compiler: str) -> UsedFlags:
    """Return the flags in the output of make."""
    compiled: list[tuple[str, ...]] = []
    linking: tuple[str, ...] = ()
    for words in _commands(lines, compiler):
        if _OBJECT in words:
            compiled.append(tuple(_flags(words)))
        elif _target(words) == "postgres":
            linking = tuple(_flags(words))
    counts = Counter(flag for flags in compiled for flag in dict.fromkeys(flags))
    common = tuple(flag for flag, count in counts.items() if count == len(compiled))
    some = tuple((flag, count) for flag, count in counts.items() if count < len(compiled))
    return UsedFlags(len(compiled), common, some, linking)


def _commands(lines: Iterable[str], compiler: str) -> Iterator[list[str]]:
    """Yield every command line that runs the compiler, split into words."""
    for line in lines:
        if not line.startswith(f"{compiler} "):
            continue
        try:
            yield shlex.split(line)
        except ValueError:  # an incomplete line of a killed build
            continue


def _flags(words: list[str]) -> Iterator[str]:
    """Yield the options for code generation, excluding file names and actions."""
    skipped = False
    for word in words[1:]:
        if skipped:
            skipped = False
        elif word in _WITH_VALUE:
            skipped = True
        elif word.startswith(_HARDENING) or (word.startswith("-") and not word.startswith(_OF_ONE_FILE)):
            yield word


def _target(words: list[str]) -> str:
    """Return the base name of a command's output file; empty without ``-o``."""
    if "-o" not in words[:-1]:
        return ""
    return PurePosixPath(words[words.index("-o") + 1]).name
