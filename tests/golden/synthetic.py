"""A made-up experiment with everything a report can show. Its figures come from nobody's machine.

Blocks are drawn from a seeded generator with known true effects; the verdicts beside them are written down
as t intervals over the rounds' mean log-ratios, computed once with scipy.stats.t.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache

from pgdyno.model.experiments.experiment import (
    ArmBlock,
    Block,
    Design,
    DesignKind,
    Experiment,
    NoiseFloor,
    SettingDifference,
    Stopping,
    VoidThresholds,
)
from pgdyno.model.experiments.verdict import Decision, Interval, VarianceComponents, Verdict
from pgdyno.model.experiments.workload import ResetPolicy
from pgdyno.model.plans.plan import (
    Change,
    Effect,
    Finding,
    Layer,
    MemoryItem,
    MemoryProof,
    Plan,
    PlanLine,
    Risk,
    Skipped,
)
from pgdyno.model.variants.variant import Variant

READ_ONLY, READ_WRITE = "sysbench-read-only", "sysbench-read-write"
ROUNDS, BLOCKS = 6, 2
START_NS = 1_795_000_000_000_000_000
MIB, GIB = 1 << 20, 1 << 30

# Every value is written out: the golden files must not follow the defaults of today.
DESIGN = Design(
    kind=DesignKind.DUET,
    rounds=ROUNDS,
    blocks_per_round=BLOCKS,
    block_s=6.0,
    slice_s=0.1,
    head_s=0.01,
    warmup_s=1.0,
    seed=20261121,
    level=0.95,
    equivalence_margin=0.02,
    power=0.80,
    stopping=Stopping.FIXED,
    precision=None,
    is_isolated=True,
    clients=4,
    thresholds=VoidThresholds(
        steal_share=0.10,
        foreign_cpu_share=0.10,
        client_saturation_share=0.97,
        schedule_lag_share=0.20,
        void_block_share=0.30,
    ),
)

_TRUE_EFFECTS = {
    READ_ONLY: {"throughput_tps": 1.19, "server_cpu_us_per_transaction": 0.86, "latency_ms_p99": 1.03},
    READ_WRITE: {"throughput_tps": 0.999, "server_cpu_us_per_transaction": 0.995, "latency_ms_p99": 1.06},
}
_LEVELS = {
    READ_ONLY: {"throughput_tps": 1480.0, "server_cpu_us_per_transaction": 640.0, "latency_ms_p99": 4.1},
    READ_WRITE: {"throughput_tps": 655.0, "server_cpu_us_per_transaction": 1290.0, "latency_ms_p99": 11.3},
}
_NOISE = {"throughput_tps": 0.012, "server_cpu_us_per_transaction": 0.006, "latency_ms_p99": 0.06}
_VOID = {
    (READ_ONLY, 3, 1): "14.2% of the CPU time was stolen by the hypervisor (limit 10%)",
    (READ_WRITE, 0, 0): "12.9% of the CPU time went to processes that are not ours (limit 10%)",
}


@cache
def experiment() -> Experiment:
    """Return a finished comparison of a plan with the default configuration."""
    return Experiment(
        id="2026-11-21-0930-duet-7f3a",
        name="accelerate",
        question="Is the planned configuration faster than the default one?",
        created="2026-11-21T09:30:12Z",
        pgdyno_version="0.1.0",
        design=DESIGN,
        variants=(
            Variant("default"),
            Variant("plan", {"shared_buffers": "2GB", "max_wal_size": "8GB", "work_mem": "16MB"}),
        ),
        baseline="default",
        workloads=(READ_ONLY, READ_WRITE),
        reset_policies={READ_ONLY: ResetPolicy.KEEP, READ_WRITE: ResetPolicy.RESTORE},
        blocks=_blocks(),
        verdicts=_verdicts(),
        noise_floor=_noise_floor(),
        settings=_settings(),
        plan=plan(),
        host=HOST,
        server=SERVER,
        notes=(
            "Each arm of sysbench-read-write spans a full checkpoint cycle; its cost is charged to the arm.",
            "io_method=io_uring was left out: this build knows sync and worker only.",
        ),
        is_complete=True,
        installation="embedded",
        scales={READ_ONLY: 4, READ_WRITE: 4},
    )


def plan() -> Plan:
    """Return a plan with a memory proof, a finding and two skipped levers."""
    return Plan(
        lines=(
            _line(
                "shared_buffers", "128MB", "2GB", Effect.RESTART, "a quarter of the 8 GB this server may use"
            ),
            _line("max_wal_size", "1GB", "8GB", Effect.RELOAD, "checkpoints came every 38 s under load"),
            _line("work_mem", "4MB", "16MB", Effect.RELOAD, "the memory proof leaves room for it"),
        ),
        skipped=(
            Skipped("huge_pages", "the pool is empty: vm.nr_hugepages is 0"),
            Skipped("jit", "this build has no JIT"),
        ),
        findings=(
            Finding("note", "log_min_duration_statement is off", "slow statements leave no trace in the log"),
        ),
        memory_proof=MemoryProof(
            items=(
                MemoryItem("shared_buffers", "2GB", 2 * GIB),
                MemoryItem("other shared memory", "3 % of shared_buffers + 24MB", 85 * MIB),
                MemoryItem("connections", "100 × (16MB × 2.0 × 1 + 6MB)", 3800 * MIB),
                MemoryItem("parallel workers", "8 × 16MB × 2.0", 256 * MIB),
                MemoryItem("maintenance", "1 × 256MB", 256 * MIB),
                MemoryItem("autovacuum", "3 × 64MB", 192 * MIB),
                MemoryItem("page tables", "108 processes × 2GB / 4kB × 8B", 432 * MIB),
            ),
            limit_bytes=10 * GIB,
            limit_source="/sys/fs/cgroup/system.slice/memory.max",
        ),
    )


def _line(key: str, current: str, value: str, effect: Effect, reason: str) -> PlanLine:
    return PlanLine(
        Change(key, "setting", key, current, value, effect),
        Layer.APPLICATION,
        reason,
        "PostgreSQL manual, chapter 19; measured by experiment 2026-11-02-1410-duet-11c2",
        Risk.RESTART if effect is Effect.RESTART else Risk.SAFE,
        f"{key} = {current}, {effect}",
    )


def _blocks() -> tuple[Block, ...]:
    random_ = random.Random(7)  # noqa: S311 — made-up data, not a secret
    blocks = []
    for round_ in range(ROUNDS):
        for workload in (READ_ONLY, READ_WRITE):
            bias = {metric: random_.gauss(0, sd) for metric, sd in _NOISE.items()}
            blocks += [_block(random_, workload, (round_, index), bias) for index in range(BLOCKS)]
    return tuple(blocks)


def _block(random_: random.Random, workload: str, place: tuple[int, int], bias: Mapping[str, float]) -> Block:
    round_, index = place
    void = _VOID.get((workload, round_, index))
    weather = random_.gauss(0, 0.05) - (0.2 if void else 0)  # what hits both arms alike
    arms: dict[str, dict[str, float]] = {"default": {}, "plan": {}}
    for metric, level in _LEVELS[workload].items():
        sign = 1 if metric == "throughput_tps" else -1
        base = level * (1 + sign * weather)
        arms["default"][metric] = round(base, 3)
        ratio = _TRUE_EFFECTS[workload][metric] * (1 + bias[metric] + random_.gauss(0, _NOISE[metric] / 2))
        arms["plan"][metric] = round(base * ratio, 3)
    for values in arms.values():
        values["cache_hit_ratio"] = 0.994
        values["wal_bytes_per_transaction"] = 0.0 if workload == READ_ONLY else 9120.0
    started_ns = START_NS + (round_ * 4 + index) * 8_000_000_000 + (0 if workload == READ_ONLY else 10**10)
    return Block(
        workload,
        round_,
        index,
        started_ns,
        tuple(
            ArmBlock(name, int(values["throughput_tps"] * 3), 3.0, values) for name, values in arms.items()
        ),
        void,
        {
            "steal_share": 0.142 if void and "stolen" in void else 0.012,
            "foreign_cpu_share": 0.129 if void and "ours" in void else 0.021,
            "schedule_lag_share": 0.006,
            "client_saturation_share": 0.81,
        },
    )


def _verdicts() -> tuple[Verdict, ...]:
    rows = (
        (READ_ONLY, "throughput_tps", Decision.BETTER, (1.1850, 1.2000, 1.2151), 0.017, 2.6e-7),
        (
            READ_ONLY,
            "server_cpu_us_per_transaction",
            Decision.BETTER,
            (0.8535, 0.8594, 0.8654),
            0.009,
            3.4e-8,
        ),
        (READ_ONLY, "latency_ms_p99", Decision.INCONCLUSIVE, (0.8886, 0.9584, 1.0338), 0.101, 0.206),
        (READ_WRITE, "throughput_tps", Decision.EQUIVALENT, (0.9962, 1.0031, 1.0101), 0.010, 0.298),
        (
            READ_WRITE,
            "server_cpu_us_per_transaction",
            Decision.EQUIVALENT,
            (0.9908, 0.9978, 1.0047),
            0.010,
            0.448,
        ),
        (READ_WRITE, "latency_ms_p99", Decision.WORSE, (1.0718, 1.0968, 1.1223), 0.031, 1.5e-4),
    )
    reasons = {
        Decision.BETTER: "20.0 % higher, 95 % interval +18.5 %..+21.5 %",
        Decision.WORSE: "9.7 % higher, 95 % interval +7.2 %..+12.2 %",
        Decision.EQUIVALENT: "within ±2 % with 95 % confidence: +0.3 %, 95 % interval -0.4 %..+1.0 %",
        Decision.INCONCLUSIVE: "cannot tell: the interval -11.1 %..+3.4 % allows both; a change of 10.1 % "
        "would have been found (80 % power)",
    }
    return tuple(
        Verdict(
            workload=workload,
            metric=metric,
            variant="plan",
            baseline="default",
            decision=decision,
            reason=reasons[decision],
            effect=point,
            interval=Interval(low, point, high, 0.95),
            mde=mde,
            p_value=p,
            p_adjusted=min(1.0, 2 * p),
            rounds=ROUNDS,
            blocks=ROUNDS * BLOCKS - 1,
            void_blocks=1,
            components=VarianceComponents(0.0084, 0.0047),
            checks={"signed rank": "agrees (p = 0.03)"},
        )
        for workload, metric, decision, (low, point, high), mde, p in rows
    )


def _noise_floor() -> tuple[NoiseFloor, ...]:
    return (
        NoiseFloor(READ_ONLY, "throughput_tps", 1.002, (0.993, 1.011), 0.0071, 0.0052),
        NoiseFloor(READ_ONLY, "server_cpu_us_per_transaction", 0.999, (0.994, 1.004), 0.0042, 0.0031),
        NoiseFloor(READ_WRITE, "throughput_tps", 0.997, (0.986, 1.008), 0.0093, 0.0061),
        NoiseFloor(READ_WRITE, "server_cpu_us_per_transaction", 1.001, (0.993, 1.009), 0.0061, 0.0048),
    )


def _settings() -> tuple[SettingDifference, ...]:
    return (
        SettingDifference("default", "shared_buffers", "128MB", "128MB"),
        SettingDifference("default", "max_wal_size", "1GB", "1GB"),
        SettingDifference("default", "work_mem", "4MB", "4MB"),
        SettingDifference("plan", "shared_buffers", "2GB", "2GB"),
        SettingDifference("plan", "max_wal_size", "8GB", "8192MB"),
        SettingDifference("plan", "work_mem", "16MB", "15MB"),
    )


def _fact(value: object, source: str) -> dict[str, object]:
    return {"value": value, "source": source}


HOST: dict[str, object] = {
    "hostname": _fact("db-test-01", "/proc/sys/kernel/hostname"),
    "cpu": {
        "model": _fact("Example CPU 9000 @ 2.60GHz", "/proc/cpuinfo"),
        "architecture": _fact("x86_64", "/proc/cpuinfo"),
        "isa_features": _fact(["avx2", "avx512f", "sse4_2"], "/proc/cpuinfo"),
        "logical_count": _fact(8, "/sys/devices/system/cpu/online"),
        "core_count": _fact(4, "/sys/devices/system/cpu"),
        "socket_count": _fact(1, "/sys/devices/system/cpu"),
        "numa_nodes": _fact(1, "/sys/devices/system/node"),
        "has_pmu": {"unknown": "no such directory", "source": "/sys/bus/event_source/devices/cpu"},
        "virtualisation": _fact("kvm", "/sys/class/dmi/id/sys_vendor"),
        "governor": {
            "unknown": "no such file: frequency is not visible to this virtual machine",
            "source": "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        },
    },
    "memory": {
        "total_bytes": _fact(32 * GIB, "/proc/meminfo"),
        "transparent_huge_pages": _fact("madvise", "/sys/kernel/mm/transparent_hugepage/enabled"),
    },
    "limits": {
        "memory_bytes": _fact(10 * GIB, "/sys/fs/cgroup/system.slice/memory.max"),
        "cpu_count": _fact(8.0, "/sys/fs/cgroup/system.slice/cpu.max"),
    },
    "kernel": {
        "release": _fact("6.1.0-40-amd64", "/proc/sys/kernel/osrelease"),
        "distribution": _fact("Debian GNU/Linux 12 (bookworm)", "/etc/os-release"),
        "sysctls": {"vm.swappiness": _fact("60", "/proc/sys/vm/swappiness")},
    },
    "block_devices": _fact(
        [
            {
                "name": "nvme0n1",
                "is_rotational": _fact(value=False, source="/sys/block/nvme0n1/queue/rotational"),
                "scheduler": _fact("none", "/sys/block/nvme0n1/queue/scheduler"),
                "size_bytes": _fact(512 * GIB, "/sys/block/nvme0n1/size"),
            }
        ],
        "/sys/block",
    ),
    "mounts": _fact(
        [{"target": "/srv", "device": "/dev/nvme0n1p2", "filesystem": "ext4"}], "/proc/self/mountinfo"
    ),
}

SERVER: dict[str, object] = {
    "version_num": 180006,
    "version": "18.6",
    "settings": {
        "listen_addresses": {
            "name": "listen_addresses",
            "setting": "",
            "unit": None,
            "source": "configuration file",
            "sourcefile": "/etc/postgresql/18/main/postgresql.conf",
            "sourceline": 60,
        },
        "max_connections": {
            "name": "max_connections",
            "setting": "100",
            "unit": None,
            "source": "configuration file",
            "sourcefile": "/etc/postgresql/18/main/postgresql.conf",
            "sourceline": 65,
        },
        "shared_buffers": {
            "name": "shared_buffers",
            "setting": "16384",
            "unit": "8kB",
            "source": "configuration file",
            "sourcefile": "/etc/postgresql/18/main/postgresql.conf",
            "sourceline": 130,
        },
        "jit": {"name": "jit", "setting": "on", "unit": None, "source": "default"},
    },
    "capabilities": {
        "io_methods": _fact(["sync", "worker"], "pg_settings.enumvals"),
        "wal_compression_methods": _fact(["pglz", "on", "off"], "pg_settings.enumvals"),
        "has_jit": _fact(value=False, source="pg_jit_available()"),
        "compiler_flags": _fact("-O2", "pg_config"),
    },
    "databases_bytes": _fact(2_469_606_195, "pg_database_size"),
    "standbys": _fact([], "pg_stat_replication"),
    "is_in_recovery": False,
    "data_directory": _fact("/srv/postgresql/18/main", "SHOW data_directory"),
    "hidden": [],
    "build": "PostgreSQL 18.6 on x86_64-pc-linux-gnu, compiled by gcc 14.2.0, 64-bit",
}
