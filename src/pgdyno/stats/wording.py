"""Verdicts in one sentence each, for DBAs. Pure text; nothing is decided here."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.base import numbers
from pgdyno.model.experiments.verdict import Equivalence, Interval


def interval(bounds: Interval) -> str:
    """Return ``95 % interval +17.1 % … +21.4 %``."""
    return f"{numbers.share(bounds.level)} interval {numbers.interval(bounds)}"


def difference(effect: float, bounds: Interval) -> str:
    """Say how much higher or lower the variant is."""
    size = numbers.size_of_change(effect, numbers.percent_digits(effect, bounds.low, bounds.high))
    return f"{size} {'higher' if effect > 1 else 'lower'}, {interval(bounds)}"


def explanatory(effect: float, bounds: Interval) -> str:
    """Say the difference in a metric that has no better direction."""
    return f"{difference(effect, bounds)}; this metric explains, it does not decide"


def equivalent(shown: Equivalence, level: float) -> str:
    """Say that the difference is too small to matter."""
    confidence = f"{numbers.share(level)} confidence"
    return f"within ±{numbers.share(shown.margin)} with {confidence} ({interval(shown.interval)})"


def undecided(bounds: Interval, mde: float | None, power: float) -> str:
    """Explain why neither a difference nor equivalence is shown.

    Includes the effect that would have been found.
    """
    found = would_have_been_found(mde, power)
    return f"cannot tell: the interval {numbers.interval(bounds)} allows both{found}"


def corrected_away(effect: float, bounds: Interval, p_values: tuple[float, float], comparisons: int) -> str:
    """Say that a difference does not survive the correction for several comparisons."""
    before, after = (_p(value) for value in p_values)
    return (
        f"cannot tell: {difference(effect, bounds)}, but with {comparisons} comparisons "
        f"p = {before} counts as {after} (Holm)"
    )


def too_few_rounds(rounds: int, wanted: int) -> str:
    """Say that a verdict would rest on luck."""
    return (
        f"withheld: {rounds} rounds of started servers are too few to rule out luck, "
        f"at least {wanted} are needed"
    )


def drifted(first: float, last: float, p_value: float) -> str:
    """Say that the effect moved; ``first`` and ``last`` are the ratios of the outer rounds' thirds."""
    return (
        f"withheld: the ratio drifted from {_side_by_side(first, last)} "
        f"during the experiment (p = {_p(p_value)}), so its average says little"
    )


def drifted_apart(first: float, last: float, p_value: float) -> str:
    """Say that one of two machines became faster or slower; both are relative to its own mean."""
    return (
        f"withheld: it drifted from {_side_by_side(first, last)} against its mean while "
        f"it was measured (p = {_p(p_value)}), so its average says little"
    )


def too_few_machines(machines: int, wanted: int) -> str:
    """Say that a verdict across machines would rest on luck."""
    return (
        f"withheld: {machines} machines are too few to rule out that they are alike by luck, "
        f"at least {wanted} are needed"
    )


def one_machine() -> str:
    """Say that nothing is known about other machines."""
    return "withheld: all of it was measured on one machine, which says nothing about others"


def stopped_by_looking() -> str:
    """Say that a machine's several experiments have no common interval."""
    return (
        "withheld: its experiments ended when they had seen enough, and no interval of the mean of such ones "
        "is known to hold"
    )


def not_on_all_machines(mean: str, against: Sequence[tuple[str, float]]) -> str:
    """Say which machines, with their ratios, surely do not agree with the mean of all."""
    machines = ", ".join(f"{numbers.change(ratio)} on {name}" for name, ratio in against)
    return f"not everywhere: on the mean of the machines it is {mean}, but surely {machines}"


def would_have_been_found(mde: float | None, power: float) -> str:
    """Return the clause about the minimum detectable effect, empty if there is none."""
    if mde is None:
        return ""
    change = numbers.size_of_change(1 + mde)
    return f"; a change of {change} would have been found ({numbers.share(power)} power)"


def agreement(*, agrees: bool, figures: str) -> str:
    """Describe the result of a robustness check."""
    return f"{'agrees' if agrees else 'disagrees'}: {figures}"


def p_value(probability: float) -> str:
    """Return ``p = 0.031``."""
    return f"p = {_p(probability)}"


def _p(probability: float) -> str:
    return f"{probability:.3f}" if probability >= 0.001 else f"{probability:.1g}"


def _side_by_side(first: float, last: float) -> str:
    digits = numbers.percent_digits(first, last)
    return f"{numbers.change(first, digits)} to {numbers.change(last, digits)}"
