"""Values from R 4.2.2: p.adjust(p, "holm")."""

from __future__ import annotations

import pytest

from pgdyno.stats.holm import adjusted_p_values


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        ((0.01, 0.04, 0.03, 0.005), (0.03, 0.06, 0.06, 0.02)),
        ((0.6, 0.02, 0.02, 0.5), (1.0, 0.08, 0.08, 1.0)),
        ((0.03,), (0.03,)),
        ((), ()),
    ],
)
def test_adjusted_p_values_are_those_of_p_adjust(
    p_values: tuple[float, ...], adjusted: tuple[float, ...]
) -> None:
    assert adjusted_p_values(p_values) == pytest.approx(adjusted)
