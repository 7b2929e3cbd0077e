from __future__ import annotations

from pgdyno.model.experiments.verdict import Equivalence, Interval
from pgdyno.stats import wording

BOUNDS = Interval(1.171, 1.192, 1.214, 0.95)


def test_a_difference_says_how_much_and_how_sure() -> None:
    assert (
        wording.difference(1.192, BOUNDS)
        == "19.2\xa0% higher, 95\xa0% interval +17.1\xa0%\xa0…\xa0+21.4\xa0%"
    )
    assert (
        wording.difference(0.95, Interval(0.94, 0.95, 0.961, 0.95))
        == "5.0\xa0% lower, 95\xa0% interval −6.0\xa0%\xa0…\xa0−3.9\xa0%"
    )


def test_equivalence_says_within_what() -> None:
    shown = Equivalence(margin=0.02, p_value=0.001, interval=Interval(0.996, 1.001, 1.007, 0.90))
    expected = "within ±2\xa0% with 95\xa0% confidence (90\xa0% interval −0.4\xa0%\xa0…\xa0+0.7\xa0%)"
    assert wording.equivalent(shown, 0.95) == expected


def test_an_open_question_says_what_would_have_been_found() -> None:
    bounds = Interval(0.982, 1.006, 1.030, 0.95)
    expected = (
        "cannot tell: the interval −1.8\xa0%\xa0…\xa0+3.0\xa0% allows both; "
        "a change of 3.4\xa0% would have been found (80\xa0% power)"
    )
    assert wording.undecided(bounds, 0.034, 0.80) == expected
    assert (
        wording.undecided(bounds, None, 0.80)
        == "cannot tell: the interval −1.8\xa0%\xa0…\xa0+3.0\xa0% allows both"
    )
