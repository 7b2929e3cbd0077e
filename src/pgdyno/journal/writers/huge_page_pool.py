"""Changes the size of a pool of huge pages.

The kernel gives what it finds: a pool that comes out smaller than asked for is an error, and is undone like
every other. Memory is compacted in between, which is what makes room among scattered pages. Whoever is killed
while the kernel looks for pages leaves what it had found by then.

Source: Linux, Documentation/admin-guide/mm/hugetlbpage.rst.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.journal.writers.kernel_file import KernelFileWriter
from pgdyno.model.errors import HugePagesError
from pgdyno.model.hosts.kernel_file import sysctl_path

_COMPACT = sysctl_path("vm.compact_memory")
_ATTEMPTS = 3  # arbitrary; what compaction has not found by then stays scattered
_TOTAL, _SURPLUS = "/nr_hugepages", "/surplus_hugepages"


@dataclass(frozen=True)
class HugePagePoolWriter(KernelFileWriter):
    """Reads, fills and restores pools; a key is ``nr_hugepages`` of a page size in /sys, or the sysctl."""

    kind: str = "huge_pages"

    def write(self, key: str, value: str) -> None:
        """Reserve ``value`` pages.

        Raises: HugePagesError if there is no room for all of them.
        """
        for _ in range(_ATTEMPTS):
            super().write(key, value)
            if int(self.value(key)) >= int(value):
                return
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

    def _compact(self) -> None:
        if self._locate(_COMPACT).exists():  # a kernel may be built without
            super().write(_COMPACT, "1")
