"""What a user may ask of a design."""

from __future__ import annotations

from contextlib import nullcontext as does_not_raise

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.measure.design.requested import require_reachable
from pgdyno.measure.design.schedule import alternating
from pgdyno.model.experiments.experiment import Design, Stopping


def until(precision: float | None) -> Design:
    return Design(stopping=Stopping.PRECISION, precision=precision)


def test_a_precision_finer_than_two_equal_servers_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        require_reachable(until(0.01))
    assert str(caught.value).replace("\xa0", " ") == (
        "--until precision=1% is too fine for servers measured together\n"
        "DETAIL:  even two identical servers differ by about 0.5 % throughout an experiment, so no "
        "interval is narrower than ±1.0 %\n"
        "HINT:  write --until precision=1.5%, or add --design alternating"
    )


@pytest.mark.parametrize("design", [until(0.015), until(None), alternating(until(0.001))])
def test_a_coarser_one_and_whole_trials_are_not(design: Design) -> None:
    with does_not_raise():
        require_reachable(design)
