"""How the processor's caches are divided, as the file system resctrl shows it.

The kernel has its directory wherever the processor can divide a cache, or measure what is in it; it is empty
until somebody mounts it.

Source: Linux, Documentation/filesystems/resctrl.rst; fs/resctrl/rdtgroup.c.
"""

from __future__ import annotations

import re

from pgdyno.base.facts import Fact
from pgdyno.host.cache_allocation import (
    MONITORING,
    NO_GROUPS,
    RESCTRL,
    SCHEMATA,
    CacheAllocation,
    ControlledCache,
    division_of,
)
from pgdyno.host.files.tree import Tree, parsed

_CACHE = re.compile(r"L[23](CODE|DATA)?")


def inspect_cache_allocation(tree: Tree) -> Fact[CacheAllocation]:
    """Return the division of the caches; unknown where kernel or processor cannot divide them."""
    return parsed(tree.names(RESCTRL), lambda names: _allocation(tree, names))


def _allocation(tree: Tree, names: tuple[str, ...]) -> CacheAllocation:
    if "info" not in names:
        return CacheAllocation(is_mounted=False)
    groups = tuple(name for name in names if name not in NO_GROUPS and _is_directory(tree, name))
    places = {"": RESCTRL, **{name: f"{RESCTRL}/{name}" for name in groups}}
    texts = {name: tree.text(place + SCHEMATA).or_none() for name, place in places.items()}
    divided = {name: division_of(text) for name, text in texts.items() if text is not None}
    return CacheAllocation(
        is_mounted=True,
        caches=_caches(tree),
        schemata={name: str(one) for name, one in divided.items() if one is not None},
        occupied=tuple(name for name in places if tree.text(f"{places[name]}/tasks").is_known),
        groups=(*groups, *(one for name in places for one in _monitoring(tree, name))),
    )


def _is_directory(tree: Tree, name: str) -> bool:
    return tree.names(f"{RESCTRL}/{name}").is_known


def _monitoring(tree: Tree, group: str) -> list[str]:
    """Return the groups that measure tasks of a group."""
    below = f"{group}/{MONITORING}".lstrip("/")
    return [f"{below}/{name}" for name in tree.names(f"{RESCTRL}/{below}").or_else(())]


def _caches(tree: Tree) -> dict[str, ControlledCache]:
    names = [name for name in tree.names(f"{RESCTRL}/info").or_else(()) if _CACHE.fullmatch(name)]
    found = ((name, _cache(tree, f"{RESCTRL}/info/{name}")) for name in names)
    return {name: cache for name, cache in found if cache is not None}


def _cache(tree: Tree, place: str) -> ControlledCache | None:
    """Return a cache; None where the kernel only measures it, or does not say all."""
    texts = [tree.text(f"{place}/{name}").or_none() for name in ("num_closids", "min_cbm_bits")]
    masks = [tree.text(f"{place}/{name}").or_none() for name in ("cbm_mask", "shareable_bits")]
    try:
        groups, least = (int(text or "") for text in texts)
        mask, shared = (int(text or "", 16) for text in masks)
    except ValueError:
        return None
    return ControlledCache(groups, mask, least, shared)
