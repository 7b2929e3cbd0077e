"""A made-up search with a trial of every kind, and attempts to make its winner shorter."""

from __future__ import annotations

import math

from pgdyno.model.plans.plan import Layer
from pgdyno.model.tuning.tuning import (
    Dimension,
    Point,
    Removal,
    RoundRatios,
    Space,
    Trial,
    TrialRound,
    TrialState,
    Tuning,
)

READ_ONLY, READ_WRITE = "sysbench-read-only", "sysbench-read-write"
_PLAN = {"shared_buffers": "2GB", "work_mem": "16MB", "vm.swappiness": "1"}
_GENERIC = {**_PLAN, "plan_cache_mode": "force_generic_plan"}


def _rounds(count: int, over_default: float, over_incumbent: float) -> tuple[TrialRound, ...]:
    gain, lead = math.log(over_default), math.log(over_incumbent)
    both = {
        name: RoundRatios(lead + more, gain + more, gain - lead)
        for name, more in ((READ_ONLY, 0.04), (READ_WRITE, -0.04))
    }
    return (TrialRound(lead, gain, gain - lead, both),) * count


def _trial(
    number: int,
    point: Point,
    incumbent: int | None,
    state: TrialState,
    rounds: tuple[TrialRound, ...] = (),
    reason: str = "",
) -> Trial:
    return Trial(number, point, incumbent, rounds, state, reason)


def tuning() -> Tuning:
    """Return the search, whose proof is the synthetic experiment."""
    buffers = {**_PLAN, "shared_buffers": "512MB"}
    return Tuning(
        id="20261121-090000-tune",
        sampler="guided",
        seed=1,
        workloads=(READ_ONLY, READ_WRITE),
        subject="embedded 18.6",
        space=Space((Dimension("jit", Layer.APPLICATION, ("off",), "on"),)),
        trials=(
            _trial(1, _PLAN, None, TrialState.WON, _rounds(1, 1.384, 1.384)),
            _trial(2, buffers, 1, TrialState.LOST, _rounds(1, 1.12, 0.81)),
            _trial(3, {**_PLAN, "jit": "off"}, 1, TrialState.CLOSE, _rounds(5, 1.391, 1.004)),
            _trial(4, _GENERIC, 1, TrialState.WON, _rounds(2, 1.62, 1.17)),
            _trial(
                5,
                {**_GENERIC, "wal_compression": "pglz"},
                4,
                TrialState.LOST,
                _rounds(3, 1.66, 1.02),
                f"slower on {READ_WRITE}",
            ),
            _trial(6, {**_GENERIC, "io_method": "io_uring"}, 4, TrialState.FAILED, (), "it did not start"),
            _trial(
                7, {**_GENERIC, "work_mem": "64MB"}, 4, TrialState.REFUSED, (), "the worst case does not fit"
            ),
            _trial(8, {"plan_cache_mode": "auto"}, 4, TrialState.LOST, _rounds(1, 0.96, 0.59)),
        ),
        removals=(
            Removal(("vm.swappiness", "work_mem"), is_kept=True, rounds=2, ratio=(0.998, 0.985, 1.011)),
            Removal(("shared_buffers",), is_kept=False, rounds=1, ratio=(0.79, 0.76, 0.82)),
            Removal(("plan_cache_mode",), is_kept=False, rounds=0, ratio=None),
        ),
        answer={"shared_buffers": "2GB", "plan_cache_mode": "force_generic_plan"},
        experiment="2026-11-21-0930-duet-7f3a",
    )
