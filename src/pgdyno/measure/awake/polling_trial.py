"""Remove polling from a plan if it does not shorten a wake-up on this machine."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.apply.host_state import HostState
from pgdyno.host.awake import HALT_POLLING
from pgdyno.measure.awake.awake import Probe, probe_us, try_files
from pgdyno.model.plans.plan import Plan, Skipped


def with_proven_polling(plan: Plan, host_state: HostState, probe: Probe = probe_us) -> Plan:
    """Try the plan's polling for a moment, and return the plan with the times, or without the polling.

    The machine is then as it was. Raises: StillChangedError if it could not be given back.
    """
    lines = [line for line in plan.lines if line.change.lever == HALT_POLLING]
    if not lines:
        return plan
    trial = try_files(host_state, probe, probe(), {line.change.key: line.change.value for line in lines})
    if trial.obstacle:
        rest = tuple(line for line in plan.lines if line not in lines)
        skipped = Skipped(HALT_POLLING, f"left alone: {trial.obstacle}")
        return replace(plan, lines=rest, skipped=(*plan.skipped, skipped))
    times = f"tried: {trial.held_us:.1f} µs instead of {trial.booted_us:.1f} µs"
    return replace(
        plan,
        lines=tuple(
            replace(line, reason=f"{line.reason}; {times}") if line in lines else line for line in plan.lines
        ),
    )
