"""Holm's correction: probability of at most α for any false finding among several comparisons.

Source: Holm (1979), Scandinavian Journal of Statistics 6, 65-70.
"""

from __future__ import annotations

from collections.abc import Sequence


def adjusted_p_values(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return Holm's adjusted p-values, in the order given: reject those up to α."""
    ascending = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(ascending):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return tuple(adjusted)
