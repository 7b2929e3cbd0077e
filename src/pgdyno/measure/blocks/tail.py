"""The mean of the slowest transactions.

A percentile jumps when the share of stalled transactions crosses it: the 99th percentile is 12 ms with 0.9 %
stalls and 50 ms with 1.1 %. The mean beyond a percentile grows linearly with their number. It is the
conditional value-at-risk (CVaR, or expected shortfall): Rockafellar and Uryasev, "Optimization of conditional
value-at-risk", Journal of Risk 2 (2000), 21-41.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_ONE_IN = 20  # the slowest 5 %


def tail_mean(latencies: NDArray[np.int64]) -> float:
    """Return the mean of the slowest 5 %, in the unit of ``latencies``; at least one is required.

    The tail of n transactions has n / 20. If that is no integer, the fastest one of the tail counts as the
    remaining fraction: of 50, the two slowest count fully and the third by half. So the mean does not jump
    from one n to the next. Of fewer than 20, it is the slowest one.

    Shapes: latencies (transactions,).
    """
    whole, rest = divmod(latencies.size, _ONE_IN)
    slowest = np.sort(latencies)[::-1]
    total = float(slowest[:whole].sum()) + (rest / _ONE_IN * float(slowest[whole]) if rest else 0.0)
    return total * _ONE_IN / latencies.size
