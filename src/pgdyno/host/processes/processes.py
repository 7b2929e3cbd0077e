"""Processes according to /proc/PID/stat and /proc/PID/status.

Formats: proc_pid_stat(5), proc_pid_status(5).
"""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.files.tree import Tree, parsed

# USER_HZ, the unit of times in /proc, is 100 on every Linux architecture except Alpha.
TICKS_PER_S = 100
_PARENT_FIELD, _START_FIELD, _POLICY_FIELD = 4, 22, 41  # counted from 1, as in the manual page

# Linux, include/uapi/linux/sched.h.
_POLICIES = {
    "0": "SCHED_OTHER",
    "1": "SCHED_FIFO",
    "2": "SCHED_RR",
    "3": "SCHED_BATCH",
    "5": "SCHED_IDLE",
    "6": "SCHED_DEADLINE",
    "7": "SCHED_EXT",
}


@dataclass(frozen=True)
class Process:
    """A process according to one line of /proc/PID/stat."""

    pid: int
    parent_pid: int
    name: str
    start_ticks: int  # since boot


def process_ids(tree: Tree) -> Fact[tuple[int, ...]]:
    """Return the ids of the visible processes."""
    return parsed(tree.names("/proc"), lambda names: tuple(sorted(int(n) for n in names if n.isdecimal())))


def parse_stat(text: str) -> Process | Unknown:
    """Parse /proc/PID/stat; its second field, a name in parentheses, may contain any character."""
    pid, opening, rest = text.partition(" (")
    name, closing, _ = rest.rpartition(") ")
    fields = _third_field_on(text)
    try:
        return Process(
            pid=int(pid),
            parent_pid=int(fields[_PARENT_FIELD - 3]),
            name=name,
            start_ticks=int(fields[_START_FIELD - 3]),
        )
    except (ValueError, IndexError):
        return Unknown("not a process status" if opening and closing else "no name in parentheses")


def scheduling_policy(text: str) -> str | Unknown:
    """Return the kernel's name of the policy in /proc/PID/stat: SCHED_OTHER, SCHED_BATCH."""
    fields = _third_field_on(text)
    if len(fields) <= _POLICY_FIELD - 3:
        return Unknown("no scheduling policy found")
    number = fields[_POLICY_FIELD - 3]
    return _POLICIES.get(number, Unknown(f"unknown scheduling policy: {number}"))


def _third_field_on(text: str) -> list[str]:
    """Return the fields after the name, which may contain spaces and parentheses."""
    return text.rpartition(") ")[2].split()


def innermost_pid(status: dict[str, str]) -> int | Unknown:
    """Return a process's id in its own PID namespace; in a container it differs from the host's.

    NSpid lists the ids from the reader's PID namespace down to the process's own; since Linux 4.1.
    """
    numbers = status.get("NSpid", status.get("Pid", "")).split()
    return int(numbers[-1]) if numbers and numbers[-1].isdecimal() else Unknown("no process id")
