"""Changes the size of a pool of huge pages.

The kernel gives what it finds: a pool that comes out smaller than asked for is an error, and is undone like
every other. In between, the longest unused files leave the page cache and memory is compacted: scattered
pages can only be moved together where there is free memory to move them to. Whoever is killed while the
kernel looks for pages leaves what it had found by then.

Source: Linux, Documentation/admin-guide/mm/hugetlbpage.rst.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from dataclasses import dataclass

from pgdyno.apply.writers.kernel_file import KernelFileWriter
from pgdyno.base.errors import HugePagesError
from pgdyno.host.kernel_file import sysctl_path

_COMPACT = sysctl_path("vm.compact_memory")
_MEMORY = "/proc/meminfo"
_ATTEMPTS = 20  # two to six of a second or less on a machine with 23 GB; more while other programs work
_VAIN_ATTEMPTS = 3  # in a row: then there is no more to be found
_SPARE_BYTES = 1 << 30
"""Freed beside what is missing: without it, the last two per cent were not found (9,500 pages of 23 GB)."""
_TOTAL, _SURPLUS = "/nr_hugepages", "/surplus_hugepages"


@dataclass(frozen=True)
class HugePagePoolWriter(KernelFileWriter):
    """Reads, fills and restores pools; a key is ``nr_hugepages`` of a page size in /sys, or the sysctl."""

    kind: str = "huge_pages"

    def write(self, key: str, value: str) -> None:
        """Reserve ``value`` pages.

        Raises: HugePagesError if there is no room for all of them.
        """
        found: list[int] = []
        for _ in range(_ATTEMPTS):
            super().write(key, value)
            found.append(int(self.value(key)))
            missing_bytes = (int(value) - found[-1]) * self._page_bytes(key)
            if missing_bytes <= 0:
                return
            available_bytes = self._memory_bytes("MemAvailable")
            if missing_bytes > available_bytes or found[-1] in found[:-_VAIN_ATTEMPTS]:
                break
            _evict(min(missing_bytes + _SPARE_BYTES, available_bytes // 2))
            self._compact()
        raise HugePagesError(
            f"only {self.value(key)} of {value} huge pages could be reserved",
            detail="the memory that is free is scattered, or there is not enough of it",
            hint="reserve them right after the machine has started, or plan smaller shared_buffers",
        )

    def value_if_any(self, key: str) -> str | None:
        """Return the number of persistent pages.

        Pages that are released when their users end are not included.

        The sysctl does not count those anyway. Where somebody ends between two readings, they are made anew:
        what is given back right then would be taken for pages that stay.
        """
        total = super().value_if_any(key)
        if total is None or not (key.startswith("/sys/") and key.endswith(_TOTAL)):
            return total
        while True:
            surplus = self.value(key.removesuffix(_TOTAL) + _SURPLUS)
            before, total = total, self._total(key)
            if total == before:
                return str(int(total) - int(surplus))

    def _total(self, key: str) -> str:
        return super().value_if_any(key) or "0"

    def is_on_the_way(self, now: str, one: str, other: str) -> bool:
        """Whether ``now`` lies between the two sizes."""
        smaller, larger = sorted((int(one), int(other)))
        return smaller <= int(now) <= larger

    def _page_bytes(self, key: str) -> int:
        if key.startswith("/sys/"):
            directory = key.rpartition("/")[0]
            return int(directory.rpartition("-")[2].removesuffix("kB")) << 10
        return self._memory_bytes("Hugepagesize")

    def _compact(self) -> None:
        if self._locate(_COMPACT).exists():  # a kernel may be built without
            super().write(_COMPACT, "1")

    def _memory_bytes(self, field: str) -> int:
        lines = self._locate(_MEMORY).read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{field}:"))


def _evict(size_bytes: int) -> None:
    """Have the kernel drop the longest unused files from the page cache, by using memory for a moment.

    /proc/sys/vm/drop_caches would drop all of them, the owner's server's among them.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    with suppress(OSError):  # strict accounting of memory forbids it: then nothing is evicted
        mmap.mmap(-1, size_bytes, flags=flags).close()
