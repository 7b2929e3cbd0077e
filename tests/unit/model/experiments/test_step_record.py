"""Scales of TPC-H's rows, written exactly."""

from __future__ import annotations

import pytest

from pgdyno.model.experiments.step_record import scale_text


@pytest.mark.parametrize(
    ("thousandths", "text"),
    [(1, "0.001"), (100, "0.1"), (1000, "1"), (10_000, "10"), (1_000_001, "1000.001")],
)
def test_a_scale_is_written_exactly(thousandths: int, text: str) -> None:
    assert scale_text(thousandths) == text
