"""The caches of the first processor, with their geometry."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.host.cache import Cache
from pgdyno.host.files.kernel_text import number, size_bytes
from pgdyno.host.files.tree import Tree

_DIRECTORY = "/sys/devices/system/cpu/cpu0/cache"


def read_caches(tree: Tree) -> tuple[Cache, ...]:
    """Return those whose geometry is told; a virtual machine may show none."""
    return tuple(_caches(tree))


def _caches(tree: Tree) -> Iterator[Cache]:
    for name in tree.names(_DIRECTORY).or_else(()):
        path = f"{_DIRECTORY}/{name}"
        size = tree.read(f"{path}/size", size_bytes).or_none()
        level, ways, line = (
            tree.read(f"{path}/{file}", number).or_none()
            for file in ("level", "ways_of_associativity", "coherency_line_size")
        )
        if name.startswith("index") and size and level and ways is not None and line:
            yield Cache(level, tree.text(f"{path}/type").or_else(""), size, ways or size // line, line)
