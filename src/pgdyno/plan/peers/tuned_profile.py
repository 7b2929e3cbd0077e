"""The values of TuneD's profile for PostgreSQL.

A peer to compare pgdyno's system layer with.

A copy of the kernel files set by the profile, with the CPU governor of the profile that it includes; nothing
here is advice. The rest of the included profile concerns power management and large reads.

Source: redhat-performance/tuned, profiles/postgresql/tuned.conf at 49496c3.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from pgdyno.host.host import Host
from pgdyno.host.kernel_file import choices_in, sysctl_path

PROFILE: Mapping[str, str] = {
    "/sys/devices/system/cpu/*/cpufreq/scaling_governor": "performance",
    "/sys/kernel/mm/transparent_hugepage/enabled": "never",
    "/sys/kernel/debug/sched/migration_cost_ns": "50000000",
    sysctl_path("kernel.sched_autogroup_enabled"): "0",
    sysctl_path("vm.dirty_background_bytes"): "67108864",
    sysctl_path("vm.dirty_bytes"): "536870912",
    sysctl_path("vm.swappiness"): "3",
}


def tuned_files(host: Host) -> dict[str, str]:
    """Return the profile's values for the files that this host's kernel has, by path."""
    known = {path: text for path, fact in host.kernel_files.items() if (text := fact.or_none()) is not None}
    return {
        path: value
        for pattern, value in PROFILE.items()
        for path, text in known.items()
        if fnmatchcase(path, pattern) and value in (choices_in(text) or (value,))
    }
