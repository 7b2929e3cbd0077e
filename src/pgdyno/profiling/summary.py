"""From an arm's cycles to its profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgdyno.model.profiles.profile import StatementTime, TransactionProfile
from pgdyno.profiling.account import account, background_us, kernel_entries, latency, slowdown
from pgdyno.profiling.advice import advice
from pgdyno.profiling.cycles import Cycle


@dataclass(frozen=True)
class Profiled:
    """The subject of a profile: ``cpus`` is the number of the server's CPUs."""

    variant: str
    workload: str
    clients: int
    cpus: int


def sum_up(
    profiled: Profiled, cycles: Sequence[Cycle], statements: tuple[StatementTime, ...], gaps: tuple[str, ...]
) -> TransactionProfile:
    """Return the profile, with advice."""
    plain = [one.plain for one in cycles]
    seconds = sum(one.seconds for one in plain)
    found = TransactionProfile(
        variant=profiled.variant,
        workload=profiled.workload,
        clients=profiled.clients,
        seconds=seconds,
        transactions_per_s=sum(one.transactions for one in plain) / seconds,
        latency=latency(cycles),
        lines=account(cycles),
        kernel=kernel_entries(cycles),
        statements=statements,
        background_us=background_us(cycles),
        cpu_share=sum(one.added.busy for one in plain) / 1e9 / seconds / profiled.cpus,
        sampling_slowdown=slowdown(cycles),
        gaps=gaps,
    )
    return replace(found, advice=tuple(advice(found)))
