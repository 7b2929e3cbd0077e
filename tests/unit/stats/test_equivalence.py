"""Values from R 4.2.2: t.test(x, mu = log(1.02), alternative = "less")$p.value or its mirror, if larger."""

from __future__ import annotations

import pytest

from pgdyno.stats import anytime, nested
from pgdyno.stats.equivalence import tost_p_value
from pgdyno.stats.sample import Sample

UNCHANGED = [[0.003], [-0.006], [0.008], [-0.002], [0.005], [-0.007], [0.004], [0.001]]


def test_tost_is_the_larger_of_two_one_sided_t_tests() -> None:
    estimated = nested.estimate(Sample.of(UNCHANGED))
    assert float(tost_p_value(estimated, 0.02, nested.one_sided_p)) == pytest.approx(1.00547574476e-05)


def test_an_effect_beyond_the_margin_is_not_equivalent() -> None:
    changed = nested.estimate(Sample.of([[0.031], [0.018], [0.044], [0.027], [0.012], [0.038]]))
    assert float(tost_p_value(changed, 0.02, nested.one_sided_p)) == pytest.approx(0.928801182155)


def test_looking_makes_equivalence_harder_to_show() -> None:
    estimated = nested.estimate(Sample.of(UNCHANGED))
    looked = tost_p_value(estimated, 0.02, anytime.one_sided_p)
    assert float(looked) > float(tost_p_value(estimated, 0.02, nested.one_sided_p))
