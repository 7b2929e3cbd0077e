"""Texts in quotation marks. tests/integration/test_explained_values.py has a server read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.workload.capture.literals import array_text, in_place_of_parameters, quoted_text, unquoted_text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (None, "NULL"),
        ("", "''"),
        ("it's", "'it''s'"),
        ("a\\'b", "E'a\\\\''b'"),
        ("$1", "'$1'"),
        ('"', "'\"'"),
    ],
)
def test_constants_are_written_so_that_nothing_in_them_ends_them(text: str | None, written: str) -> None:
    assert quoted_text(text) == written


@pytest.mark.parametrize(
    ("elements", "text"),
    [
        ([], "{}"),
        (["a", "b,c"], '{"a","b,c"}'),
        (['say "x"', "\\"], '{"say \\"x\\"","\\\\"}'),
        ([""], '{""}'),
    ],
)
def test_arrays_are_written_with_each_element_in_quotation_marks(elements: list[str], text: str) -> None:
    assert array_text(elements) == text


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_a_constant_is_read_as_it_was_written(text: str) -> None:
    assert unquoted_text(quoted_text(text)) == text


@given(st.text())
def test_a_constant_is_one_token_of_a_statement(text: str) -> None:
    """So that parameters in it, and after it, are told apart."""
    written = f"SELECT {quoted_text(text)}, $1"
    assert in_place_of_parameters(written, {1: "<1>"}) == f"SELECT {quoted_text(text)}, <1>"
