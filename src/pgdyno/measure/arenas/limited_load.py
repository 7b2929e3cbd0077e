"""Loads that end a trial as soon as the server exceeds a limit.

After each turn, the transactions since the last one are read, and the peak memory of the server's processes
during the turn. If either exceeds a limit, the load ends at once, and the arena restores the settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

import numpy as np

from pgdyno.load.transaction_log import TransactionLog
from pgdyno.load.turns import Servers, Turns
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.load import Loads
from pgdyno.measure.blocks.transactions import parse
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.slices import HostLog, Slice
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.tuning.tuning import OverLimitError, OwnerLimits
from pgdyno.postgres.process.processes import memory_bytes

_ENOUGH = 100  # of fewer transactions, the 99th percentile is about the maximum
_SURELY_OVER = 2  # this many of the first hundred over the limit: their 99th percentile is, too
_SAMPLE_S = 0.2  # between memory samples; one takes microseconds per process


@dataclass(frozen=True)
class LimitedLoads(Loads):
    """Loads with limits for all variants except ``exempt`` ones, such as the configuration as found."""

    limits: OwnerLimits
    exempt: frozenset[str]

    @classmethod
    def of(cls, loads: Loads, limits: OwnerLimits, exempt: frozenset[str]) -> LimitedLoads:
        """Return the same loads with limits."""
        plain = (loads.workspace, loads.find_generator, loads.find_driver, loads.scratch, loads.split)
        return cls(*plain, limits, exempt, placement=loads.placement)

    def prepare(
        self,
        arms: Sequence[Arm],
        labels: Sequence[str],
        workload: Workload,
        design: Design,
        duration_s: float,
        order: Sequence[int],
    ) -> Turns:
        """Return turns that raise OverLimitError for an arm over a limit."""
        turns = super().prepare(arms, labels, workload, design, duration_s, order)
        watches = {
            index: Watch(
                self.limits,
                workload.name,
                arm,
                TransactionLog(self.log_prefix(label)),
                is_exempt=arm.variant.name in self.exempt,
            )
            for index, (arm, label) in enumerate(zip(arms, labels, strict=True))
        }
        return LimitedTurns(turns, watches)


@dataclass
class Watch:
    """Checks one arm's limits in one trial of a workload.

    An exempt arm is sampled like the others, so that all have the same overhead, but is never over a limit.
    """

    limits: OwnerLimits
    workload: str
    arm: Arm
    log: TransactionLog
    is_exempt: bool = False
    _latencies_us: list[int] = field(default_factory=list, init=False)
    _peak_bytes: int = field(default=0, init=False)

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Sample memory during the load: a statement's memory is freed when it ends."""
        if self.limits.memory_bytes is None:
            yield
            return
        has_ended = Event()
        thread = Thread(target=self._sample, args=(has_ended,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            has_ended.set()
            thread.join()

    def _sample(self, has_ended: Event) -> None:
        while not has_ended.wait(_SAMPLE_S):
            self._peak_bytes = max(self._peak_bytes, memory_bytes(self.arm.server_pids()))

    def skip_transactions(self) -> None:
        """Discard the transactions so far: they ran with cold caches."""
        self.log.read_new()

    def look(self, enough: int = _ENOUGH) -> None:
        """Check memory, and the transactions since the warm-up. Raises: OverLimitError."""
        if self.is_exempt:
            return
        reason = self._over_memory() or self._over_latency(enough)
        if reason:
            raise OverLimitError(self.arm.variant.name, reason)

    def _over_memory(self) -> str:
        if self.limits.memory_bytes is None:
            return ""
        most_bytes = max(self._peak_bytes, memory_bytes(self.arm.server_pids()))
        self._peak_bytes = 0
        return self.limits.over_memory(most_bytes)

    def _over_latency(self, enough: int) -> str:
        if self.limits.latency_ms is None:
            return ""
        self._latencies_us += parse(self.log.read_new()).latency_us.tolist()
        over = sum(one > 1000 * self.limits.latency_ms for one in self._latencies_us[:enough])
        if len(self._latencies_us) < enough and over < _SURELY_OVER:
            return ""
        return self.limits.over_latency(float(np.percentile(self._latencies_us, 99)) / 1000, self.workload)


@dataclass(frozen=True)
class LimitedTurns:
    """Turns of any kind, with a check of the server's limits after each."""

    turns: Turns
    watches: dict[int, Watch]

    def warm_up(self, arm: int, duration_s: float) -> None:
        """Run the arm's load for the first time, then check its memory. Raises: OverLimitError."""
        watch = self.watches[arm]
        with watch.sampling():
            self.turns.warm_up(arm, duration_s)
        watch.skip_transactions()
        watch.look()

    def take(
        self, order: Sequence[int], *, slice_s: float, head_s: float, servers: Servers
    ) -> Iterator[Slice]:
        """Take the turns, and check each server after its turn. Raises: OverLimitError."""
        slices = iter(self.turns.take(order, slice_s=slice_s, head_s=head_s, servers=servers))
        while True:
            with ExitStack() as sampled:
                for watch in self.watches.values():
                    sampled.enter_context(watch.sampling())
                one = next(slices, None)
            if one is None:
                return
            self.watches[one.arm].look()
            yield one

    def client_cpu_us(self, arm: int) -> tuple[float, ...] | None:
        """Return the CPU time of issuing the arm's load, as ``Turns`` does."""
        return self.turns.client_cpu_us(arm)

    def pids(self, arm: int) -> tuple[int, ...]:
        """Return the PIDs of the processes that issue an arm's load."""
        return self.turns.pids(arm)

    def end(self) -> None:
        """End all loads, and check again: programs that buffer their logs have written them now.

        Raises: OverLimitError.
        """
        self.turns.end()
        for watch in self.watches.values():
            watch.look(enough=1)

    def logs(self, arm: int) -> Sequence[HostLog]:
        """Return the transactions of an arm."""
        return self.turns.logs(arm)

    def close(self) -> None:
        """End all turns still running."""
        self.turns.close()
