"""Change the size of a pool of huge pages.

The kernel allocates as many pages as it can: a pool smaller than requested is an error, and is undone like
any other. Between attempts, the least recently used files are evicted from the page cache and memory is
compacted: fragmented memory can only be compacted into free memory. A process killed during the allocation
leaves the pages allocated by then.

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
_ATTEMPTS = 20  # needed: two to six of at most a second on an idle machine with 23 GB; more on a busy one
_VAIN_ATTEMPTS = 3  # consecutive attempts without progress, after which to give up
_SPARE_BYTES = 1 << 30
"""Freed beyond the missing bytes: without it, the last two per cent of 9,500 pages (of 23 GB) failed."""
_TOTAL, _SURPLUS = "/nr_hugepages", "/surplus_hugepages"


@dataclass(frozen=True)
class HugePagePoolWriter(KernelFileWriter):
    """Reads, sets and restores pools; a key is ``nr_hugepages`` of a page size in /sys, or the sysctl."""

    kind: str = "huge_pages"

    def write(self, key: str, value: str) -> None:
        """Reserve ``value`` pages.

        Raises: HugePagesError if they cannot all be reserved.
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
            detail="free memory is fragmented or insufficient",
            hint="reserve them right after boot, or plan smaller shared_buffers",
        )

    def value_if_any(self, key: str) -> str | None:
        """Return the number of persistent pages, without surplus pages, which are freed after use.

        The sysctl does not count surplus pages anyway. In /sys both files are read again if the total changed
        in between, because surplus pages freed at that moment would be counted as persistent.
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
        """Whether ``now`` is between the two sizes."""
        smaller, larger = sorted((int(one), int(other)))
        return smaller <= int(now) <= larger

    def _page_bytes(self, key: str) -> int:
        if key.startswith("/sys/"):
            directory = key.rpartition("/")[0]
            return int(directory.rpartition("-")[2].removesuffix("kB")) << 10
        return self._memory_bytes("Hugepagesize")

    def _compact(self) -> None:
        if self._locate(_COMPACT).exists():  # missing in a kernel without compaction
            super().write(_COMPACT, "1")

    def _memory_bytes(self, field: str) -> int:
        lines = self._locate(_MEMORY).read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{field}:"))


def _evict(size_bytes: int) -> None:
    """Make the kernel evict least recently used files from the page cache, by briefly allocating memory.

    /proc/sys/vm/drop_caches would evict everything, including files of the user's server.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    with suppress(OSError):  # fails with strict overcommit accounting: then nothing is evicted
        mmap.mmap(-1, size_bytes, flags=flags).close()
