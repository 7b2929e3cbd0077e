"""Measures workloads that are steps of a longer one: each from its beginning to its end, on one arm alone.

Meters are read before and after a step; its debt (dirty pages) belongs to the step that writes them out, as
in the published benchmark.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgdyno.app.arm import Arm, Readings, difference, read_meters
from pgdyno.app.load import Loads
from pgdyno.experiments.blocks import HostUse, audit_block, void_reason
from pgdyno.experiments.isolation import CpuSplit
from pgdyno.generators.step_run import StepResult
from pgdyno.meters import MeterModule
from pgdyno.model.errors import MeasurementError
from pgdyno.model.experiment import ArmBlock, Block, Design, Slice
from pgdyno.model.workload import Step, Workload
from pgdyno.server.processes import HostCpu, read_host_cpu
from pgdyno.studies._insert_benchmark import CLEAN_UP

_QUERIES = ("market", "register", "pdc", "point")
_LATENCIES = ("p50", "p95", "p99", "p999", "max")
_SERVER_CPU, _CLIENT_CPU = "server_cpu_us_per_transaction", "client_cpu_us_per_transaction"


@dataclass(frozen=True)
class Observed:
    """A step as it went."""

    result: StepResult
    started_ns: int
    ended_ns: int
    delta: Readings
    host: tuple[HostCpu, HostCpu]
    own_cpu_s: float


def measure_step(
    loads: Loads,
    arm: Arm,
    workload: Workload,
    round_index: int,
    design: Design,
    meters: Sequence[MeterModule],
) -> Block:
    """Run one step on an arm and return it as a block of this arm alone.

    Raises: GeneratorFailedError; MeasurementError if the step has done nothing.
    """
    step = workload.step
    assert step is not None  # noqa: S101 — callers have asked
    seed = design.seed * 1000 + round_index  # the same for all arms, another one in every pass
    if step.settle_s is not None:
        _clean_up(loads, arm, workload, step, seed)
    observed = _observe(loads, arm, workload, seed, meters)
    audit = _audit(observed, loads.split)
    return Block(
        workload=workload.name,
        round=round_index,
        index=0,
        started_ns=observed.started_ns,
        arms=(_arm_block(arm, workload, step, observed, meters),),
        void=void_reason(audit, design.thresholds),
        audit=audit,
    )


def _clean_up(loads: Loads, arm: Arm, workload: Workload, step: Step, seed: int) -> None:
    """Vacuum and checkpoint, and wait until the step is to start."""
    began = time.monotonic()
    loads.step(arm, replace(workload, name=CLEAN_UP, step=replace(step, duration_s=None)), seed)
    time.sleep(max(0.0, (step.settle_s or 0.0) - (time.monotonic() - began)))


def _observe(
    loads: Loads, arm: Arm, workload: Workload, seed: int, meters: Sequence[MeterModule]
) -> Observed:
    cpus = {*loads.split.server, *loads.split.client}
    own_cpu_s = time.process_time()
    before, host, started_ns = read_meters(meters, arm), read_host_cpu(cpus), time.time_ns()
    result = loads.step(arm, workload, seed)
    ended_ns, host_after, after = time.time_ns(), read_host_cpu(cpus), read_meters(meters, arm)
    delta = {**difference(before, after), _CLIENT_CPU: (result.client_cpu_us,)}
    return Observed(result, started_ns, ended_ns, delta, (host, host_after), time.process_time() - own_cpu_s)


def _arm_block(
    arm: Arm, workload: Workload, step: Step, observed: Observed, meters: Sequence[MeterModule]
) -> ArmBlock:
    result = observed.result
    operations, elapsed_s = _operations(step, result), result.running_s + result.chores_s
    if operations == 0 or elapsed_s == 0:
        raise MeasurementError(f"{workload.name} completed nothing on the server of {arm.variant.name}")
    role = result.roles["insert" if step.operations == "rows" else "query"]
    values = {"throughput_tps": operations / elapsed_s}
    values |= {f"latency_ms_{name}": role.latency_ms[name] for name in _LATENCIES}
    values |= {
        meter.METER.metric: meter.value(observed.delta[meter.METER.metric], operations)
        for meter in meters
        if meter.METER.metric in observed.delta
    }
    if step.target_rows_per_s is not None:
        inserted = result.roles["insert"].transactions * step.rows_per_commit
        values["background_rate_share"] = inserted / elapsed_s / step.target_rows_per_s
    return ArmBlock(arm.variant.name, operations, elapsed_s, values)


def _operations(step: Step, result: StepResult) -> int:
    if step.indexed_rows is not None:
        return step.indexed_rows
    if step.operations == "rows":
        return result.roles["insert"].transactions * step.rows_per_commit
    return sum(result.roles["query"].statements.get(name, 0) for name in _QUERIES)


def _audit(observed: Observed, split: CpuSplit) -> dict[str, float]:
    before, after = observed.host
    wall_s = (observed.ended_ns - observed.started_ns) / 1e9
    server_us, client_us = sum(observed.delta.get(_SERVER_CPU, ())), observed.result.client_cpu_us
    use = HostUse(
        wall_s=wall_s,
        busy_s=after.busy_s - before.busy_s,
        steal_s=after.steal_s - before.steal_s,
        ours_s=(server_us + client_us) / 1e6 + observed.own_cpu_s,
        client_s=client_us / 1e6,
        cpus=len({*split.server, *split.client}),
        client_cpus=len(split.client) if split.is_isolated else None,
    )
    whole = Slice(0, observed.started_ns, observed.ended_ns, ())
    return audit_block([whole], wall_s, use)
