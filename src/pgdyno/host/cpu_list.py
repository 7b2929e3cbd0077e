"""Lists of CPUs as Linux writes them: ``0-3,8``.

Source: Linux, Documentation/admin-guide/cputopology.rst.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_RANGE = re.compile(r"^(\d{1,9})(?:-(\d{1,9}))?$", re.ASCII)
_MOST_CPUS = 1 << 16  # eight times the kernel's largest NR_CPUS; keeps a damaged file from filling memory


def parse_cpu_list(text: str) -> tuple[int, ...] | None:
    """Return the CPUs in order, () for an empty text; None if ``text`` is not a CPU list."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        match = _RANGE.match(part.strip())
        if match is None or int(match[2] or match[1]) >= _MOST_CPUS:
            return None
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(found))


def format_cpu_list(cpus: Sequence[int]) -> str:
    """Return CPUs as the kernel and systemd write them: (0, 1, 2, 8) is ``0-2,8``."""
    runs: list[list[int]] = []
    for cpu in cpus:
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
