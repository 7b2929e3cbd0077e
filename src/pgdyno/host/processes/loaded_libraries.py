"""Libraries in a running program, and loader variables in its environment.

A library loaded before the C library can replace functions such as ``fsync`` (ld.so(8), LD_PRELOAD); the
program may then report data as written that is not. The library's symbols reveal this, whatever its name and
however it was loaded.

With the required capabilities, the mapped file itself can be opened (/proc/PID/map_files). Otherwise it is
looked up by name. The process's user may have put a different file there, so its device and inode must be
those of the mapping.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from pgdyno.base.facts import Unknown
from pgdyno.host.files.tree import EMPTY, Tree
from pgdyno.host.processes.elf import defined_functions

_C_LIBRARY = re.compile(
    r"/(usr/)?lib(32|64)?(/[\w.-]+-linux-[\w.-]+)?"
    r"/(libc\.so\.6|libc-2\.\d+\.so|libpthread[.-][\w.]+|librt[.-][\w.]+|ld-linux[\w.-]*|ld-2\.\d+\.so"
    r"|(ld-musl|libc\.musl)-[\w.]+|libc\.so)( \(deleted\))?"
)
"""The C library's files in the distributions' directories; libpthread had fsync until glibc 2.34.

A deleted one means that the server was not restarted after an upgrade of the library.
"""

_LOADER_VARIABLE = re.compile(r"LD_\w+")
_OF_FILES = ("LD_PRELOAD", "LD_AUDIT")
_CHECKSUM_LENGTH = 12  # characters: enough to distinguish values


@dataclass(frozen=True)
class MappedProgram:
    """A file with code in a line of /proc/PID/maps, identified by device and inode rather than by path."""

    path: str
    addresses: str
    device: str
    inode: str

    @property
    def name(self) -> str:
        """File name without its directory."""
        return self.path.rpartition("/")[2]

    @property
    def place(self) -> str:
        """Name of the mapping in /proc/PID/map_files, with numbers without leading zeros."""
        return "-".join(f"{int(address, 16):x}" for address in self.addresses.split("-"))

    def is_in(self, file: os.stat_result) -> bool:
        """Whether ``file`` is the mapped one; on Btrfs and overlayfs the numbers may differ even if it is."""
        device = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}"
        return (device, str(file.st_ino)) == (self.device, self.inode)


@dataclass(frozen=True)
class LoadedLibraries:
    """Loader variables and replaced functions of one process.

    ``loader`` has the loader's variables with file names, or a checksum of the value, which may be private.
    ``replaced`` has the requested functions that libraries define, by the library's file name. ``unknown``
    lists unreadable files with the reason.
    """

    loader: dict[str, str] = field(default_factory=dict)
    replaced: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()


def inspect_libraries(tree: Tree, pid: int, functions: Collection[str]) -> LoadedLibraries:
    """Return a process's loader variables, and the libraries defining ``functions`` except the C library."""
    environment, maps = tree.text(f"/proc/{pid}/environ"), tree.text(f"/proc/{pid}/maps")
    unknown = [
        f"{fact.source}: {fact.value.reason}"
        for fact in (environment, maps)
        if isinstance(fact.value, Unknown) and fact.value != EMPTY
    ]
    replaced: dict[str, tuple[str, ...]] = {}
    for mapped in mapped_programs(maps.or_else("")):
        if _C_LIBRARY.fullmatch(mapped.path):
            continue
        found = _defined_in(tree, pid, mapped, functions)
        if isinstance(found, Unknown):
            unknown.append(f"{mapped.name}: {found.reason}")
        elif found:
            replaced[mapped.name] = tuple(sorted({*found, *replaced.get(mapped.name, ())}))
    return LoadedLibraries(loader_variables(environment.or_else("")), replaced, tuple(unknown))


def mapped_programs(maps: str) -> tuple[MappedProgram, ...]:
    """Return the files with code in /proc/PID/maps, each once; format: proc_pid_maps(5)."""
    files: dict[tuple[str, str, str], MappedProgram] = {}
    for one in _code_files(maps):
        files.setdefault((one.path, one.device, one.inode), one)
    return tuple(files.values())


def loader_variables(environment: str) -> dict[str, str]:
    """Return the dynamic loader's variables in /proc/PID/environ, without directories."""
    pairs = (entry.partition("=") for entry in environment.split("\0"))
    return {name: _shown(name, value) for name, _, value in pairs if _LOADER_VARIABLE.fullmatch(name)}


def _defined_in(
    tree: Tree, pid: int, mapped: MappedProgram, functions: Collection[str]
) -> frozenset[str] | Unknown:
    def in_file_of_that_name(file: BinaryIO) -> frozenset[str] | Unknown:
        found = defined_functions(file, functions)
        if not found and not mapped.is_in(os.fstat(file.fileno())):  # functions found are always reported
            return Unknown("not proven to be the mapped file")
        return found

    exact = tree.scan_plain(
        f"/proc/{pid}/map_files/{mapped.place}", lambda file: defined_functions(file, functions)
    ).value
    if not isinstance(exact, Unknown):
        return exact
    return tree.scan_plain(f"/proc/{pid}/root{mapped.path}", in_file_of_that_name).value


def _code_files(maps: str) -> Iterator[MappedProgram]:
    for line in maps.splitlines():
        parts = line.split(maxsplit=5)
        if len(parts) == 6 and "x" in parts[1] and parts[5].startswith("/"):
            yield MappedProgram(parts[5], parts[0], parts[3], parts[4])


def _shown(name: str, value: str) -> str:
    if name in _OF_FILES:
        return " ".join(part.rpartition("/")[2] for part in re.split(r"[ :]+", value) if part)
    return "sha256:" + hashlib.sha256(value.encode(errors="replace")).hexdigest()[:_CHECKSUM_LENGTH]
