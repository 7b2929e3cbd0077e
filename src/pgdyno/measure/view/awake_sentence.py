"""How CPUs idled during a measurement, in one sentence. Pure."""

from __future__ import annotations

from pgdyno.base.text import listed
from pgdyno.host.cpu_idling import Awake, AwakeMeans
from pgdyno.model.experiments.experiment import Experiment

_BY = {
    AwakeMeans.HALTPOLL: "haltpoll, which lets idle CPUs poll before they halt",
    AwakeMeans.SPINNERS: "a lowest-priority process on each",
}
_ONE_DECIMAL_BELOW_US = 10


def awake_sentence(awake: Awake) -> str:
    """Return a sentence on how CPUs idled or were kept awake, with the wake-up latency."""
    if awake.means is not None:
        instead = f"wake-up {_us(awake.held_us)} instead of {_us(awake.booted_us)}"
        return f"CPUs were kept awake by {_BY[awake.means]} ({instead})"
    took = "" if awake.booted_us is None else f" (wake-up {_us(awake.booted_us)})"
    why = f": {awake.reason}" if awake.reason else ""
    line = f"; boot line: {' '.join(awake.boot_line)}" if awake.boot_line else ""
    return f"CPUs idled as booted{took}{why}{line}"


def awake_remark(experiment: Experiment) -> str:
    """Return a remark on figures with CPUs kept awake; empty if they idled as booted."""
    awake = experiment.awake
    if awake is None or awake.means is None:
        return ""
    line = f"; boot line: {' '.join(awake.boot_line)}" if awake.boot_line else ""
    lines = () if experiment.plan is None else experiment.plan.lines
    levers = list(dict.fromkeys(one.change.lever for one in lines if one.touches_wakeups))
    depends = f" The worth of {listed(levers)} depends on that." if levers else ""
    return (
        f"These figures hold with CPUs kept awake: a wake-up took {_us(awake.held_us)}, as booted "
        f"{_us(awake.booted_us)}{line}.{depends} --as-booted measures without that."
    )


def _us(time_us: float | None) -> str:
    if time_us is None:
        return "not measured"
    return f"{time_us:.1f} µs" if time_us < _ONE_DECIMAL_BELOW_US else f"{time_us:.0f} µs"
