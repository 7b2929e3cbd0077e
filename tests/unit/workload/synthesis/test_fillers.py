"""Values of types without an order: valid texts of the original's width."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pgdyno.postgres.catalogued_tables import ColumnStatistics, TableColumn
from pgdyno.workload.synthesis.fillers import element_of, filler


def column(type_: str, *, width: int = 50, modifier: int = -1, **given: object) -> TableColumn:
    seen = ColumnStatistics(0.0, width, 0.0, **given)  # type: ignore[arg-type]
    return TableColumn("c", type_, modifier, is_not_null=True, statistics=seen)


def filled(of: TableColumn, rows: int = 3) -> list[str]:
    fill = filler(of, 7)
    assert fill is not None
    return fill(np.arange(rows))


def test_documents_are_valid_and_as_wide_as_the_original() -> None:
    for text in filled(column("json", width=60)):
        assert set(json.loads(text)) == {"filler"}
        assert len(text) == 59  # and a byte of header
    assert {len(json.loads(text)["filler"]) for text in filled(column("jsonb", width=60))} == {41}
    assert all(text.startswith("<filler>") and text.endswith("</filler>") for text in filled(column("xml")))


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (column("bit", modifier=5), "00000"),
        (column("varbit"), "0"),
        (column("point"), "(0,0)"),
        (column("money"), "1.00"),
    ],
)
def test_types_of_a_fixed_form_have_one_value(of: TableColumn, text: str) -> None:
    assert filled(of) == [text] * 3


def test_a_type_of_which_no_value_is_known_has_none() -> None:
    assert filler(column("polygon"), 7) is None
    assert filler(column("bit", modifier=100_000), 7) is None


def test_arrays_have_the_mean_number_of_elements_and_the_common_ones_as_often() -> None:
    seen = ColumnStatistics(
        0.0, 60, 0.0, elements=("1", "2"), element_frequencies=(0.75, 0.25), element_count=2.0
    )
    numbers = TableColumn("c", "_int4", -1, is_not_null=True, element="int4", statistics=seen)
    texts = filled(numbers, 2000)
    elements = [one.strip('"') for text in texts for one in text[1:-1].split(",")]
    assert len(elements) == 4000
    assert abs(elements.count("1") / 4000 - 0.75) < 0.05
    assert element_of(numbers).type == "int4"
    assert filled(TableColumn("c", "_json", -1, is_not_null=True, element="json")) == ["{}"] * 3
