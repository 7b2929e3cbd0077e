"""Read the inspected host's files.

No other code of the package accesses them.

Calls and sources of facts have paths as on the inspected host (``/proc/meminfo``). The root is relocatable:
in tests, a host is a directory of files that the test wrote. A missing, unreadable or empty file gives an
unknown fact with the reason, never an exception.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

from pgdyno.base.facts import Fact, Unknown, unknown

T = TypeVar("T")
S = TypeVar("S")
K = TypeVar("K")

NO_SUCH_FILE = Unknown("no such file")
EMPTY = Unknown("empty")
_LIMIT_BYTES = 4 << 20  # arbitrary, far above every file read here; /proc/cpuinfo of 512 CPUs has 1 MB
_CHUNK_BYTES = 64 << 10
_REGISTER_BYTES = 8


@dataclass(frozen=True)
class Tree:
    """The files of one host below ``root``."""

    root: Path = Path("/")

    def text(self, path: str, limit_bytes: int = _LIMIT_BYTES) -> Fact[str]:
        """Return at most ``limit_bytes`` of a file's text, without surrounding white space."""
        try:
            text = _read(self.locate(path), limit_bytes).decode(errors="replace").strip()
        except OSError as error:
            return Fact(_reason(error), path)
        return Fact(text or EMPTY, path)

    def read(
        self, path: str, parse: Callable[[str], T | Unknown], limit_bytes: int = _LIMIT_BYTES
    ) -> Fact[T]:
        """Return the value that ``parse`` extracts from a file's text."""
        return parsed(self.text(path, limit_bytes), parse)

    def scan(self, path: str, parse: Callable[[BinaryIO], T | Unknown]) -> Fact[T]:
        """Return the value that ``parse`` extracts from an open file.

        ``parse`` reads only as much of the file as it needs.
        """
        try:
            with open(self.locate(path), "rb") as file:  # noqa: PTH123 — as in _read
                return Fact(parse(file), path)
        except OSError as error:
            return Fact(_reason(error), path)

    def scan_plain(self, path: str, parse: Callable[[BinaryIO], T | Unknown]) -> Fact[T]:
        """Return the value in a regular file, like ``scan``; links are followed.

        Nothing else is opened: the process that chose the name may have put a FIFO there, and reading would
        block.
        """
        try:
            look = os.open(self.locate(path), os.O_PATH | os.O_CLOEXEC)
        except OSError as error:
            return Fact(_reason(error), path)
        try:
            if not stat.S_ISREG(os.fstat(look).st_mode):
                return unknown("not a regular file", path)
            with open(f"/proc/self/fd/{look}", "rb") as file:  # noqa: PTH123 — as in _read
                return Fact(parse(file), path)
        except OSError as error:
            return Fact(_reason(error), path)
        finally:
            os.close(look)

    def register(self, path: str, number: int) -> Fact[int]:
        """Return a processor's register: eight bytes at the offset equal to its number, see msr(4)."""
        try:
            with open(self.locate(path), "rb", buffering=0) as file:  # noqa: PTH123 — as in _read
                content = os.pread(file.fileno(), _REGISTER_BYTES, number)
        except OSError as error:
            return Fact(_reason(error), path)
        is_whole = len(content) == _REGISTER_BYTES
        return Fact(int.from_bytes(content, "little") if is_whole else EMPTY, path)

    def names(self, path: str) -> Fact[tuple[str, ...]]:
        """Return the names in a directory, sorted."""
        try:
            return Fact(tuple(sorted(os.listdir(self.locate(path)))), path)  # noqa: PTH208 — names, not paths
        except OSError as error:
            return Fact(_reason(error), path)

    def link(self, path: str) -> Fact[str]:
        """Return the target of a symbolic link, without following it."""
        try:
            return Fact(os.readlink(self.locate(path)), path)  # noqa: PTH115 — "pid:[4026531836]" is no path
        except OSError as error:
            return Fact(_reason(error), path)

    def available_bytes(self, directory: str) -> Fact[int]:
        """Return the space for unprivileged users on the file system of ``directory``."""
        try:
            status = os.statvfs(self.locate(directory))
        except OSError as error:
            return Fact(_reason(error), f"statvfs {directory}")
        return Fact(status.f_bavail * status.f_frsize, f"statvfs {directory}")

    def is_same_file(self, path: str, other: str) -> Fact[bool]:
        """Whether two paths lead to the same file or directory; links are followed."""
        source = f"{path}, {other}"
        try:
            return Fact(os.path.samefile(self.locate(path), self.locate(other)), source)  # noqa: PTH121
        except OSError as error:
            return Fact(_reason(error), source)

    def locate(self, path: str) -> str:
        """Return the local path of a path on the inspected host. Every access uses this method."""
        return f"{self.root}/{path.lstrip('/')}"


def _read(path: str, limit_bytes: int) -> bytes:
    """Read a file in chunks.

    For a sysctl the kernel allocates the requested size, and refuses megabytes (ENOMEM).
    """
    content = b""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 — hundreds of files, and Path is slower
        while len(content) < limit_bytes:
            chunk = file.read(min(_CHUNK_BYTES, limit_bytes - len(content)))
            if not chunk:
                break
            content += chunk
    return content


def parsed(fact: Fact[S], parse: Callable[[S], T | Unknown]) -> Fact[T]:
    """Apply ``parse`` to a known value; return an unknown one unchanged."""
    if isinstance(fact.value, Unknown):
        return Fact(fact.value, fact.source)
    return Fact(parse(fact.value), fact.source)


def first_known(*facts: Fact[T]) -> Fact[T]:
    """Return the first known fact; if none is known, the first one, which has the usual source."""
    return next((fact for fact in facts if fact.is_known), facts[0])


def together(facts: dict[K, Fact[T]], source: str) -> Fact[dict[K, T]]:
    """Join facts that make sense only together: unknown if any of them is."""
    values: dict[K, T] = {}
    for name, fact in facts.items():
        if isinstance(fact.value, Unknown):
            return unknown(f"{fact.value.reason}: {fact.source}", source)
        values[name] = fact.value
    return Fact(values, source)


def _reason(error: OSError) -> Unknown:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return NO_SUCH_FILE
    return Unknown(os.strerror(error.errno or 0).lower())
