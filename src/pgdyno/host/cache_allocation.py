"""How a processor's caches are divided between groups of tasks, according to the kernel. Pure.

The kernel's resctrl file system has a directory for each group. Its top directory is the default group, which
holds all tasks in no other group. A mask has one bit per part of a cache; on most processors a part is a way.
A task fills only the parts of its group, but hits in all of them.

Source: Linux, Documentation/filesystems/resctrl.rst.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

RESCTRL = "/sys/fs/resctrl"
GROUP = f"{RESCTRL}/pgdyno"
"""The group that pgdyno makes. It removes no other."""
SCHEMATA = "/schemata"
OF_GROUP, OF_OTHERS = GROUP + SCHEMATA, RESCTRL + SCHEMATA
"""Keys of changes: the cache parts of pgdyno's group and of the default group."""

WITH_CDP, WITHOUT_CDP = "cdp", "without cdp"
"""Values of the change that mounts the file system: with or without code and data prioritization."""
LAST_LEVEL = frozenset({"L3", "L3CODE", "L3DATA"})
"""The caches that pgdyno divides; it leaves the others unchanged."""
NO_GROUPS = frozenset({"info", "mon_groups", "mon_data"})
"""Directories that are not groups."""
MONITORING = "mon_groups"
"""A group's directory of monitoring groups, which measure and divide nothing."""
TECHNOLOGIES = ("cat_l3", "cdp_l3", "cat_l2", "cdp_l2")
"""Flags of x86 processors in /proc/cpuinfo. Arm's MPAM has no flag there."""

_OF = " for "
_CACHES = re.compile(r"L[23](CODE|DATA)?")


@dataclass(frozen=True)
class ControlledCache:
    """A cache that can be divided: L3, or L3CODE and L3DATA with code and data prioritization."""

    groups_at_most: int  # num_closids
    mask: int  # cbm_mask: all parts
    least_parts: int  # min_cbm_bits: the least number of contiguous parts of a group
    shared_parts: int  # shareable_bits: parts that devices fill as well

    @property
    def parts(self) -> int:
        """Number of parts."""
        return self.mask.bit_count()

    def low_end(self, count: int) -> int:
        """Return the mask of the lowest ``count`` parts."""
        first = self.mask & -self.mask
        return (first << count) - first

    def high_end(self, count: int) -> int:
        """Return the mask of the highest ``count`` parts."""
        return self.mask & ~((1 << (self.mask.bit_length() - count)) - 1)

    def end_without_devices(self, count: int) -> int | None:
        """Return ``count`` parts at one end that no device fills; None if neither end has them.

        Parts at an end leave the others contiguous too.
        """
        is_room = count + self.least_parts <= self.parts
        ends = (self.low_end(count), self.high_end(count))
        return next((end for end in ends if is_room and not end & self.shared_parts), None)


@dataclass(frozen=True)
class CacheAllocation:
    """The kernel's division of the caches. While resctrl is not mounted, only ``is_mounted`` is set.

    ``groups`` are all groups that were made; monitoring groups appear as "mon_groups/name". ``schemata`` has
    the division by group, in pgdyno's notation: "" is the default group; a group being set up for
    pseudo-locking has no entry. ``occupied`` are the groups with tasks.
    """

    is_mounted: bool
    caches: Mapping[str, ControlledCache] = field(default_factory=dict)
    schemata: Mapping[str, str] = field(default_factory=dict)
    occupied: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Division:
    """A group's parts of caches: cache → cache id → mask.

    The group holds the processes of the server on ``data_directory``; None: not stated.
    """

    masks: Mapping[str, Mapping[int, int]]
    data_directory: str | None = None

    def __str__(self) -> str:
        """Return the one-line notation in plans, receipts and reports."""
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
    """Parse pgdyno's notation or a schemata file, without bandwidths; None if it is neither."""
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
    """Whether the caches in ``wanted`` are divided accordingly; the group's processes are not compared."""
    first, second = division_of(wanted), division_of(effective)
    if first is None or second is None:
        return wanted == effective
    return all(second.masks.get(cache) == masks for cache, masks in first.masks.items())


def is_same_division(one: str, other: str) -> bool:
    """Whether two texts have a cache in common, and divide all common caches alike."""
    first, second = division_of(one), division_of(other)
    if first is None or second is None:
        return one == other
    common = first.masks.keys() & second.masks.keys()
    return bool(common) and all(first.masks[cache] == second.masks[cache] for cache in common)
