"""A plan with all that formats have to write down, made by hand: no levers plan all of it at once.

It has a setting of every type and unit, files of every place in the kernel, and reasons with what is special
somewhere: quotes, braces, signs of comments and of templates.
"""

from __future__ import annotations

import dataclasses

from tests.fix_settings import server_of, settings_of

from pgdyno.model.plans.plan import (
    HUGE_PAGES,
    KERNEL,
    MSR,
    SETTING,
    Change,
    Effect,
    Layer,
    Plan,
    PlanLine,
    Risk,
)
from pgdyno.postgres.server import Server

AWKWARD = """it's "special": 100 % #1, {{ braces }}, ${dollars}, %{percents}, `ticks` and a \\ at last"""

SETTINGS = (
    ("shared_buffers", "128MB", "6GB", Effect.RESTART),
    ("work_mem", "4MB", "24MB", Effect.RELOAD),
    ("max_wal_size", "1GB", "16GB", Effect.RELOAD),
    ("checkpoint_timeout", "5min", "15min", Effect.RELOAD),
    ("max_connections", "100", "200", Effect.RESTART),
    ("random_page_cost", "4", "1.1", Effect.RELOAD),
    ("autovacuum_vacuum_cost_delay", "2ms", "500us", Effect.RELOAD),
    ("jit", "on", "off", Effect.RELOAD),
    ("huge_pages", "off", "try", Effect.RESTART),
    ("io_method", "worker", "io_uring", Effect.RESTART),
    ("wal_compression", "off", "lz4", Effect.RELOAD),
    ("log_line_prefix", "%m [%p] ", "%m [%p] '%u' ", Effect.RELOAD),
)
FILES = (
    ("/proc/sys/vm/swappiness", "60", "10"),
    ("/proc/sys/vm/dirty_bytes", "0", "536870912"),
    ("/proc/sys/net/ipv4/tcp_rmem", "4096 131072 6291456", "4096 131072 16777216"),
    ("/proc/sys/net/ipv4/conf/eth0.100/rp_filter", "1", "2"),
    ("/sys/kernel/mm/transparent_hugepage/enabled", "always", "madvise"),
    ("/sys/kernel/mm/transparent_hugepage/defrag", "always", "madvise"),
    ("/sys/block/nvme0n1/queue/scheduler", "mq-deadline", "none"),
    ("/sys/block/nvme0n1/queue/read_ahead_kb", "8192", "128"),
    ("/sys/block/nvme0n1/queue/nr_requests", "256", "1023"),
    ("/sys/class/net/eth0/queues/rx-0/rps_cpus", "0", "3"),
    ("/proc/irq/41/smp_affinity_list", "0-3", "0"),
)
REGISTER = ("/dev/cpu/3/msr:0x1a4", "0x0", "0xf")
POOL = ("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0", "3224")


def rich_plan() -> Plan:
    """Return the plan."""
    lines = [setting(*one) for one in SETTINGS]
    lines += [kernel_file(*one) for one in FILES]
    lines += [kernel_file(*POOL, kind=HUGE_PAGES), kernel_file(*REGISTER, kind=MSR)]
    return plan_of(*lines)


def rich_server() -> Server:
    """Return PostgreSQL 18 as Debian packages it, of a build with io_uring and lz4."""
    gucs = settings_of(18)
    changed = {
        "config_file": {"setting": "/etc/postgresql/18/main/postgresql.conf"},
        "io_method": {"enumvals": ("sync", "worker", "io_uring")},
        "wal_compression": {"enumvals": ("pglz", "lz4", "zstd", "on", "off")},
    }
    special = {name: dataclasses.replace(gucs[name], **fields) for name, fields in changed.items()}  # type: ignore[arg-type]
    return server_of(18, settings={**gucs, **special})


def setting(name: str, current: str | None, value: str, effect: Effect = Effect.RELOAD) -> PlanLine:
    """Return a planned setting of PostgreSQL."""
    risk = Risk.RESTART if effect is Effect.RESTART else Risk.SAFE
    return PlanLine(
        Change(name, SETTING, name, current, value, effect),
        Layer.APPLICATION,
        reason=f"{name} is in this plan because {AWKWARD}",
        evidence='a manual, "Chapter"',
        risk=risk,
        undo=f"pgdyno revert; by hand: back to {current}",
    )


def kernel_file(path: str, current: str, value: str, kind: str = KERNEL) -> PlanLine:
    """Return a planned change of the machine."""
    return PlanLine(
        Change("a lever", kind, path, current, value, Effect.IMMEDIATE),
        Layer.SYSTEM,
        reason=f"this file is in this plan because {AWKWARD}",
        evidence="Linux, Documentation",
        risk=Risk.SHARED,
        undo=f"pgdyno revert; by hand: write {current} into {path}",
    )


def plan_of(*lines: PlanLine) -> Plan:
    """Return a plan of these lines."""
    return Plan(lines, (), (), None)
