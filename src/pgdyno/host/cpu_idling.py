"""Whether idle CPUs were kept awake during a measurement."""

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
"""Time that a guest polls before it halts: the kernel's default (drivers/cpuidle/governors/haltpoll.c)."""

POLLING = {GROW_START_NS: str(LONGEST_POLL_NS), MAY_SHRINK: "N", POLL_NS: str(LONGEST_POLL_NS)}
"""Values with which idle CPUs poll from the first idle period on, and still poll after a long one.

The poll time is written last and restored first: this resets the value that the kernel has grown.
"""

HALT_POLLING = "halt_polling"
"""Name of the lever that makes idle CPUs poll."""

LATENCY = "/sys/devices/system/cpu/*/power/pm_qos_resume_latency_us"
"""Pattern of each CPU's file with the longest wake-up time allowed."""

AS_BOOTED_GIVEN = "--as-booted was given"
"""Reason for idling as booted when the user chose it."""

_IDLING = (
    f"{HALTPOLL}*",
    "/sys/devices/system/cpu/*/cpuidle/*",
    LATENCY,
    "/sys/devices/system/cpu/cpuidle/*",
)


class AwakeMeans(StrEnum):
    """Ways to keep idle CPUs awake."""

    HALTPOLL = "haltpoll"  # the guest's kernel polls before it halts
    SPINNERS = "spinners"  # a lowest-priority process on each CPU


@dataclass(frozen=True)
class Awake:
    """How CPUs idled. ``means`` None: as booted, for ``reason``.

    ``booted_us`` and ``held_us`` are the wake-up times as booted and while CPUs were kept awake; None if not
    measured. ``boot_line`` has the parameters of the kernel's command line that concern idling.
    """

    means: AwakeMeans | None
    reason: str = ""
    booted_us: float | None = None
    held_us: float | None = None
    boot_line: tuple[str, ...] = ()


def idling_files(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the kernel files among ``paths`` that control how CPUs idle."""
    return tuple(path for path in paths if any(fnmatchcase(path, pattern) for pattern in _IDLING))
