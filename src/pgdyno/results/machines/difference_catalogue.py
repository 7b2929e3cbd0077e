"""Possible differences between two machines' experiments, and their weight. Pure.

Differences between the machines themselves are not included.

The weight is the largest known effect, not the usual one: a difference that decided one published result is
listed even if it had no effect in another. ``source`` names the evidence of an entry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pgdyno.base import numbers
from pgdyno.measure.records.recorded_facts import (
    BETWEEN_MITIGATIONS,
    FactReader,
    arms_in_turns,
    client_place,
    fact_at,
    idling,
    member,
    mitigations,
    of_disks,
    of_host,
    of_mounts,
    of_server,
    of_sysctl,
    server_cpus,
    size,
    stolen_share,
    yes_or_no,
)
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.machine_comparison import Weight
from pgdyno.results.machines import recorded_builds

Weighing = Callable[[str, str], Weight]
_MUCH_STOLEN = 10  # percent of the CPU time: as much as makes a block void
_KERNEL_SERIES = re.compile(r"\d+\.\d+")

ESTIMATE = "pgdyno's estimate"
_BUILDS = "github.com/andrewkim-pkt/sysbench-pgo-lto-bolt, PostgreSQL 18.3"
_MEASURED = "docs/results"
_HUGE_PAGES = "n0derunner.com, pgbench -S on PostgreSQL 11, and TPROC-C"
_NUMA = "n0derunner.com, notes on tuning PostgreSQL for memory benchmarks"
_KERNEL_7 = "thebuild.com 2026-04-23, Linux 7.0 on 96 CPUs"
_CLIENTS = "wiki.postgresql.org/wiki/Pgbench; the study of 2020 of two machines of 8 CPUs"
_TUNED = "TuneD's profile postgresql"


@dataclass(frozen=True)
class Entry:
    """One possible difference. ``concerns`` decides whether it applies to a pair of experiments.

    ``between`` separates the items of a value of which only differing items are shown; None: shown in whole.
    """

    subject: str
    read: FactReader
    weight: Weight | Weighing
    reason: str
    source: str
    concerns: Callable[[Experiment, Experiment], bool] = lambda _a, _b: True
    between: str | None = None

    def weigh(self, a: str | None, b: str | None) -> Weight:
        """Return the weight of two values; the largest possible weight if one is unknown."""
        if isinstance(self.weight, Weight):
            return self.weight
        return Weight.TENS if a is None or b is None else self.weight(a, b)


def _by(pattern: re.Pattern[str], same: Weight, other: Weight) -> Weighing:
    """Return a weighing that gives ``same`` if ``pattern`` matches the same prefix of both values."""

    def weigh(a: str, b: str) -> Weight:
        of_a, of_b = pattern.match(a), pattern.match(b)
        return same if of_a and of_b and of_a[0] == of_b[0] else other

    return weigh


def _both_arm(a: Experiment, b: Experiment) -> bool:
    return all(fact_at(one.host, "cpu.architecture") == "aarch64" for one in (a, b))


def _atomics(value: Any) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    return f"{value.get('inline')} in its own code, {value.get('outline')} in helpers"


def _variables(value: Any) -> str:
    pairs = sorted(value.items()) if isinstance(value, Mapping) else []
    return ", ".join(f"{name}={text}" for name, text in pairs) or "none"


def _options(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _stolen(experiment: Experiment) -> str | None:
    share = stolen_share(experiment)
    return None if share is None else numbers.share(share, 0)


def _by_stolen_share(a: str, b: str) -> Weight:
    """Weigh by stolen share: a neighbour that takes much CPU time also disturbs the rest."""
    return Weight.TENS if max(int(share.rstrip(" %")) for share in (a, b)) >= _MUCH_STOLEN else Weight.FEW


def _same_count(a: Experiment, b: Experiment) -> bool:
    """Whether both machines have the same number of CPUs; otherwise the machines themselves differ."""
    counts = [fact_at(one.host, "cpu.logical_count") for one in (a, b)]
    return counts[0] is not None and counts[0] == counts[1]


def _memory_limit(experiment: Experiment) -> str | None:
    limit, total = (fact_at(experiment.host, path) for path in ("limits.memory_bytes", "memory.total_bytes"))
    if not isinstance(limit, int) or not isinstance(total, int):
        return None
    return "none" if limit >= total else size(limit)


def _has_sysbench(a: Experiment, b: Experiment) -> bool:
    return "sysbench" in {*a.generators.values(), *b.generators.values()}


_PROGRAM = (
    Entry(
        "compiler's flags",
        recorded_builds.flags,
        Weight.TENS,
        "PGO with LTO gave +17 %, with BOLT +21 … +46 %",
        f"{_BUILDS}; {_MEASURED}",
        between=recorded_builds.BETWEEN_FLAGS,
    ),
    Entry(
        "PostgreSQL",
        of_server("version"),
        _by(re.compile(r"\d+"), Weight.FEW, Weight.TENS),
        "majors differ in planner, locks and I/O: 18 beta1 against 17.4 was between -5 and +40 %",
        "Insert Benchmark of 2025, l.i2 and qr100",
    ),
    Entry(
        "configure options",
        recorded_builds.options,
        Weight.FEW,
        "what is built in can be used: LLVM, io_uring, compression; assertions cost more",
        _BUILDS,
        between=recorded_builds.BETWEEN_OPTIONS,
    ),
    Entry("package", recorded_builds.package, Weight.FEW, "distributions carry patches", ESTIMATE),
    Entry(
        "compiler",
        recorded_builds.compiler,
        Weight.FEW,
        "1 … 2 % under pgbench",
        "blog.pgaddict.com, compiler optimization vs PostgreSQL (2014)",
    ),
    Entry(
        "memory allocator",
        of_server("program.allocator"),
        Weight.FEW,
        "memory contexts keep most blocks and seldom call malloc",
        ESTIMATE,
    ),
    Entry(
        "malloc's variables",
        of_server("program.malloc_variables", _variables),
        Weight.FEW,
        "they configure the memory allocator",
        ESTIMATE,
    ),
    Entry(
        "LSE atomics of the program",
        of_server("program.atomics", _atomics),
        Weight.TENS,
        "without them, locks on many Arm cores are far slower",
        "akorotkov.github.io 2021-04-30",
        _both_arm,
    ),
    Entry(
        "explicit huge pages",
        of_server("program.has_huge_pages", yes_or_no),
        Weight.TENS,
        "+7.5 % with pages of 2 MB, +12 % of 1 GB, more with many backends",
        _HUGE_PAGES,
    ),
    Entry(
        "scheduling policy",
        of_server("program.scheduling_policy"),
        Weight.FEW,
        "SCHED_BATCH is preempted less by waking processes",
        ESTIMATE,
    ),
    Entry(
        "standbys",
        of_server("standbys", lambda value: str(len(value)) if isinstance(value, list) else str(value)),
        Weight.TENS,
        "commits may wait for them, and WAL is sent to them",
        "manual, Synchronous Replication",
    ),
)
_KERNEL = (
    Entry(
        "kernel",
        of_host("kernel.release"),
        _by(_KERNEL_SERIES, Weight.FEW, Weight.TENS),
        "another scheduler: a new preemption model halved throughput on 96 CPUs",
        _KERNEL_7,
    ),
    Entry(
        "frequency governor",
        of_host("cpu.governor"),
        Weight.TENS,
        "with some drivers, powersave stays at the lowest frequency; others follow the load late",
        "docs.kernel.org/admin-guide/pm/cpufreq.html",
    ),
    Entry(
        "CPU vulnerability mitigations",
        mitigations,
        Weight.TENS,
        "up to 20 % on old processors, 5 % on new ones; many depend on the processor",
        ESTIMATE,
        between=BETWEEN_MITIGATIONS,
    ),
    Entry(
        "transparent huge pages",
        of_host("memory.transparent_huge_pages"),
        Weight.FEW,
        "fewer page faults of backends, at the price of stalls",
        f"{_MEASURED}; {_TUNED}",
    ),
    Entry(
        "page size", of_host("memory.page_bytes", size), Weight.FEW, "fewer TLB misses, larger I/O", ESTIMATE
    ),
    Entry(
        "clock source",
        of_host("cpu.clocksource"),
        Weight.FEW,
        "a clock source that is not a CPU register makes every timing a system call",
        "manual, pg_test_timing",
    ),
    Entry(
        "kernel.sched_autogroup_enabled",
        of_sysctl("kernel.sched_autogroup_enabled"),
        Weight.FEW,
        "client and server share the CPUs by sessions",
        "postgresql.org/message-id/50E4AAB1.9040902@optionshouse.com",
    ),
    Entry(
        "kernel.numa_balancing",
        of_sysctl("kernel.numa_balancing"),
        Weight.FEW,
        "pages of shared memory move between nodes: 4 … 10 %",
        _NUMA,
    ),
    Entry(
        "vm.zone_reclaim_mode",
        of_sysctl("vm.zone_reclaim_mode"),
        Weight.FEW,
        "page cache of other nodes is not used",
        _NUMA,
    ),
    *(
        Entry(name, of_sysctl(name), Weight.FEW, "how much is written at once under write loads", _TUNED)
        for name in (
            "vm.dirty_background_bytes",
            "vm.dirty_background_ratio",
            "vm.dirty_bytes",
            "vm.dirty_ratio",
        )
    ),
    Entry(
        "kernel.io_uring_disabled",
        of_sysctl("kernel.io_uring_disabled"),
        Weight.FEW,
        "decides whether io_method = io_uring is available",
        "kernel.org, io_uring_disabled",
    ),
    Entry(
        "seccomp", of_host("limits.seccomp"), Weight.FEW, "a filter is run for every system call", ESTIMATE
    ),
    Entry(
        "distribution",
        of_host("kernel.distribution"),
        Weight.LITTLE,
        "its relevant parts are listed separately; libc is not recorded",
        ESTIMATE,
    ),
)
_PLACE = (
    Entry(
        "client",
        client_place,
        Weight.TENS,
        "on the server's CPUs, pgbench took about 20 % of them and flattened the curve",
        _CLIENTS,
    ),
    Entry(
        "CPU time taken by the hypervisor",
        _stolen,
        _by_stolen_share,
        "other guests used the machine during the measurement: it can do more than was measured",
        _MEASURED,
    ),
    Entry(
        "CPUs that the server may use",
        server_cpus,
        Weight.DECIDES,
        "limits of cgroups, and CPUs reserved for the client; the work is proportional to the CPUs",
        "arithmetic",
        _same_count,
    ),
    Entry(
        "memory limit", _memory_limit, Weight.TENS, "page cache counts towards it", "kernel.org, cgroup-v2"
    ),
    Entry("side by side", arms_in_turns, Weight.FEW, "caches are refilled after each turn", "docs/method.md"),
    Entry(
        "idle CPUs",
        idling,
        Weight.TENS,
        "waking a sleeping CPU can take longer than a statement",
        "docs/decisions/0027",
        lambda a, b: a.awake is not None or b.awake is not None,
    ),
    Entry(
        "pgdyno with its driver",
        lambda experiment: experiment.pgdyno_version,
        Weight.FEW,
        "the driver issues the load and uses CPU time for it",
        _MEASURED,
    ),
    Entry(
        "sysbench's version",
        lambda _: None,
        Weight.FEW,
        "it issues the load; it is not recorded",
        ESTIMATE,
        _has_sysbench,
    ),
    Entry(
        "file systems",
        of_mounts(member("filesystem")),
        Weight.TENS,
        "under write loads: how WAL is synchronised and whole pages are written",
        ESTIMATE,
    ),
    Entry(
        "mount options",
        of_mounts(member("options", _options)),
        Weight.FEW,
        "noatime, discard, barriers",
        ESTIMATE,
    ),
    Entry(
        "I/O scheduler",
        of_disks(member("scheduler")),
        Weight.FEW,
        "only where disks are read or written",
        _MEASURED,
    ),
    Entry(
        "read-ahead",
        of_disks(member("read_ahead_bytes", size)),
        Weight.FEW,
        "only where disks are read: large for scans, small for single rows",
        ESTIMATE,
    ),
)
ENTRIES = (*_PROGRAM, *_KERNEL, *_PLACE)
"""In the order of display among entries of equal weight."""

NAMED_SYSCTLS = frozenset(entry.subject for entry in ENTRIES if entry.subject.startswith(("kernel.", "vm.")))
"""Kernel settings with their own entries."""
