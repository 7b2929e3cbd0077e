"""Verdicts in one sentence each, for DBAs. Pure text; nothing is decided here."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.base import numbers
from pgdyno.model.experiments.verdict import Equivalence, Interval


def interval(bounds: Interval) -> str:
    """Return ``95 % interval +17.1 % … +21.4 %``."""
    return f"{numbers.share(bounds.level)} interval {numbers.interval(bounds)}"


def difference(effect: float, bounds: Interval) -> str:
    """Return how much higher or lower the variant is."""
    size = numbers.size_of_change(effect, numbers.percent_digits(effect, bounds.low, bounds.high))
    return f"{size} {'higher' if effect > 1 else 'lower'}, {interval(bounds)}"


def explanatory(effect: float, bounds: Interval) -> str:
    """Return the difference in a metric without a better direction."""
    return f"{difference(effect, bounds)}; this metric is explanatory and does not decide"


def equivalent(shown: Equivalence, level: float) -> str:
    """Return that the difference is within the margin."""
    confidence = f"{numbers.share(level)} confidence"
    return f"within ±{numbers.share(shown.margin)} with {confidence} ({interval(shown.interval)})"


def undecided(bounds: Interval, mde: float | None, power: float) -> str:
    """Return why neither a difference nor equivalence is shown, with the minimum detectable effect."""
    found = would_have_been_found(mde, power)
    return f"cannot tell: the interval {numbers.interval(bounds)} allows both{found}"


def corrected_away(effect: float, bounds: Interval, p_values: tuple[float, float], comparisons: int) -> str:
    """Return that a difference is not significant after the correction for several comparisons."""
    before, after = (_p(value) for value in p_values)
    return (
        f"cannot tell: {difference(effect, bounds)}, but with {comparisons} comparisons "
        f"p = {before} counts as {after} (Holm)"
    )


def too_few_rounds(rounds: int, wanted: int) -> str:
    """Return that too few rounds were measured for a verdict."""
    return (
        f"withheld: {rounds} rounds of started servers are too few to rule out chance, "
        f"at least {wanted} are needed"
    )


def drifted(first: float, last: float, p_value: float) -> str:
    """Return that the effect drifted; ``first`` and ``last`` are ratios of the first and last third."""
    return (
        f"withheld: the ratio drifted from {_side_by_side(first, last)} "
        f"during the experiment (p = {_p(p_value)}), so its average is not meaningful"
    )


def drifted_apart(first: float, last: float, p_value: float) -> str:
    """Return that one of two machines became faster or slower; both ratios are relative to its own mean."""
    return (
        f"withheld: it drifted from {_side_by_side(first, last)} against its mean while "
        f"it was measured (p = {_p(p_value)}), so its average is not meaningful"
    )


def too_few_machines(machines: int, wanted: int) -> str:
    """Return that too few machines were measured for a verdict across machines."""
    return (
        f"withheld: {machines} machines are too few to rule out that they agree by chance, "
        f"at least {wanted} are needed"
    )


def one_machine() -> str:
    """Return that a single machine does not represent others."""
    return "withheld: only one machine was measured, which does not represent others"


def stopped_by_looking() -> str:
    """Return that the mean of a machine's experiments has no valid interval."""
    return (
        "withheld: the length of its experiments depended on their data, and no valid interval is known for "
        "the mean of such experiments"
    )


def not_on_all_machines(mean: str, against: Sequence[tuple[str, float]]) -> str:
    """Return the machines, with their ratios, that certainly disagree with the mean of all."""
    machines = ", ".join(f"{numbers.change(ratio)} on {name}" for name, ratio in against)
    return f"not everywhere: on the mean of the machines it is {mean}, but certainly {machines}"


def would_have_been_found(mde: float | None, power: float) -> str:
    """Return the clause about the minimum detectable effect; empty without one."""
    if mde is None:
        return ""
    change = numbers.size_of_change(1 + mde)
    return f"; a change of {change} would have been found ({numbers.share(power)} power)"


def agreement(*, agrees: bool, figures: str) -> str:
    """Return the result of a robustness check."""
    return f"{'agrees' if agrees else 'disagrees'}: {figures}"


def p_value(probability: float) -> str:
    """Return ``p = 0.031``."""
    return f"p = {_p(probability)}"


def _p(probability: float) -> str:
    return f"{probability:.3f}" if probability >= 0.001 else f"{probability:.1g}"


def _side_by_side(first: float, last: float) -> str:
    digits = numbers.percent_digits(first, last)
    return f"{numbers.change(first, digits)} to {numbers.change(last, digits)}"
