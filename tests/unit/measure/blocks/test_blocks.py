"""Blocks: metrics per arm, charging, and what makes a block void."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pgdyno.host.host import HostCpu
from pgdyno.measure.blocks.attribution import ArmCount
from pgdyno.measure.blocks.blocks import (
    arm_block,
    audit_block,
    audit_drains,
    charge,
    checkpoint_asymmetry,
    created_segments,
    drain_share,
    huge_page_asymmetry,
    join_trials,
    missing_workers,
    void_reason,
)
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.model.experiments.experiment import ArmBlock, Block, VoidThresholds
from pgdyno.model.experiments.slices import Slice

MS = 1_000_000


SPLIT = CpuSplit((0,), (1,), is_isolated=True)


def count(transactions: int) -> ArmCount:
    latency = np.array([1000, 2000, 3000], dtype=np.int64)
    return ArmCount(transactions, 1.0, latency, transactions)


def arm(variant: str, **values: float) -> ArmBlock:
    return ArmBlock(variant, 10, 1.0, values)


def audit_of(slices: list[Slice], slice_s: float, wall_s: float, split: CpuSplit = SPLIT) -> dict[str, float]:
    """5 s busy of which 4.9 s are ours, 0.1 s stolen, 2 s of the load, in ``wall_s``."""
    host = HostCpu(100.0, 50.0, 7.0), HostCpu(100.0 + wall_s, 55.0, 7.1)
    return audit_block(slices, slice_s, host, split, ours_s=4.9, client_s=(2.0,))


def test_work_done_while_frozen_is_charged_to_the_arm_that_did_it() -> None:
    # While A runs (1 s), B's server uses 0.2 s of the one CPU; while B runs, A's uses nothing.
    slices = [
        Slice(0, 0, 1000 * MS, (800 * MS, 200 * MS)),
        Slice(1, 1000 * MS, 2000 * MS, (0, 1000 * MS)),
    ]
    first, second = (
        arm_block(name, charge(count(transactions), slices, index, 0.0, 1), slices, index, {})
        for index, (name, transactions) in enumerate((("a", 800), ("b", 1000)))
    )
    assert first.values["throughput_tps"] == pytest.approx(1000.0)  # 800 in the 0.8 s left to it
    assert second.values["throughput_tps"] == pytest.approx(1000 / 1.2)
    assert second.values["frozen_cpu_share"] == pytest.approx(0.2 / 1.2)
    assert first.values["latency_ms_p50"] == 2.0
    assert first.values["latency_ms_tail_mean"] == 3.0  # of three the slowest


def test_segments_that_servers_created_stand_in_the_audit_if_there_are_any() -> None:
    none = arm("a")
    some = [arm("a", wal_segments_created=created) for created in (0.0, 2.0, 3.0)]
    assert created_segments(some) == {"wal_segments_created": 5.0}
    assert created_segments([none, some[0]]) == {}  # before version 18 nobody counts them


def test_a_quiet_block_counts() -> None:
    audit = audit_of([Slice(0, 0, 100 * MS, (0,))], 0.1, wall_s=4)
    assert audit["foreign_cpu_share"] == pytest.approx(0.1 / 8)
    assert audit["client_saturation_share"] == pytest.approx(0.5)
    assert void_reason(audit, VoidThresholds()) is None


def test_a_load_host_is_saturated_when_its_own_cpus_are() -> None:
    elsewhere = CpuSplit((0, 1), (), is_isolated=True, load_host_threads=(4,))
    audit = audit_of([Slice(0, 0, 100 * MS, (0,))], 0.1, wall_s=4, split=elsewhere)
    assert audit["foreign_cpu_share"] == pytest.approx(0.1 / 8)  # of the two CPUs here
    assert audit["client_saturation_share"] == pytest.approx(2.0 / 16)


def test_one_huge_slice_is_seen_as_well_as_many_late_ones() -> None:
    punctual = [Slice(0, 0, 50 * MS, (0,))] * 119
    paused = [*punctual, Slice(0, 0, 10_000 * MS, (0,))]
    assert audit_of(punctual, 0.05, wall_s=16)["schedule_lag_share"] == pytest.approx(0.0)
    # 119 * 50 ms + 10 s lasted 15.95 s; planned were 6 s.
    assert audit_of(paused, 0.05, wall_s=16)["schedule_lag_share"] == pytest.approx(15.95 / 6 - 1)


def test_turns_of_a_driver_lag_by_the_time_between_them_and_not_by_their_ends() -> None:
    # Turns of 50 ms. The first one's transactions end 10 ms late, the next turn begins 5 ms after that.
    turns = [Slice(0, 0, 50 * MS, (0,), 60 * MS), Slice(0, 65 * MS, 115 * MS, (0,), 115 * MS)]
    assert audit_of(turns, 0.05, wall_s=16)["schedule_lag_share"] == pytest.approx(5 / 100)
    of_frozen = [replace(turn, drained_ns=None) for turn in turns]
    assert audit_of(of_frozen, 0.05, wall_s=16)["schedule_lag_share"] == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("audit", "reason"),
    [
        ({"steal_share": 0.2}, "20.0\xa0% of the CPU time was stolen by the hypervisor (limit 10\xa0%)"),
        (
            {"foreign_cpu_share": 0.5},
            "50.0\xa0% of the CPU time went to other processes (limit 10\xa0%)",
        ),
        ({"schedule_lag_share": 0.3}, "30.0\xa0% longer than planned were the slices in all (limit 20\xa0%)"),
        (
            {"client_saturation_share": 0.99},
            "99.0\xa0% of the client's CPUs were busy: the client limited the result (limit 97\xa0%)",
        ),
    ],
)
def test_a_disturbed_block_is_void_and_says_why(audit: dict[str, float], reason: str) -> None:
    assert void_reason(audit, VoidThresholds()) == reason


def test_unequal_checkpoints_void_a_block_only_between_comparable_arms() -> None:
    arms = [arm("a", checkpoints=1.0), arm("b", checkpoints=0.0)]
    assert checkpoint_asymmetry(arms, is_comparable=False) is None
    assert checkpoint_asymmetry(arms, is_comparable=True) == (
        "checkpoints differ between arms with equal checkpoint settings (a 1, b 0)"
    )


@pytest.mark.parametrize(
    ("first", "second", "void"),
    [
        (
            0.0,
            644e6,
            "memory on huge pages differs between arms with equal settings (a 0\xa0B, b 614\xa0MB)",
        ),
        (
            644e6,
            0.0,
            "memory on huge pages differs between arms with equal settings (a 614\xa0MB, b 0\xa0B)",
        ),
        (644e6, 740e6, None),
        (0.0, 0.0, None),
    ],
)
def test_a_server_whose_huge_pages_somebody_else_took_voids_the_block(
    first: float, second: float, void: str | None
) -> None:
    arms = [arm(name, huge_page_bytes=size) for name, size in (("a", first), ("b", second))]
    assert huge_page_asymmetry(arms, is_comparable=True) == void
    assert huge_page_asymmetry(arms, is_comparable=False) is None
    assert huge_page_asymmetry([arm("a")], is_comparable=True) is None


def test_a_block_is_void_if_workers_that_were_asked_for_were_not_launched() -> None:
    def launched(share: float) -> list[ArmBlock]:
        return [arm("a", parallel_workers_launched_share=share)]

    assert missing_workers(launched(0.5), 4) == "only 50\xa0% of the parallel workers of a were launched"
    assert missing_workers(launched(1.0), 4) is None
    assert missing_workers(launched(0.5), None) is None  # how many there are is the server's own business
    assert missing_workers([arm("a")], 4) is None  # not counted before PostgreSQL 18


def trial(variant: str, void: str | None = None) -> Block:
    return Block("w", 2, 0, 7, (ArmBlock(variant, 1, 1.0, {}),), void)


def test_a_disturbed_trial_takes_none_of_the_others_with_it() -> None:
    block = join_trials([trial("a"), trial("b", "stolen"), trial("c")])
    assert (block.round, block.started_ns, block.void) == (2, 7, None)
    assert [arm.void for arm in block.arms] == [None, "stolen", None]
    assert block.void_for("b", "a") == "b: stolen"
    assert block.void_for("c", "a") is None
    assert block.void_reasons == ("b: stolen",)


def test_without_its_baselines_trial_a_block_is_void() -> None:
    block = join_trials([trial("a", "stolen"), trial("b")])
    assert (block.void, block.void_for("b"), block.void_reasons) == ("stolen", "stolen", ("stolen",))


def test_with_the_baselines_trial_alone_a_block_is_void() -> None:
    assert join_trials([trial("a"), trial("b", "stolen"), trial("c", "foreign")]).void == "stolen"


def test_a_block_of_one_arm_is_its_trial() -> None:
    assert join_trials([trial("a")]).void is None
    assert join_trials([trial("a", "stolen")]).void == "stolen"


def turn(arm: int, start_ms: int, drained_ms: int | None) -> Slice:
    """Return a turn of 50 ms."""
    drained_ns = None if drained_ms is None else drained_ms * MS
    return Slice(arm, start_ms * MS, (start_ms + 50) * MS, (0, 0), drained_ns)


A_SHORT_AND_A_LONG_END = [turn(0, 0, 50), turn(1, 50, 110), turn(1, 110, 160), turn(0, 160, 260)]


def test_the_share_is_of_the_turns_and_their_ends() -> None:
    # Arm 0: ends of 0 and 50 ms in 50 + 100 ms. Arm 1: 10 and 0 ms in 60 + 50 ms.
    assert drain_share(A_SHORT_AND_A_LONG_END, 0) == pytest.approx(50 / 150)
    assert drain_share(A_SHORT_AND_A_LONG_END, 1) == pytest.approx(10 / 110)


def test_a_block_has_the_largest_share_and_how_far_the_arms_are_apart() -> None:
    found = audit_drains(A_SHORT_AND_A_LONG_END)
    assert found == pytest.approx({"drain_share": 50 / 150, "drain_share_difference": 50 / 150 - 10 / 110})


def test_one_arm_alone_differs_from_none() -> None:
    assert audit_drains([turn(0, 0, 60)]) == pytest.approx({"drain_share": 10 / 60})


def test_where_ends_were_not_recorded_nothing_is_known() -> None:
    assert drain_share([turn(0, 0, None)], 0) is None
    assert audit_drains([turn(0, 0, None), turn(1, 50, None)]) == {}
