"""Verdicts in one sentence each, for DBAs. Pure text; nothing is decided here."""

from __future__ import annotations

from pgdyno.model.experiments.verdict import Equivalence, Interval


def percent(ratio: float, *others: float) -> str:
    """Format a ratio as a signed change: ``+1.9 %``.

    It has the decimals that it needs next to ``others``.
    """
    places = _places(ratio, *others)
    text = f"{(ratio - 1) * 100:+.{places}f}"
    return f"{text.lstrip('+-') if float(text) == 0 else text} %"


def share(part: float) -> str:
    """Return a share without sign and without needless decimals: 0.95 → ``95 %``, 0.034 → ``3.4 %``."""
    return f"{round(part * 100, _places(1 + part)):g} %"


def interval(bounds: Interval) -> str:
    """Return ``95 % interval +17.1 %..+21.4 %``."""
    low, high = percent(bounds.low, bounds.high), percent(bounds.high, bounds.low)
    return f"{share(bounds.level)} interval {low}..{high}"


def difference(effect: float, bounds: Interval) -> str:
    """Say how much higher or lower the variant is."""
    size = percent(effect, bounds.low, bounds.high).lstrip("+-")
    return f"{size} {'higher' if effect > 1 else 'lower'}, {interval(bounds)}"


def explanatory(effect: float, bounds: Interval) -> str:
    """Say the difference in a metric that has no better direction."""
    return f"{difference(effect, bounds)}; this metric explains, it does not decide"


def equivalent(shown: Equivalence, level: float) -> str:
    """Say that the difference is too small to matter."""
    return f"within ±{share(shown.margin)} with {share(level)} confidence ({interval(shown.interval)})"


def undecided(bounds: Interval, mde: float | None, power: float) -> str:
    """Explain why neither a difference nor equivalence is shown.

    Includes the effect that would have been found.
    """
    span = f"{percent(bounds.low, bounds.high)}..{percent(bounds.high, bounds.low)}"
    return f"cannot tell: the interval {span} allows both{would_have_been_found(mde, power)}"


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
        f"withheld: the ratio drifted from {percent(first, last)} to {percent(last, first)} "
        f"during the experiment (p = {_p(p_value)}), so its average says little"
    )


def drifted_apart(first: float, last: float, p_value: float) -> str:
    """Say that one of two machines became faster or slower; both are relative to its own mean."""
    return (
        f"withheld: it drifted from {percent(first, last)} to {percent(last, first)} against its mean while "
        f"it was measured (p = {_p(p_value)}), so its average says little"
    )


def would_have_been_found(mde: float | None, power: float) -> str:
    """Return the clause about the minimum detectable effect, empty if there is none."""
    return "" if mde is None else f"; a change of {share(mde)} would have been found ({share(power)} power)"


def agreement(*, agrees: bool, figures: str) -> str:
    """Describe the result of a robustness check."""
    return f"{'agrees' if agrees else 'disagrees'}: {figures}"


def p_value(probability: float) -> str:
    """Return ``p = 0.031``."""
    return f"p = {_p(probability)}"


def _p(probability: float) -> str:
    return f"{probability:.3f}" if probability >= 0.001 else f"{probability:.1g}"


def _places(*ratios: float) -> int:
    """Return the decimals for changes shown side by side: small ones need two, large ones none."""
    largest = max(abs(ratio - 1) for ratio in ratios)
    return 0 if largest >= 1 else 1 if largest >= 0.003 else 2
