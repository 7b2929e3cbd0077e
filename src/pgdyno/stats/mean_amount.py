"""The mean of a quantity with one value per round, and its t interval.

It is for differences, which can be negative. The method is that of ``nested`` for log-ratios, including
autocorrelation between rounds, but without the logarithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.stats import nested
from pgdyno.stats.sample import Sample


@dataclass(frozen=True)
class Amount:
    """A mean over rounds and the ends of its interval, in the unit of the quantity."""

    low: float
    mean: float
    high: float
    level: float

    @property
    def is_distinguishable(self) -> bool:
        """Whether it differs from zero."""
        return self.low > 0 or self.high < 0


def mean_amount(rounds: Sequence[float], level: float) -> Amount:
    """Return the mean over at least two rounds. Raises: ValueError for a value that is not finite."""
    estimated = nested.estimate(Sample.of([[amount] for amount in rounds]))
    mean = float(estimated.mean)
    reach = float(nested.critical_t(estimated, level) * estimated.standard_error)
    return Amount(mean - reach, mean, mean + reach, level)
