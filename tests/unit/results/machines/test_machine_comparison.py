"""Two machines of which the second is a known number of times as fast."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.golden.synthetic import READ_ONLY, READ_WRITE, experiment
from tests.golden.synthetic_clients import CLIENTS, LOAD
from tests.golden.synthetic_clients import experiment as of_clients
from tests.golden.synthetic_steps import experiment as of_ten_steps
from tests.golden.synthetic_workers import experiment as of_workers

from pgdyno.base.facts import to_document
from pgdyno.model.experiments.experiment import ArmBlock, Experiment
from pgdyno.model.experiments.machine_comparison import ComparedMetric, DerivedRatio, MachineComparison
from pgdyno.model.experiments.verdict import Decision
from pgdyno.model.variants.variant import Variant
from pgdyno.results.machines.machine_comparison import compare_machines

FACTORS = {"throughput_tps": 1.5, "server_cpu_us_per_transaction": 0.5, "latency_ms_p99": 0.9}
TPS, CPU, P99 = FACTORS


def faster(base: Experiment, factors: Mapping[str, float] = FACTORS, **changes: Any) -> Experiment:
    """Return the same experiment on a machine that is so much faster, up to noise of its own of 1 %."""
    noise = random.Random(5)  # noqa: S311 — a fixture

    def arm(one: ArmBlock) -> ArmBlock:
        values = {
            name: value * factors.get(name, 1.0) * math.exp(noise.gauss(0, 0.01))
            for name, value in one.values.items()
        }
        return replace(one, values=values)

    blocks = tuple(replace(block, arms=tuple(map(arm, block.arms))) for block in base.blocks)
    return replace(base, **{"id": "faster", "blocks": blocks, **changes})


def metric(found: MachineComparison, workload: str, variant: str, name: str) -> ComparedMetric:
    (one,) = [m for m in found.metrics if (m.workload, m.variant, m.metric) == (workload, variant, name)]
    return one


def with_frequency(base: Experiment, mhz: float, source: str = "/proc/cpuinfo") -> Experiment:
    cpu = {**base.host["cpu"], "frequency_mhz": {"value": mhz, "source": source}}
    return replace(base, host={**base.host, "cpu": cpu})


@pytest.mark.parametrize("workload", [READ_ONLY, READ_WRITE])
@pytest.mark.parametrize("variant", ["default", "plan"])
def test_the_planted_ratio_of_every_metric_lies_in_its_interval(workload: str, variant: str) -> None:
    found = compare_machines(experiment(), faster(experiment()))
    assert len(found.metrics) == 2 * 2 * 3
    for name, factor in FACTORS.items():
        one = metric(found, workload, variant, name)
        interval = one.verdict.interval
        assert interval is not None
        assert interval.low < factor < interval.high
        assert one.a is not None
        assert one.b is not None
        assert one.b / one.a == pytest.approx(interval.point)
        assert one.verdict.decision is Decision.BETTER or name == P99


def test_means_are_geometric_and_over_rounds_without_void_blocks() -> None:
    base = experiment()
    rounds: dict[int, list[float]] = {}
    for block in base.blocks:
        if block.workload == READ_ONLY and block.void is None:
            rounds.setdefault(block.round, []).append(math.log(block.arms[0].values[TPS]))
    assert sorted(map(len, rounds.values())) == [1, 2, 2, 2, 2, 2]
    mean = math.exp(math.fsum(math.fsum(of) / len(of) for of in rounds.values()) / 6)
    one = metric(compare_machines(base, faster(base)), READ_ONLY, "default", TPS)
    assert one.a == pytest.approx(mean)
    assert (one.verdict.rounds, one.verdict.blocks, one.verdict.void_blocks) == (6, 22, 2)


def test_comparisons_are_corrected_for_their_number() -> None:
    found = compare_machines(experiment(), faster(experiment()))
    assert all(one.verdict.p_adjusted is not None for one in found.metrics)
    smallest = min(found.metrics, key=lambda one: (one.metric != TPS, one.verdict.p_value or 1))
    assert smallest.verdict.p_adjusted == pytest.approx(4 * (smallest.verdict.p_value or 0))


def test_equal_machines_are_not_called_different() -> None:
    same = compare_machines(experiment(), faster(experiment(), {}))
    assert {one.verdict.decision for one in same.metrics} <= {Decision.EQUIVALENT, Decision.INCONCLUSIVE}


def derived(ratios: tuple[DerivedRatio, ...], title: str) -> DerivedRatio:
    return next(one for one in ratios if one.title == title and one.workload == READ_ONLY)


def test_prices_scale_ratio_and_interval() -> None:
    found = compare_machines(experiment(), faster(experiment()), {"A": 0.50, "B": 0.25})
    one, measured = derived(found.per_price, "transactions per $"), found.metrics[0]
    assert measured.verdict.interval is not None
    assert measured.a is not None
    assert one.a == pytest.approx(measured.a * 3600 / 0.50)
    assert one.b / one.a == pytest.approx(one.ratio.point)
    assert one.ratio.low == pytest.approx(2 * measured.verdict.interval.low)
    assert one.ratio.high == pytest.approx(2 * measured.verdict.interval.high)
    assert one.ratio.level == 0.95
    assert [side.price_per_hour for side in found.sides] == [0.50, 0.25]
    assert compare_machines(experiment(), faster(experiment()), {"A": 0.50}).per_price == ()


def test_frequencies_scale_throughput_and_cycles_where_both_are_known() -> None:
    a, b = with_frequency(experiment(), 2000.0), with_frequency(faster(experiment()), 3000.0)
    found = compare_machines(a, b)
    rate = derived(found.per_frequency, "throughput per GHz (per second)")
    cycles = derived(found.per_frequency, "server cycles for each of the transactions (thousands)")
    tps, cpu = (metric(found, READ_ONLY, "default", name) for name in (TPS, CPU))
    assert tps.a is not None
    assert cpu.b is not None
    assert rate.a == pytest.approx(tps.a / 2)
    assert rate.ratio.point == pytest.approx((tps.verdict.effect or 0) * 2 / 3)
    assert cycles.b == pytest.approx(cpu.b * 3)
    assert cycles.ratio.point == pytest.approx((cpu.verdict.effect or 0) * 3 / 2)
    assert compare_machines(experiment(), b).per_frequency == ()


@pytest.mark.parametrize("mhz", [0.0, -1.0, "fast", math.inf])
def test_an_impossible_frequency_is_none(mhz: Any) -> None:
    a, b = with_frequency(experiment(), mhz), with_frequency(faster(experiment()), 3000.0)
    assert compare_machines(a, b).per_frequency == ()


def test_frequencies_of_different_kinds_are_a_warning() -> None:
    highest = "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"
    found = compare_machines(
        with_frequency(experiment(), 2000.0), with_frequency(faster(experiment()), 3000.0, highest)
    )
    said = f"the frequencies are not comparable: A's is from /proc/cpuinfo, B's from {highest}"
    assert said in found.warnings


def test_clients_are_compared_one_number_at_a_time_with_what_the_client_takes() -> None:
    found = compare_machines(of_clients(), faster(of_clients(), {TPS: 2.0, CPU: 0.5}))
    rates = [one for one in found.metrics if one.metric == TPS]
    assert [(one.load, one.clients) for one in rates] == [(LOAD, clients) for clients in CLIENTS]
    assert all(1.9 < (one.verdict.effect or 0) < 2.1 for one in rates)
    for one in rates:
        a, b = one.client_shares
        assert a == pytest.approx(0.25)  # 25 of 100 µs
        assert b == pytest.approx(0.40, abs=0.01)  # 25 of 62.5


def test_workers_are_compared_one_number_at_a_time_and_told_from_clients() -> None:
    found = compare_machines(of_workers(), faster(of_workers(), {TPS: 2.0}))
    rates = [json.loads(json.dumps(to_document(one))) for one in found.metrics if one.metric == TPS]
    assert [(one["load"], one["clients"], one["level"], one["unit"]) for one in rates] == [
        *(("count", 1, workers, "workers") for workers in range(5)),
        *(("count, 2 clients at once", 2, workers, "workers") for workers in range(5)),
    ]
    by_clients = compare_machines(of_clients(), faster(of_clients())).metrics
    assert {(one.level == one.clients, one.unit) for one in by_clients} == {(True, "clients")}


def test_a_missed_background_rate_is_not_compared() -> None:
    steps = of_ten_steps()
    found = compare_machines(steps, replace(steps, id="other"))
    missed = metric(found, "insert-benchmark-qr1000", "18-worker", TPS).verdict
    assert (missed.effect, missed.interval) == (None, None)
    assert missed.reason == (
        "A missed the background rate in 6 of 6 passes: 91\xa0% of it at worst (95\xa0% is required); "
        "B missed the background rate in 6 of 6 passes: 91\xa0% of it at worst (95\xa0% is required)"
    )
    kept = metric(found, "insert-benchmark-l.x", "17", TPS)
    assert (kept.operation, kept.verdict.effect) == ("rows", 1.0)


def test_what_must_not_be_overlooked_is_said() -> None:
    unsafe = (Variant("default", {"fsync": "off"}), experiment().variants[1])
    a = replace(experiment(), variants=unsafe, is_complete=False)
    found = compare_machines(a, faster(a))
    assert found.warnings[:2] == (
        "NOT DURABLE: default on A: fsync=off",
        "NOT DURABLE: default on B: fsync=off",
    )
    assert found.warnings[-2:] == (
        "A was interrupted: it did not run to its planned end",
        "B was interrupted: it did not run to its planned end",
    )


def test_a_machine_that_was_disturbed_throughout_is_named_though_its_limit_was_lifted() -> None:
    thresholds = replace(experiment().design.thresholds, steal_share=1.0)
    design = replace(experiment().design, thresholds=thresholds)
    blocks = tuple(replace(block, audit={"steal_share": 0.263}) for block in faster(experiment()).blocks)
    found = compare_machines(experiment(), faster(experiment(), design=design, blocks=blocks))
    assert "B was disturbed: the hypervisor took 26\xa0% of its CPU time" in found.warnings
    assert not [one for one in found.warnings if one.startswith("A was disturbed")]


def test_that_a_side_was_simulated_comes_first() -> None:
    note = "SIMULATED: its rates were made up"
    unsafe = (Variant("default", {"fsync": "off"}), experiment().variants[1])
    measured = replace(experiment(), variants=unsafe)
    found = compare_machines(measured, faster(measured, notes=(note,)))
    assert found.warnings[0] == "B IS SIMULATED: its rates were made up"
    assert found.sides[1].notes == (note,)
    both = replace(experiment(), notes=(note,))
    assert compare_machines(both, faster(both)).warnings[:2] == (
        "A IS SIMULATED: its rates were made up",
        "B IS SIMULATED: its rates were made up",
    )


def test_only_notes_that_differ_are_kept() -> None:
    found = compare_machines(experiment(), faster(experiment(), notes=(experiment().notes[0], "noisy")))
    assert [side.notes for side in found.sides] == [(experiment().notes[1],), ("noisy",)]
    assert found.sides[0].machine == "Example CPU 9000 @ 2.60GHz, 8 CPUs"
    assert found.sides[0].server == "PostgreSQL 18.6"


def test_what_decides_and_is_unknown_comes_before_all_other_differences() -> None:
    found = compare_machines(experiment(), faster(experiment()))
    assert [one.subject for one in found.differences[:2]] == [
        f"{READ_ONLY}: load generator",
        f"{READ_WRITE}: load generator",
    ]


def test_of_a_machine_that_was_emulated_no_speed_is_told() -> None:
    emulated = faster(with_frequency(experiment(), 3000), emulated_machine="aarch64")
    found = compare_machines(with_frequency(experiment(), 3000), emulated, {"A": 1.0, "B": 2.0})
    assert found.warnings[0].startswith("B RAN EMULATED: its server was built for aarch64.")
    for one in found.metrics:
        assert one.a is not None
        assert (one.b, one.verdict.interval, one.verdict.decision) == (None, None, Decision.INCONCLUSIVE)
        assert "B ran emulated" in one.verdict.reason
    assert (found.per_price, found.per_frequency) == ((), ())
