"""Servers and hosts for tests of levers, plans and formats, built from dumps of real ``pg_settings``.

``tests/fixtures/settings/<major>.json`` has the columns, then one row per setting of a freshly initialised
cluster, and the build it came from. Everything else about these servers and hosts is stated here.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pgdyno.base.facts import Fact, unknown
from pgdyno.host.host import BlockDevice, Cpu, Host, HugePagePool, Kernel, Limits, Memory, Mount
from pgdyno.host.kernel_file import COUPLED, choices_in
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.memory_proof import shared_memory_bytes
from pgdyno.plan.engine.resources import Figures, StorageKind
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.server import Capabilities, Server, SettingOverride, Standby

SETTINGS = Path(__file__).parent / "fixtures" / "settings"
MAJORS = (14, 15, 16, 17, 18)
MB, GB = 1 << 20, 1 << 30
DATA_DIRECTORY = "/var/lib/postgresql/data"


@cache
def _dump(major: int) -> dict[str, Any]:
    text = (SETTINGS / f"{major}.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def rows_of(major: int) -> list[dict[str, Any]]:
    """Return the rows of ``pg_settings`` of a fresh cluster."""
    dump = _dump(major)
    return [dict(zip(dump["columns"], row, strict=True)) for row in dump["settings"]]


def settings_of(major: int) -> dict[str, Guc]:
    """Return the settings of a fresh cluster."""
    rows = rows_of(major)
    return {row["name"]: Guc(**{**row, "enumvals": tuple(row["enumvals"] or ())}) for row in rows}


def set_by(gucs: dict[str, Guc], changes: Mapping[str, str], **attributes: object) -> dict[str, Guc]:
    """Return settings as a server shows them after ``changes``; who made them stands in ``attributes``."""
    owner = {"source": "configuration file", **attributes}
    changed = {
        name: dataclasses.replace(gucs[name], setting=gucs[name].check(value), **owner)  # type: ignore[arg-type]
        for name, value in changes.items()
    }
    return {**gucs, **changed}


def server_of(
    major: int = 18,
    *,
    changes: Mapping[str, str] | None = None,
    data_bytes: int | None = 612 * MB,
    is_colocated: bool = True,
    has_jit: bool | None = None,
    settings: dict[str, Guc] | None = None,
) -> Server:
    """Return a server of this major; ``changes`` were made in its postgresql.conf."""
    gucs = settings if settings is not None else set_by(settings_of(major), changes or {})
    dump = _dump(major)
    jit = bool(dump["has_jit"]) if has_jit is None else has_jit
    return Server(
        version_num=int(str(dump["version_num"])),
        version=str(dump["version"]).split(" ")[0],
        settings=gucs,
        capabilities=Capabilities(
            io_methods=Fact(gucs["io_method"].enumvals if "io_method" in gucs else (), "pg_settings"),
            wal_compression_methods=Fact(gucs["wal_compression"].enumvals, "pg_settings"),
            has_jit=Fact(jit, "pg_jit_available()"),
            has_ssl=Fact(value=False, source="pg_settings"),
            build_flags=unknown("not read", "pg_config"),
            compiler_flags=unknown("not read", "pg_config"),
        ),
        overrides=Fact[tuple[SettingOverride, ...]]((), "pg_db_role_setting"),
        databases_bytes=unknown("hidden from this role", "pg_database_size()")
        if data_bytes is None
        else Fact(data_bytes, "pg_database_size()"),
        standbys=Fact[tuple[Standby, ...]]((), "pg_stat_replication"),
        is_in_recovery=False,
        data_directory=Fact(DATA_DIRECTORY, "pg_settings"),
        is_superuser=True,
        hidden=(),
        is_colocated=Fact(is_colocated, "/proc"),
    )


def restarted(server: Server, planned: Mapping[str, str]) -> Server:
    """Return the server after a plan, telling as much shared memory as was estimated, in whole MB."""
    gucs = set_by(dict(server.settings), planned)
    if "shared_memory_size" in gucs:
        told_mb = -(-shared_memory_bytes(EffectiveSettings(server, planned)) // MB)
        told = dataclasses.replace(gucs["shared_memory_size"], setting=str(told_mb))
        gucs["shared_memory_size"] = told
    return dataclasses.replace(server, settings=gucs)


_PREFERENCES = "default performance balance_performance balance_power power"

KERNEL_FILES = {
    "/proc/irq/24/smp_affinity_list": "0-1",
    "/proc/sys/kernel/numa_balancing": "0",
    "/proc/sys/kernel/sched_autogroup_enabled": "1",
    "/proc/sys/net/core/busy_poll": "0",
    "/proc/sys/net/core/busy_read": "0",
    "/proc/sys/net/core/rps_sock_flow_entries": "0",
    "/proc/sys/net/core/somaxconn": "4096",
    "/proc/sys/net/ipv4/tcp_keepalive_intvl": "75",
    "/proc/sys/net/ipv4/tcp_keepalive_probes": "9",
    "/proc/sys/net/ipv4/tcp_keepalive_time": "7200",
    "/proc/sys/net/ipv4/tcp_max_syn_backlog": "2048",
    "/proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t33554432",
    "/proc/sys/net/ipv4/tcp_syncookies": "1",
    "/proc/sys/net/ipv4/tcp_wmem": "4096\t16384\t4194304",
    "/proc/sys/vm/dirty_background_bytes": "0",
    "/proc/sys/vm/dirty_background_ratio": "10",
    "/proc/sys/vm/dirty_bytes": "0",
    "/proc/sys/vm/dirty_ratio": "20",
    "/proc/sys/vm/overcommit_kbytes": "0",
    "/proc/sys/vm/overcommit_memory": "0",
    "/proc/sys/vm/overcommit_ratio": "50",
    "/proc/sys/vm/swappiness": "60",
    "/proc/sys/vm/zone_reclaim_mode": "0",
    "/sys/block/sda/queue/atomic_write_unit_max_bytes": "0",
    "/sys/block/sda/queue/nr_requests": "256",
    "/sys/block/sda/queue/read_ahead_kb": "8192",
    "/sys/block/sda/queue/scheduler": "none [mq-deadline] kyber bfq",
    "/sys/class/net/eth0/gro_flush_timeout": "0",
    "/sys/class/net/eth0/napi_defer_hard_irqs": "0",
    "/sys/class/net/eth0/queues/rx-0/rps_cpus": "0",
    "/sys/class/net/eth0/queues/rx-0/rps_flow_cnt": "0",
    "/sys/class/net/eth0/queues/tx-0/xps_cpus": "0",
    "/sys/class/net/eth0/queues/tx-1/xps_cpus": "0",
    "/sys/devices/system/cpu/cpu0/cpuidle/state0/disable": "0",
    "/sys/devices/system/cpu/cpu0/cpuidle/state0/latency": "0",
    "/sys/devices/system/cpu/cpu0/cpuidle/state0/name": "POLL",
    "/sys/devices/system/cpu/cpu0/cpuidle/state1/disable": "0",
    "/sys/devices/system/cpu/cpu0/cpuidle/state1/latency": "2",
    "/sys/devices/system/cpu/cpu0/cpuidle/state1/name": "C1",
    "/sys/devices/system/cpu/cpu0/cpuidle/state2/disable": "0",
    "/sys/devices/system/cpu/cpu0/cpuidle/state2/latency": "133",
    "/sys/devices/system/cpu/cpu0/cpuidle/state2/name": "C6",
    "/sys/devices/system/cpu/cpu1/cpuidle/state0/disable": "0",
    "/sys/devices/system/cpu/cpu1/cpuidle/state0/latency": "0",
    "/sys/devices/system/cpu/cpu1/cpuidle/state1/disable": "0",
    "/sys/devices/system/cpu/cpu1/cpuidle/state1/latency": "2",
    "/sys/devices/system/cpu/cpu1/cpuidle/state2/disable": "0",
    "/sys/devices/system/cpu/cpu1/cpuidle/state2/latency": "133",
    "/sys/devices/system/cpu/cpufreq/policy0/energy_performance_available_preferences": _PREFERENCES,
    "/sys/devices/system/cpu/cpufreq/policy0/energy_performance_preference": "balance_performance",
    "/sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors": "ondemand performance schedutil",
    "/sys/devices/system/cpu/cpufreq/policy0/scaling_driver": "intel_cpufreq",
    "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "ondemand",
    "/sys/devices/system/cpu/cpufreq/policy1/energy_performance_available_preferences": _PREFERENCES,
    "/sys/devices/system/cpu/cpufreq/policy1/energy_performance_preference": "balance_performance",
    "/sys/devices/system/cpu/cpufreq/policy1/scaling_available_governors": "ondemand performance schedutil",
    "/sys/devices/system/cpu/cpufreq/policy1/scaling_driver": "intel_cpufreq",
    "/sys/devices/system/cpu/cpufreq/policy1/scaling_governor": "ondemand",
    "/sys/devices/system/cpu/smt/control": "on",
    "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages": "0",
    "/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages": "0",
    "/sys/kernel/debug/sched/base_slice_ns": "1400000",
    "/sys/kernel/debug/sched/migration_cost_ns": "500000",
    "/sys/kernel/debug/sched/preempt": "none voluntary (full) lazy",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "0",
    "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "0",
    "/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never",
    "/sys/kernel/mm/transparent_hugepage/defrag": "always defer defer+madvise [madvise] never",
    "/sys/kernel/mm/transparent_hugepage/shmem_enabled": "always within_size advise [never] deny force",
}
"""What the kernel shows on the reference host. Kept as the kernel writes it: choices in brackets."""

_POOLS, _NODE = "/sys/kernel/mm/hugepages/", "/sys/devices/system/node/node0/hugepages/"


def with_files(host: Host, values: Mapping[str, str]) -> Host:
    """Return the host after the kernel has taken these values, as it would show them."""
    texts = {path: fact.or_else("") for path, fact in host.kernel_files.items()}
    pools = dict(host.memory.huge_pages.or_else({}))
    for path, value in values.items():
        choices = choices_in(texts[path])
        texts[path] = " ".join(f"[{one}]" if one == value else one for one in choices) if choices else value
        if path in COUPLED and value != "0":
            texts[COUPLED[path]] = "0"
        if path.startswith(_POOLS):
            page_bytes = int(path.split("hugepages-")[1].partition("kB")[0]) << 10
            pools[page_bytes] = HugePagePool(int(value), int(value), 0, 0)
            texts[path.replace(_POOLS, _NODE)] = value
    return dataclasses.replace(
        host,
        kernel_files={path: Fact(text, path) for path, text in texts.items()},
        memory=dataclasses.replace(host.memory, huge_pages=Fact(pools, host.memory.huge_pages.source)),
    )


def host_of(
    *,
    memory_bytes: int = 24 * GB,
    cpus: float = 2,
    is_rotational: bool = False,
    device: str = "sda",
    virtualisation: str = "none",
    free_disk_bytes: int = 80 * GB,
    huge_pages: Mapping[int, HugePagePool] | None = None,
    kernel_files: Mapping[str, str] | None = None,
) -> Host:
    """Return a host; by default the reference host: 2 CPUs, 24 GB, an SSD, a kernel as it is installed."""
    pools = {2 * MB: HugePagePool(0, 0, 0, 0), GB: HugePagePool(0, 0, 0, 0), **(huge_pages or {})}
    return Host(
        hostname=Fact("reference", "uname"),
        cpu=_cpu(cpus, virtualisation),
        memory=Memory(
            total_bytes=Fact(memory_bytes, "/proc/meminfo"),
            available_bytes=Fact(memory_bytes, "/proc/meminfo"),
            page_bytes=Fact(4096, "sysconf"),
            huge_pages=Fact(pools, "/sys/kernel/mm/hugepages"),
            transparent_huge_pages=Fact("madvise", "/sys/kernel/mm/transparent_hugepage/enabled"),
            huge_page_bytes=Fact(2 * MB, "/proc/meminfo"),
        ),
        limits=_limits(memory_bytes, cpus),
        kernel=Kernel(
            release=Fact("6.18.0", "uname"),
            distribution=Fact("Debian 12", "/etc/os-release"),
            sysctls={"kernel.io_uring_disabled": Fact("0", "/proc/sys/kernel/io_uring_disabled")},
        ),
        block_devices=Fact(
            (
                BlockDevice(
                    name=device,
                    is_rotational=Fact(is_rotational, f"/sys/block/{device}/queue/rotational"),
                    scheduler=Fact("mq-deadline", "/sys"),
                    read_ahead_bytes=Fact(8 * MB, "/sys"),
                    size_bytes=Fact(256 * GB, "/sys"),
                ),
            ),
            "/sys/block",
        ),
        mounts=Fact(
            (
                Mount(
                    target="/",
                    device=f"/dev/{device}1",
                    filesystem="ext4",
                    options=("rw",),
                    available_bytes=Fact(free_disk_bytes, "statvfs /"),
                    disk=Fact(device, "/sys/dev/block"),
                ),
            ),
            "/proc/self/mountinfo",
        ),
        nics=Fact((), "/sys/class/net"),
        kernel_files={
            path: Fact(text, path) for path, text in {**KERNEL_FILES, **(kernel_files or {})}.items()
        },
    )


def _cpu(cpus: float, virtualisation: str) -> Cpu:
    hidden = "not needed here"
    return Cpu(
        model=unknown(hidden, "lscpu"),
        architecture=Fact("x86_64", "uname"),
        isa_features=unknown(hidden, "lscpu"),
        logical_count=Fact(int(cpus), "/proc/cpuinfo"),
        core_count=unknown(hidden, "lscpu"),
        socket_count=unknown(hidden, "lscpu"),
        numa_nodes=unknown(hidden, "lscpu"),
        is_smt_active=unknown(hidden, "lscpu"),
        l1d_bytes=unknown(hidden, "lscpu"),
        l2_bytes=unknown(hidden, "lscpu"),
        l3_bytes=unknown(hidden, "lscpu"),
        has_pmu=unknown(hidden, "lscpu"),
        virtualisation=Fact(virtualisation, "systemd-detect-virt"),
        clocksource=unknown(hidden, "/sys"),
    )


def _limits(memory_bytes: int, cpus: float) -> Limits:
    return Limits(
        cgroup_version=Fact("v2", "/proc/self/cgroup"),
        memory_bytes=Fact(memory_bytes, "/proc/meminfo"),
        memory_high_bytes=Fact(memory_bytes, "/proc/meminfo"),
        cpu_count=Fact(cpus, "sched_getaffinity"),
        cpuset=Fact(tuple(range(int(cpus))), "sched_getaffinity"),
        pids_max=unknown("not limited", "/sys/fs/cgroup"),
        hugetlb_bytes=Fact(dict.fromkeys((2 * MB, GB), memory_bytes), "/proc/meminfo"),
        shm_bytes=Fact(memory_bytes // 2, "statvfs /dev/shm"),
        rlimits=Fact({"Max open files": "1048576"}, "/proc/7/limits"),
        seccomp=Fact("disabled", "/proc/7/status"),
    )


def reference_figures() -> Figures:
    """Return the reference host as figures that a user states: 2 CPUs, 24 GB, an SSD."""
    return Figures(memory_bytes=24 * GB, cpu_count=2, storage=StorageKind.SSD, free_disk_bytes=80 * GB)
