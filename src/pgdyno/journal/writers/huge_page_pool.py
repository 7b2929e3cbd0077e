"""Changes the size of a pool of huge pages.

The kernel gives what it finds: a pool that comes out smaller than asked for is an error, and is undone like
every other. Memory is compacted in between, which is what makes room among scattered pages.

Source: Linux, Documentation/admin-guide/mm/hugetlbpage.rst.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.journal.writers.kernel_file import KernelFileWriter
from pgdyno.model.errors import SettingError
from pgdyno.model.kernel_file import sysctl_path

_COMPACT = sysctl_path("vm.compact_memory")
_ATTEMPTS = 3  # arbitrary; what compaction has not found by then stays scattered
_TOTAL, _SURPLUS = "/nr_hugepages", "/surplus_hugepages"


@dataclass(frozen=True)
class HugePagePoolWriter(KernelFileWriter):
    """Reads, fills and restores pools; a key is the ``nr_hugepages`` of one page size in /sys."""

    kind: str = "huge_pages"

    def write(self, key: str, value: str) -> None:
        """Reserve so many pages. Raises: SettingError if there is no room for all of them."""
        for _ in range(_ATTEMPTS):
            super().write(key, value)
            if int(self.value(key)) >= int(value):
                return
            super().write(_COMPACT, "1")
        raise SettingError(
            f"only {self.value(key)} of {value} huge pages could be reserved",
            detail="the memory that is free is scattered, or there is not enough of it",
            hint="reserve them right after the machine has started, or plan smaller shared_buffers",
        )

    def value(self, key: str) -> str:
        """Return the pages that stay: not those that are given back when whoever uses them ends."""
        total = super().value(key)
        if not key.endswith(_TOTAL):
            return total
        return str(int(total) - int(super().value(key.removesuffix(_TOTAL) + _SURPLUS)))
