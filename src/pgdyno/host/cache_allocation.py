"""How a processor's caches are divided between groups of tasks, as the kernel shows it. Pure.

The kernel's file system resctrl has a directory for each group; its top directory is the group of all tasks
that are in no other. A mask has a bit for each part of a cache, which is a way of it on most processors: a
task fills only the parts of its group, and finds what it looks for in all of them.

Source: Linux, Documentation/filesystems/resctrl.rst.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

RESCTRL = "/sys/fs/resctrl"
GROUP = f"{RESCTRL}/pgdyno"
"""The group that pgdyno makes, and the only one that it removes."""
SCHEMATA = "/schemata"
OF_GROUP, OF_OTHERS = GROUP + SCHEMATA, RESCTRL + SCHEMATA
"""Keys of changes: the parts of the caches that our group has, and those of all tasks in no group."""

WITH_CDP, WITHOUT_CDP = "cdp", "without cdp"
"""Values of the change that mounts the file system: whether code and data are told apart."""
LAST_LEVEL = frozenset({"L3", "L3CODE", "L3DATA"})
"""The caches that pgdyno divides; the others are left as they are."""
NO_GROUPS = frozenset({"info", "mon_groups", "mon_data"})
"""Directories beside those of groups."""
MONITORING = "mon_groups"
"""A directory's directory of groups that measure, and divide nothing."""
TECHNOLOGIES = ("cat_l3", "cdp_l3", "cat_l2", "cdp_l2")
"""Features of x86 processors, as /proc/cpuinfo names them. Arm's MPAM has none there."""

_OF = " for "
_CACHES = re.compile(r"L[23](CODE|DATA)?")


@dataclass(frozen=True)
class ControlledCache:
    """A cache that can be divided: L3, or L3CODE and L3DATA where code and data are told apart."""

    groups_at_most: int  # num_closids
    mask: int  # all of its parts
    least_parts: int  # how many neighbouring parts a group has at least
    shared_parts: int  # those that devices fill as well

    @property
    def parts(self) -> int:
        """The number of its parts."""
        return self.mask.bit_count()

    def low_end(self, count: int) -> int:
        """Return its first parts."""
        first = self.mask & -self.mask
        return (first << count) - first

    def high_end(self, count: int) -> int:
        """Return its last parts."""
        return self.mask & ~((1 << (self.mask.bit_length() - count)) - 1)

    def end_without_devices(self, count: int) -> int | None:
        """Return parts at one end that no device fills, so that the others are neighbours too; None: none."""
        is_room = count + self.least_parts <= self.parts
        ends = (self.low_end(count), self.high_end(count))
        return next((end for end in ends if is_room and not end & self.shared_parts), None)


@dataclass(frozen=True)
class CacheAllocation:
    """The kernel's division; nothing but ``is_mounted`` while the file system is not mounted.

    ``groups`` are all that were made, those that only measure as "mon_groups/name". ``schemata`` has the
    division by group, in our notation: "" is the group of all tasks in no other; a group that is set up for
    pseudo-locking has none. ``occupied`` are the groups that have tasks.
    """

    is_mounted: bool
    caches: Mapping[str, ControlledCache] = field(default_factory=dict)
    schemata: Mapping[str, str] = field(default_factory=dict)
    occupied: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Division:
    """Parts of caches for a group: cache → number of the cache → mask; and whose processes are in it."""

    masks: Mapping[str, Mapping[int, int]]
    data_directory: str | None = None

    def __str__(self) -> str:
        """Return the notation that plans, receipts and people see, on one line."""
        parts = " ".join(self.lines)
        return parts if self.data_directory is None else f"{parts}{_OF}{self.data_directory}"

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines of a schemata file."""
        return tuple(
            f"{cache}:{';'.join(f'{number}={mask:x}' for number, mask in sorted(masks.items()))}"
            for cache, masks in sorted(self.masks.items())
        )


def division_of(text: str) -> Division | None:
    """Read our notation, or a schemata file, of which bandwidths are left out; None if it is neither."""
    parts, _, directory = text.partition(_OF)
    masks: dict[str, dict[int, int]] = {}
    for line in re.sub(r"([:;=])\s+", r"\1", parts).split():
        cache, _, values = line.partition(":")
        if _CACHES.fullmatch(cache) is None:
            continue
        try:
            pairs = [one.partition("=") for one in values.strip(";").split(";")]
            masks[cache] = {int(number): int(mask, 16) for number, _, mask in pairs}
        except ValueError:
            return None
    return Division(masks, directory or None) if masks else None


def is_divided_so(wanted: str, effective: str) -> bool:
    """Whether the caches that ``wanted`` names are divided so; the processes in the group may be others."""
    first, second = division_of(wanted), division_of(effective)
    if first is None or second is None:
        return wanted == effective
    return all(second.masks.get(cache) == masks for cache, masks in first.masks.items())


def is_same_division(one: str, other: str) -> bool:
    """Whether two texts divide the caches that both name alike, and name one in common."""
    first, second = division_of(one), division_of(other)
    if first is None or second is None:
        return one == other
    common = first.masks.keys() & second.masks.keys()
    return bool(common) and all(first.masks[cache] == second.masks[cache] for cache in common)
