"""From raw observations to blocks: debts, and arms that did nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from pgdyno.base.errors import MeasurementError
from pgdyno.host.host import HostCpu
from pgdyno.measure.arenas.arm import meter_values
from pgdyno.measure.blocks.observation import ObservedArm, ObservedBlock, ObservedRun, build_blocks
from pgdyno.measure.blocks.transactions import Transactions
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.measure.meters import load as load_meters
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.metric import CLIENT_CPU, SERVER_CPU, TAIL_MEAN_ALONE
from pgdyno.model.experiments.slices import Slice
from pgdyno.model.variants.variant import Variant

POOL = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
S = 1_000_000_000
SPLIT = CpuSplit((0,), (1,), is_isolated=True)
DESIGN = replace(Design(), slice_s=1.0, head_s=0.0)
METRICS_OF = partial(meter_values, list(load_meters()))


def arm(name: str, at_s: list[float], debt_us: float = 0.0) -> ObservedArm:
    completed = np.array([round(second * S) for second in at_s], dtype=np.int64)
    done = Transactions(completed, np.full(len(at_s), 1000, dtype=np.int64))
    return ObservedArm(Variant(name), done, {SERVER_CPU: (debt_us,)} if debt_us else {})


def run_of(*arms: ObservedArm) -> ObservedRun:
    """One block: a's slice lasts from 10 s to 11 s, b's from 11 s to 12 s."""
    slices = (Slice(0, 10 * S, 11 * S, (0, 0)), Slice(1, 11 * S, 12 * S, (0, 0)))
    return ObservedRun("w", 0, arms, [ObservedBlock(10 * S, slices, (), None, 0.0)])


def test_the_warm_ups_part_of_a_checkpoint_is_not_charged_to_the_blocks() -> None:
    # Two of five transactions fell into the block: 2/5 of 1 s of checkpoint CPU lengthen its 1 s.
    writer = arm("a", [8.0, 8.5, 9.0, 10.2, 10.4], debt_us=1_000_000)
    (block,) = build_blocks(run_of(writer, arm("b", [11.5])), DESIGN, SPLIT)
    assert block.arms[0].values["throughput_tps"] == pytest.approx(2 / 1.4)


def test_meters_and_throughput_are_of_one_execution_where_a_transaction_has_several() -> None:
    # One transaction of 500 executions in 1 s, with 0.2 s of the server's CPU.
    one, other = Slice(0, 10 * S, 11 * S, (0, 0)), Slice(1, 11 * S, 12 * S, (0, 0))
    deltas = ({SERVER_CPU: (200_000.0,)}, {SERVER_CPU: (100_000.0,)})
    observed = ObservedBlock(10 * S, (one, other), deltas, None, 0.0)
    run = replace(
        run_of(arm("a", [10.5]), arm("b", [11.5])), blocks=[observed], executions=500, metrics_of=METRICS_OF
    )
    (block,) = build_blocks(run, DESIGN, SPLIT)
    values = block.arms[0].values
    assert values["throughput_tps"] == pytest.approx(500.0)
    assert values[SERVER_CPU] == pytest.approx(200_000 / 500)
    assert not [name for name in values if name.startswith("latency")]


def test_the_cpu_time_of_a_load_host_does_not_hide_what_others_take_here() -> None:
    # 10 s of two CPUs: 6 s busy, of which the servers 4; the load took 2 s, here or on another host.
    deltas = ({SERVER_CPU: (2e6,), CLIENT_CPU: (1e6,)},) * 2
    host = HostCpu(0.0, 0.0, 0.0), HostCpu(10.0, 6.0, 0.0)
    slices = run_of(arm("a", []), arm("b", [])).blocks[0].slices
    run = replace(
        run_of(arm("a", [10.5]), arm("b", [11.5])), blocks=[ObservedBlock(10 * S, slices, deltas, host, 0.0)]
    )
    elsewhere = CpuSplit((0, 1), (), is_isolated=True, load_host_threads=(1,))
    (here,), (there,) = (build_blocks(run, DESIGN, split) for split in (SPLIT, elsewhere))
    assert here.audit["foreign_cpu_share"] == pytest.approx(0.0)
    assert there.audit["foreign_cpu_share"] == pytest.approx(2 / 20)
    assert there.audit["client_saturation_share"] == pytest.approx(0.2)


def watched(*stolen: float) -> tuple[Slice, ...]:
    """One window per share, of 1 s for a and 1 s for b, from 10 s on; a server uses all of its turn."""
    return tuple(
        Slice(arm, (10 + 2 * w + arm) * S, (11 + 2 * w + arm) * S, (S * (1 - arm), S * arm), None,
              *((share, 0.0) if arm else ()))
        for w, share in enumerate(stolen) for arm in (0, 1)
    )  # fmt: skip


def test_a_disturbed_window_counts_for_nothing_but_meters() -> None:
    # a completes 2, then 1 in the disturbed window, then 2; each with half a second of the server's CPU.
    arms = [arm("a", [10.2, 10.4, 12.5, 14.2, 14.4], debt_us=1_000_000), arm("b", [11.5, 13.5, 15.5])]
    deltas = ({SERVER_CPU: (2_500_000.0,)}, {SERVER_CPU: (3_000_000.0,)})
    observed = ObservedBlock(10 * S, watched(0.01, 0.5, 0.03), deltas, None, 0.0)
    run = ObservedRun("w", 0, arms, [observed], metrics_of=METRICS_OF)
    (block,) = build_blocks(run, DESIGN, SPLIT)
    assert block.left_out == (2, 3)
    assert block.void is None
    assert block.audit["left_out_share"] == pytest.approx(1 / 3)
    assert block.audit["steal_share"] == pytest.approx(0.02)
    values = block.arms[0].values
    assert block.arms[0].transactions == 4
    # 4 in 2 s of its own, and 4/5 of the checkpoint's second of CPU; the server's CPU over all five.
    assert values["throughput_tps"] == pytest.approx(4 / (2 + 0.8))
    assert values[SERVER_CPU] == pytest.approx((2_500_000 + 1_000_000) / 5)


def test_a_turn_that_load_hosts_may_have_begun_apart_is_left_out() -> None:
    # Of six turns of a, 1 s long, the last one may have begun 60 ms apart, and had twice the rate for it.
    slices = tuple(
        Slice(
            number % 2, (10 + number) * S, (11 + number) * S, (0, 0), apart_ns=S * 6 // 100 * (number == 10)
        )
        for number in range(12)
    )
    arms = [arm("a", [10.5, 12.5, 14.5, 16.5, 18.5, 20.4, 20.6]), arm("b", [11.5 + 2 * n for n in range(6)])]
    run = ObservedRun("w", 0, arms, [ObservedBlock(10 * S, slices, (), None, 0.0)])
    (block,) = build_blocks(run, DESIGN, SPLIT)
    assert (block.left_out, block.void) == ((10,), None)
    assert block.audit["apart_share"] == pytest.approx(1 / 6)
    assert [one.transactions for one in block.arms] == [5, 6]
    assert [one.values["throughput_tps"] for one in block.arms] == [1.0, 1.0]


def test_the_busiest_of_several_load_hosts_is_saturated() -> None:
    # In 10 s one of two hosts used 9 of 10 s of its thread, the other 2 of 20 s of its two.
    deltas = ({CLIENT_CPU: (4e6, 1.5e6)}, {CLIENT_CPU: (5e6, 0.5e6)})
    host = HostCpu(0.0, 0.0, 0.0), HostCpu(10.0, 6.0, 0.0)
    slices = run_of(arm("a", []), arm("b", [])).blocks[0].slices
    run = replace(
        run_of(arm("a", [10.5]), arm("b", [11.5])), blocks=[ObservedBlock(10 * S, slices, deltas, host, 0.0)]
    )
    (block,) = build_blocks(run, DESIGN, CpuSplit((0, 1), (), is_isolated=True, load_host_threads=(1, 2)))
    assert block.audit["client_saturation_share"] == pytest.approx(0.9)


def test_a_block_that_is_mostly_disturbed_is_judged_as_a_whole() -> None:
    arms = [arm("a", [10.5, 12.5, 14.5, 16.5, 18.5, 20.5]), arm("b", [11.5, 13.5, 15.5, 17.5, 19.5, 21.5])]
    calm, disturbed = watched(0.0, 0.0, 0.0, 0.0), watched(0.4, 0.4, 0.4)
    later = tuple(replace(one, start_ns=one.start_ns + 4 * S, end_ns=one.end_ns + 4 * S) for one in calm)
    blocks = [ObservedBlock(10 * S, one, (), None, 0.0) for one in (disturbed, later)]
    first, second = build_blocks(ObservedRun("w", 0, arms, blocks), DESIGN, SPLIT)
    assert first.void == "40.0\xa0% of the CPU time was stolen by the hypervisor (limit 10\xa0%)"
    assert (first.left_out, second.left_out, second.void) == ((), (), None)


def test_an_arm_that_did_nothing_but_in_what_is_left_out_ends_the_experiment() -> None:
    arms = [arm("a", [12.5]), arm("b", [11.5, 13.5, 15.5])]
    observed = ObservedBlock(10 * S, watched(0.01, 0.5, 0.03), (), None, 0.0)
    with pytest.raises(MeasurementError, match="a completed no transaction in a block"):
        build_blocks(ObservedRun("w", 0, arms, [observed]), DESIGN, SPLIT)


def test_an_arm_that_completed_nothing_ends_the_experiment_instead_of_vanishing_from_it() -> None:
    with pytest.raises(MeasurementError) as caught:
        build_blocks(run_of(arm("a", [10.5]), arm("b", [9.0])), DESIGN, SPLIT)
    assert caught.value.message == "b completed no transaction in a block"
    assert "--block" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("settings", "other", "void"),
    [
        ({POOL: "600"}, {POOL: "600"}, ["memory on huge pages differs"]),
        ({POOL: "600"}, {POOL: "600", "jit": "off"}, []),  # which may be why
        ({"jit": "off"}, {"jit": "off"}, []),  # transparent ones come when the kernel finds some
    ],
)
def test_servers_that_share_a_pool_and_are_set_alike_have_to_have_pages_both(
    settings: dict[str, str], other: dict[str, str], void: list[str]
) -> None:
    arms = [arm("a", [10.5]), arm("b", [11.5])]
    run = run_of(*(replace(one, variant=Variant(one.variant.name, values))
                   for one, values in zip(arms, (settings, other), strict=True)))  # fmt: skip
    readings = tuple({"huge_page_bytes": (size,)} for size in (644e6, 0.0))
    blocks = [replace(block, deltas=readings) for block in run.blocks]
    run = replace(run, blocks=blocks, metrics_of=METRICS_OF)
    (block,) = build_blocks(run, DESIGN, SPLIT)
    assert [reason.partition(" between")[0] for reason in block.void_reasons] == void


def stretch(arm: int, begin_s: float, stolen: float = 0.0) -> Slice:
    """Return a turn of 2 s with what the hypervisor took meanwhile."""
    return Slice(arm, int(begin_s * S), int((begin_s + 2) * S), (0, 0), None, stolen, 0.0)


@pytest.mark.parametrize("stolen", [0.0, 0.3])
def test_a_stretch_alone_gives_the_tail_of_its_own_transactions_if_nobody_disturbed_it(stolen: float) -> None:
    # In its stretch b completes twenty transactions of 1 ms and one of 9 ms; the block has one of each arm.
    late = [21.0 + i / 100 for i in range(20)]
    b = arm("b", [11.5, *late, 22.0])
    latency_us = np.array([1000] * 21 + [9000], dtype=np.int64)
    slow = replace(b, transactions=replace(b.transactions, latency_us=latency_us))
    run = replace(
        run_of(arm("a", [10.5, 24.0]), slow),
        stretches=(stretch(1, 20.5), stretch(0, 23.0, stolen)),
    )
    (block,) = build_blocks(run, DESIGN, SPLIT)
    found = [one.values.get(TAIL_MEAN_ALONE) for one in block.arms]
    # The slowest 5 % of 21 are 1.05 of them: (9 + 0.05 · 1) / 1.05 ms.
    assert found == ([None, None] if stolen else [1.0, pytest.approx(9.05 / 1.05)])
    assert block.void is None
    assert [one.transactions for one in block.arms] == [1, 1]


@pytest.mark.parametrize(("rested_s", "lag"), [(0.0, 0.25), (0.5, 0.0)])
def test_a_rest_while_counts_are_read_is_no_delay_of_the_driver(rested_s: float, lag: float) -> None:
    slices = (
        Slice(0, 10 * S, 11 * S, (0, 0), 11 * S),
        Slice(1, 23 * S // 2, 25 * S // 2, (0, 0), 25 * S // 2),
    )
    host = HostCpu(10.0, 0.0, 0.0), HostCpu(12.5, 2.0, 0.0)
    observed = ObservedBlock(10 * S, slices, ({}, {}), host, 0.0, rested_s=rested_s)
    run = replace(run_of(arm("a", [10.5]), arm("b", [12.0])), blocks=[observed], is_drained=True)
    (block,) = build_blocks(run, DESIGN, SPLIT)
    assert block.audit["schedule_lag_share"] == pytest.approx(lag)
