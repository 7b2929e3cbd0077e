"""Compute a profile from an arm's cycles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgdyno.profile.account import account, background_us, kernel_entries, latency, slowdown
from pgdyno.profile.advice import advice
from pgdyno.profile.cycles import Cycle, Window
from pgdyno.profile.records.profile_record import StackCount, StatementTime, TransactionProfile


@dataclass(frozen=True)
class Profiled:
    """The subject of a profile.

    ``sessions`` is the mean number of sessions in transactions; ``cpus`` is the number of the server's CPUs.
    """

    variant: str
    workload: str
    sessions: float
    cpus: int


def sum_up(
    profiled: Profiled,
    cycles: Sequence[Cycle],
    statements: tuple[StatementTime, ...],
    remarks: tuple[str, ...],
) -> TransactionProfile:
    """Return the profile of cycles, with advice."""
    plain = [one.plain for one in cycles]
    seconds = sum(one.seconds for one in plain)
    found = TransactionProfile(
        variant=profiled.variant,
        workload=profiled.workload,
        sessions=profiled.sessions,
        seconds=seconds,
        transactions_per_s=sum(one.transactions for one in plain) / seconds,
        latency=latency(cycles),
        lines=account(cycles),
        kernel=kernel_entries(cycles),
        statements=statements,
        background_us=background_us(cycles),
        cpu_share=_cpu_share(plain, profiled.cpus),
        sampling_slowdown=slowdown(cycles),
        remarks=remarks,
        stacks=_stacks(cycles),
    )
    return replace(found, advice=tuple(advice(found)))


def _stacks(cycles: Sequence[Cycle]) -> tuple[StackCount, ...]:
    """Return the stacks of all cycles, sorted by their frames, outermost first."""
    counts: Counter[tuple[str, ...]] = Counter()
    for cycle in cycles:
        if cycle.sampled is not None:
            counts.update(cycle.sampled.stacks)
    found = (StackCount(frames[::-1], samples) for frames, samples in counts.items())
    return tuple(sorted(found, key=lambda one: one.frames))


def _cpu_share(windows: Sequence[Window], cpus: int) -> float | None:
    added = [one.added for one in windows if one.added is not None]
    return (
        sum(one.busy for one in added) / 1e9 / sum(one.seconds for one in windows) / cpus if added else None
    )
