"""Proves that a connected server runs on the inspected host.

A host's memory and CPUs are irrelevant for a server elsewhere, and a connection to localhost may lead to a
tunnel or container. Proof: this host's /proc shows the backend's process id, name and start time, and the
working directory of its parent, which a postmaster never changes, is the server's data directory. A process
in a container is found by its process id inside the container.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.host.files.kernel_files import key_values
from pgdyno.host.files.tree import Tree, parsed
from pgdyno.host.processes.processes import TICKS_PER_S, Process, innermost_pid, parse_stat, process_ids

# PostgreSQL records a backend's start shortly after the fork; /proc/stat has the boot time in whole seconds.
START_TOLERANCE_S = 2.0


@dataclass(frozen=True)
class Backend:
    """Server-side information about the backend of pgdyno's connection."""

    pid: int  # pg_backend_pid()
    start_s: float  # pg_stat_activity.backend_start, seconds since 1970
    data_directory: str


def find_postmaster(
    root: Path, *, backend_pid: int, backend_start: float | None, data_directory: str | None
) -> Fact[int]:
    """Return the postmaster's process id on this host, or the reason why it is not proven to run here.

    Units: ``backend_start`` in seconds since 1970. None means that the role may not see the value.
    """
    if backend_start is None:
        return unknown("the server does not show when the backend started", "pg_stat_activity")
    if data_directory is None:
        return unknown("the server does not show its data directory to this role", "data_directory")
    return locate_postmaster(Tree(root), Backend(backend_pid, backend_start, data_directory))


def locate_postmaster(tree: Tree, backend: Backend) -> Fact[int]:
    """Return the postmaster of ``backend`` in this tree's /proc."""
    failures: list[Fact[int]] = []
    for pid in _candidates(tree, backend.pid):
        found = _prove(tree, pid, backend)
        if found.is_known:
            return found
        failures.append(found)
    if failures:
        reasons = [fact.value.reason for fact in failures if isinstance(fact.value, Unknown)]
        return unknown("; ".join(reasons), failures[0].source)
    return unknown(f"no process here has the backend's process id {backend.pid}", "/proc/*/status")


def boot_time_s(stat: str) -> float | Unknown:
    """Return the boot time from /proc/stat, in seconds since 1970."""
    for line in stat.splitlines():
        key, _, value = line.partition(" ")
        if key == "btime" and value.isdecimal():
            return float(value)
    return Unknown("no btime")


def _candidates(tree: Tree, backend_pid: int) -> Iterator[int]:
    """Yield the processes with the innermost id ``backend_pid``; the one outside containers first."""
    others = (pid for pid in process_ids(tree).or_else(()) if pid != backend_pid)
    for pid in (backend_pid, *others):
        status = tree.read(f"/proc/{pid}/status", key_values)
        if parsed(status, innermost_pid).value == backend_pid:
            yield pid


def _prove(tree: Tree, pid: int, backend: Backend) -> Fact[int]:
    process = _postgres_process(tree, pid)
    booted = tree.read("/proc/stat", boot_time_s)
    if isinstance(process.value, Unknown):
        return Fact(process.value, process.source)
    if isinstance(booted.value, Unknown):
        return Fact(booted.value, booted.source)
    difference_s = booted.value + process.value.start_ticks / TICKS_PER_S - backend.start_s
    if abs(difference_s) > START_TOLERANCE_S:
        when = "after" if difference_s > 0 else "before"
        return unknown(f"process {pid} started {abs(difference_s):.0f} s {when} the backend", process.source)
    postmaster = _postgres_process(tree, process.value.parent_pid)
    if isinstance(postmaster.value, Unknown):
        return Fact(postmaster.value, postmaster.source)
    place = _proof_of_directory(tree, postmaster.value.pid, backend.data_directory)
    if isinstance(place.value, Unknown):
        return Fact(place.value, place.source)
    return Fact(postmaster.value.pid, f"/proc/{pid}/status, {process.source}, {place.source}")


def _postgres_process(tree: Tree, pid: int) -> Fact[Process]:
    """Return a process if its name is PostgreSQL's: postgres, postmaster, edb-postgres."""
    process = tree.read(f"/proc/{pid}/stat", parse_stat)
    return parsed(
        process,
        lambda known: (
            known
            if "postgres" in known.name or known.name == "postmaster"
            else Unknown(f'process {pid} is "{known.name}", not PostgreSQL')
        ),
    )


def _proof_of_directory(tree: Tree, postmaster_pid: int, data_directory: str) -> Fact[bool]:
    """Return True if the postmaster runs in the data directory, else the reason why this is not proven.

    If its working directory is not readable (another user's process), the argument of -D is used.
    """
    directory = tree.link(f"/proc/{postmaster_pid}/cwd")
    if isinstance(directory.value, Unknown):
        arguments = tree.text(f"/proc/{postmaster_pid}/cmdline")
        if data_directory_argument(arguments.or_else("")) == posixpath.normpath(data_directory):
            return Fact(value=True, source=arguments.source)
        return Fact(directory.value, directory.source)
    if directory.value == posixpath.normpath(data_directory):
        return Fact(value=True, source=directory.source)
    in_its_root = f"/proc/{postmaster_pid}/root{data_directory}"
    if tree.is_same_file(directory.source, in_its_root).or_none():
        return Fact(value=True, source=directory.source)
    return unknown(
        f"postmaster {postmaster_pid} has the data directory {directory.value}, not {data_directory}",
        directory.source,
    )


def data_directory_argument(cmdline: str) -> str | None:
    """Return the data directory in a postmaster's command line: ``-D DIRECTORY`` or ``-DDIRECTORY``."""
    arguments = cmdline.split("\0")
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        directory = following if argument == "-D" else argument.removeprefix("-D")
        if argument.startswith("-D") and directory:
            return posixpath.normpath(directory)
    return None
