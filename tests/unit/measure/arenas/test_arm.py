"""What others took of the CPUs in each window of turns."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import chdir
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import pytest

from pgdyno.host.host import HostCpu
from pgdyno.host.machine.cpu_times import WritebackThreads
from pgdyno.load.turns import Turns
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.measure.observe import CpuReading, Observer, observe_block
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.slices import Slice

SPLIT = CpuSplit((0,), (1,), is_isolated=True)
NONE = WritebackThreads()
LAST = Slice(0, 1, 2, (3, 4))


def reading(at_s: float, busy_s: float, steal_s: float, ours_s: float) -> CpuReading:
    return CpuReading(HostCpu(at_s, busy_s, steal_s), ours_s, cpus=2)


def test_shares_are_of_the_time_of_all_cpus() -> None:
    # In 2 s of 2 CPUs: 1 s stolen, 2.4 s busy of which 2 s are ours.
    closed = reading(10, 100, 5, 50).closing(LAST, reading(12, 102.4, 6, 52))
    assert (closed.arm, closed.start_ns, closed.end_ns, closed.server_cpu_ns) == (0, 1, 2, (3, 4))
    assert closed.steal_share == pytest.approx(0.25)
    assert closed.foreign_cpu_share == pytest.approx(0.1)


def test_ticks_that_lag_behind_our_own_clocks_are_no_negative_share() -> None:
    closed = reading(0, 0, 0, 0).closing(LAST, reading(1, 1.0, 0, 1.03))
    assert closed.foreign_cpu_share == 0.0


def test_threads_that_wrote_at_either_end_of_a_window_are_no_disturbance() -> None:
    # Of 3 s busy in 2 s of 2 CPUs, 1 s is ours; 0.4 s and 0.2 s are threads' that wrote, 0.5 s another's.
    began = {7: (10.0, True), 8: (20.0, False), 9: (30.0, False), 10: (5.0, True)}
    ended = {7: (10.4, False), 8: (20.2, True), 9: (30.5, False), 11: (8.0, True)}
    first = CpuReading(HostCpu(0, 0, 0), 0.0, 2, began)
    closed = first.closing(LAST, CpuReading(HostCpu(2, 3.0, 0), 1.0, 2, ended))
    assert closed.foreign_cpu_share == pytest.approx((3.0 - 1.0 - 0.6) / 4)


def test_the_kernels_writer_of_the_data_is_found_at_work() -> None:
    device = Path("/var/tmp").stat().st_dev  # where temporary files are on a disk
    if not Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").exists():
        pytest.skip("/var/tmp is on no block device")
    # This process stands for the postmaster: it can be asked for its working directory.
    ends_s, cpus = time.monotonic() + 30, range(os.cpu_count() or 1)
    with TemporaryDirectory(dir="/var/tmp") as place, chdir(place), Path("pages").open("wb") as file:
        while time.monotonic() < ends_s:  # another worker may have taken the work since they were found
            threads = WritebackThreads.of([os.getpid()])
            before = threads.read(cpus)
            file.write(os.urandom(1 << 20))
            os.fsync(file.fileno())
            after = threads.read(cpus)
            if any(is_ours and used_s > before[pid][0] for pid, (used_s, is_ours) in after.items()):
                return
    pytest.fail("no thread of the data's device used any CPU time while pages were written")


@dataclass
class NoServer:
    """An arm whose server runs on another host, with a load that uses no time."""

    def server_pids(self) -> tuple[int, ...]:
        return ()

    def client_cpu_us(self) -> tuple[float, ...]:
        return (0.0,)


def test_a_reading_counts_ourselves_among_ours() -> None:
    first = CpuReading.read([cast("Arm", NoServer())], SPLIT, NONE)
    spent = sum(i * i for i in range(300_000))  # some milliseconds of our own
    later = CpuReading.read([cast("Arm", NoServer())], SPLIT, NONE)
    assert spent > 0
    assert later.ours_s > first.ours_s
    assert later.host.at_s > first.host.at_s
    assert later.cpus == 2


@dataclass
class BusyLoad(NoServer):
    """The same with a load that has used an hour."""

    def client_cpu_us(self) -> tuple[float, ...]:
        return (1.2e9, 2.4e9)


def test_the_time_of_a_load_host_is_none_of_ours() -> None:
    elsewhere = CpuSplit((0, 1), (), is_isolated=True, load_host_threads=(2, 2))
    assert CpuReading.read([cast("Arm", BusyLoad())], SPLIT, NONE).ours_s > 3600
    assert CpuReading.read([cast("Arm", BusyLoad())], elsewhere, NONE).ours_s < 3600


class FakeTurns:
    """Turns that take no time."""

    def take(self, order: Sequence[int], **_: object) -> Iterator[Slice]:
        return (Slice(arm, i, i + 1, (0, 0)) for i, arm in enumerate(order))


def test_the_last_slice_of_each_window_has_its_shares_and_is_stored_with_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Each reading comes a second after the one before; the n-th second loses n tenths of two CPUs.
    at = count()

    def read(*_: object) -> CpuReading:
        n = next(at)
        return reading(n, 0.0, 0.2 * n * (n + 1) / 2, 0.0)

    monkeypatch.setattr(CpuReading, "read", read)
    arms: list[Any] = [NoServer(), NoServer()]
    observer = Observer(Design(block_s=3.0), (), SPLIT, np.random.default_rng(1))
    kept: list[Slice] = []
    observed = observe_block(observer, arms, cast("Turns", FakeTurns()), kept.append)
    assert tuple(kept) == observed.slices
    shares = {i: one.steal_share for i, one in enumerate(kept) if one.steal_share is not None}
    assert shares == pytest.approx({19: 0.1, 39: 0.2, 59: 0.3})
