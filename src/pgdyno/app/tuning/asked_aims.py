"""The aims of a search, as far as its workloads can give them; memory is reckoned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pgdyno.app.planning.planning import Planned
from pgdyno.app.tuning.trial_rounds import TrialRounds
from pgdyno.app.tuning.tune_request import TuneRequest
from pgdyno.levers.engine.effective import EffectiveSettings
from pgdyno.levers.engine.memory_proof import memory_proof
from pgdyno.model.errors import UsageError
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.tuning.aims import Aim
from pgdyno.model.tuning.space import Point, Space
from pgdyno.model.tuning.tuning import Tuning


def require_aims(request: TuneRequest, earlier: Tuning | None) -> None:
    """Check the aims of a search, of the one that is gone on with if there is one.

    Raises: UsageError for other aims than that one has, for one that a workload cannot give, or if a single
    answer was to be taken apart that there will not be.
    """
    aims = (request.aims or ()) if earlier is None else earlier.aims
    if earlier is not None and request.aims is not None and set(request.aims) != set(aims):
        raise UsageError(
            f'"{earlier.id}" was a search for other aims',
            detail=f"it was for {_listed(aims)}; this is for {_listed(request.aims)}",
            hint="leave --aim out to go on with it, or begin a new one, without --resume",
        )
    for aim in aims:
        for workload in request.conditions.workloads.values():
            if reason := _why_not(aim, workload):
                raise UsageError(
                    f'the workload "{workload.name}" cannot give the aim "{aim}": {reason}',
                    hint=f"leave out --aim {aim}, or name other workloads",
                )
    if aims and request.is_attributed:
        raise UsageError(
            "--attribute takes one answer apart, and several aims have several",
            hint="leave out --attribute or --aim",
        )


def with_aims(rounds: TrialRounds, aims: tuple[Aim, ...], planned: Planned) -> TrialRounds:
    """Return rounds that also measure these aims. Raises: UsageError if memory cannot be reckoned."""
    worst_case = _worst_case_of(planned, rounds.space)
    if Aim.MEMORY in aims:
        worst_case({})
    return replace(rounds, aims=aims, worst_case=worst_case)


def _worst_case_of(planned: Planned, space: Space) -> Callable[[Point], int]:
    """Return the memory in bytes that a server of a point may take at worst: the sum of the memory proof."""
    server, resources = planned.subject.server, planned.subject.resources

    def worst_case(point: Point) -> int:
        settings = {key: value for key, value in space.whole(point).items() if key in server.settings}
        proof = memory_proof(EffectiveSettings(server, settings if point else {}), resources)
        if proof is None:
            raise UsageError(
                "how much memory a server may take is not known here",
                detail="no limit of this machine's memory could be read",
                hint="state it with --ram, or leave out --aim memory",
            )
        return proof.total_bytes

    return worst_case


def _why_not(aim: Aim, workload: Workload) -> str:
    """Say why a workload does not give an aim; nothing if it does."""
    if aim is Aim.WAL and workload.is_read_only:
        return "it only reads, and writes no WAL"
    if aim is Aim.TAIL and workload.executions > 1:
        return "its transactions loop inside the server, and no execution has a latency of its own"
    return ""


def _listed(aims: tuple[Aim, ...]) -> str:
    return " and ".join(aims or (Aim.THROUGHPUT,))
