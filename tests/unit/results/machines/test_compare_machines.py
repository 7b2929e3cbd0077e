"""The page of two machines: the terminal's sentences, and names stay text."""

from __future__ import annotations

import re

import pytest
from tests.golden.synthetic import READ_ONLY, experiment
from tests.unit.results.machines.test_machine_comparison import P99, faster, with_frequency
from tests.unit.results.machines.test_machine_tables import one_variant

from pgdyno.model.experiments.machine_comparison import MachineComparison
from pgdyno.results.machines.compare_machines import render_machines
from pgdyno.results.machines.machine_comparison import compare_machines


@pytest.fixture(scope="module")
def found() -> MachineComparison:
    base = one_variant(experiment())
    a, b = with_frequency(base, 2000.0), with_frequency(faster(base), 3000.0)
    return compare_machines(a, b, {"A": 0.5, "B": 0.25})


def test_the_page_says_the_same_and_loads_nothing(found: MachineComparison) -> None:
    page = render_machines(found)
    for text in ("B against A", "Transactions per $", "The machines", "What else differs", READ_ONLY):
        assert text in page
    assert "this file is complete" in page.lower()
    assert not re.search(r"<script|<link|<img|https?://[^\s<]*\"", page)
    assert P99 not in page


def test_names_on_the_page_are_text_and_not_markup() -> None:
    page = render_machines(
        compare_machines(experiment(), faster(experiment(), notes=("<script>x</script>",)))
    )
    assert "<script>" not in page
    assert "&lt;script&gt;x&lt;/script&gt;" in page
