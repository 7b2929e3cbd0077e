"""Whole disks and their queues."""

from __future__ import annotations

import re

from pgdyno.base.facts import Fact
from pgdyno.host.files.kernel_text import chosen, flag, kilobytes, number
from pgdyno.host.files.tree import Tree, parsed
from pgdyno.host.host import BlockDevice

_DIRECTORY = "/sys/block"
_NO_DISKS = re.compile(r"^(loop|ram|zram|sr|fd)\d+$")  # images, memory and removable media hold no database
_SECTOR_BYTES = 512  # /sys/block/*/size counts these whatever the disk's own sector size is


def inspect_block_devices(tree: Tree) -> Fact[tuple[BlockDevice, ...]]:
    """Return every disk, device-mapper and RAID device, by name."""
    return parsed(
        tree.names(_DIRECTORY),
        lambda names: tuple(_device(tree, name) for name in names if not _NO_DISKS.match(name)),
    )


def _device(tree: Tree, name: str) -> BlockDevice:
    directory = f"{_DIRECTORY}/{name}"
    sectors = tree.read(f"{directory}/size", number)
    return BlockDevice(
        name=name,
        is_rotational=tree.read(f"{directory}/queue/rotational", flag),
        scheduler=tree.read(f"{directory}/queue/scheduler", chosen),
        read_ahead_bytes=tree.read(f"{directory}/queue/read_ahead_kb", kilobytes),
        size_bytes=parsed(sectors, lambda count: count * _SECTOR_BYTES),
    )
