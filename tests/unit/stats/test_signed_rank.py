from __future__ import annotations

import numpy as np
import pytest

from pgdyno.stats.signed_rank import signed_rank_p_value


def test_the_p_value_is_that_of_wilcox_test() -> None:
    """R 4.2.2: wilcox.test(x)$p.value."""
    x = np.array([0.031, 0.018, -0.004, 0.027, 0.012, 0.038, -0.009, 0.021, 0.016, 0.007])
    assert signed_rank_p_value(x) == pytest.approx(0.013671875)
