"""Whether idle CPUs were kept awake while something was measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

HALTPOLL = "/sys/module/haltpoll/parameters/"
POLL_NS = f"{HALTPOLL}guest_halt_poll_ns"
MAY_SHRINK = f"{HALTPOLL}guest_halt_poll_allow_shrink"
GROW_START_NS = f"{HALTPOLL}guest_halt_poll_grow_start"
LONGEST_POLL_NS = 200_000
"""How long a guest polls before it halts: the kernel's own default (drivers/cpuidle/governors/haltpoll.c)."""

POLLING = {GROW_START_NS: str(LONGEST_POLL_NS), MAY_SHRINK: "N", POLL_NS: str(LONGEST_POLL_NS)}
"""Values with which idle CPUs poll from the first idle period on, and go on after a long one.

The length comes last, and is the first to be restored: then the kernel unlearns what it has grown.
"""

HALT_POLLING = "halt_polling"
"""The lever that lets idle CPUs poll."""

LATENCY = "/sys/devices/system/cpu/*/power/pm_qos_resume_latency_us"
"""How long a CPU may take to wake up: a file of each CPU's, as a pattern."""

AS_ASKED = "--as-booted was given"
"""The reason of those who want it so."""

_IDLING = (
    f"{HALTPOLL}*",
    "/sys/devices/system/cpu/*/cpuidle/*",
    LATENCY,
    "/sys/devices/system/cpu/cpuidle/*",
)


class AwakeMeans(StrEnum):
    """Ways to keep idle CPUs awake."""

    HALTPOLL = "haltpoll"  # the guest's kernel polls before it halts
    SPINNERS = "spinners"  # a process of the lowest priority on each CPU


@dataclass(frozen=True)
class Awake:
    """How CPUs idled. ``means`` None: as booted, for ``reason``.

    ``booted_us`` and ``held_us`` are what a wake-up took, as booted and while they were kept awake; None
    where it was not measured. ``boot_line`` are the words of the kernel's command line that concern idling.
    """

    means: AwakeMeans | None
    reason: str = ""
    booted_us: float | None = None
    held_us: float | None = None
    boot_line: tuple[str, ...] = ()


def idling_files(paths: Iterable[str]) -> tuple[str, ...]:
    """Return those of the kernel's files that decide how CPUs idle."""
    return tuple(path for path in paths if any(fnmatchcase(path, pattern) for pattern in _IDLING))
