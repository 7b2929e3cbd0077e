"""How CPUs idled while something was measured, in one sentence. Pure."""

from __future__ import annotations

from pgdyno.model.awake import Awake, AwakeMeans

_BY = {
    AwakeMeans.HALTPOLL: "haltpoll, which lets idle CPUs poll before they halt",
    AwakeMeans.SPINNERS: "a process of the lowest priority on each",
}
_ONE_DECIMAL_BELOW_US = 10


def awake_sentence(awake: Awake) -> str:
    """Return whether CPUs were kept awake, by what, and what a wake-up took."""
    if awake.means is not None:
        instead = f"wake-up {_us(awake.held_us)} instead of {_us(awake.booted_us)}"
        return f"CPUs were kept awake by {_BY[awake.means]} ({instead})"
    took = "" if awake.booted_us is None else f" (wake-up {_us(awake.booted_us)})"
    why = f": {awake.reason}" if awake.reason else ""
    line = f"; boot line: {' '.join(awake.boot_line)}" if awake.boot_line else ""
    return f"CPUs idled as booted{took}{why}{line}"


def _us(time_us: float | None) -> str:
    if time_us is None:
        return "not measured"
    return f"{time_us:.1f} µs" if time_us < _ONE_DECIMAL_BELOW_US else f"{time_us:.0f} µs"
