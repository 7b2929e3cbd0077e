"""Source files that a build is given, wherever and whosever they are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol, TypeAlias


class Kind(Enum):
    """The kind of an entry of a tree; as bytes, a part of the tree's checksum."""

    DIRECTORY = b"directory"
    LINK = b"link"
    PROGRAM = b"program"
    FILE = b"file"


@dataclass(frozen=True)
class TreeFile:
    """An entry of a tree. ``chunks`` is its content, a link's target; it is read before the next entry.

    ``name`` is below the tree, ``changed_ns`` the time of its last change: make compares these.
    """

    name: str
    kind: Kind
    size_bytes: int
    changed_ns: int
    chunks: Iterator[bytes]


class SourceTree(Protocol):
    """An open tree of source files."""

    def files(self, skipped: Collection[str] = ()) -> Iterator[TreeFile]:
        """Yield all entries in a fixed order, without those of some names. Raises: OSError."""
        ...

    def names(self) -> Collection[str]:
        """Return the names of the entries at the top. Raises: OSError."""
        ...

    def has(self, name: str) -> bool:
        """Whether there is an entry of that name, which may have slashes. Raises: OSError."""
        ...

    def text(self, name: str) -> str:
        """Return a file at the top. Raises: OSError."""
        ...


OpenTree: TypeAlias = Callable[[Path], AbstractContextManager[SourceTree]]
"""Opens a tree. Raises: RefusedError, also for what is found in it while it is open."""
