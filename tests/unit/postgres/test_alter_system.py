"""Lists reach the server as they were meant; expected elements were tried on PostgreSQL 15.14 and 18.0."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import SettingError
from pgdyno.postgres.alter_system import list_elements, statement_values, unquoted


@pytest.mark.parametrize(
    ("name", "value", "elements"),
    [
        ("shared_preload_libraries", "", ()),
        ("shared_preload_libraries", '""', ("",)),
        ("shared_preload_libraries", " a ,  B", ("a", "B")),
        ("shared_preload_libraries", '"a,b", "c""d"', ("a,b", 'c"d')),
        ("unix_socket_directories", "/tmp/with space, @abstract", ("/tmp/with space", "@abstract")),
        ("temp_tablespaces", 'Fast, "Slow"', ("fast", "Slow")),
    ],
)
def test_a_list_is_split_as_the_server_splits_it(name: str, value: str, elements: tuple[str, ...]) -> None:
    assert list_elements(name, value) == elements


@pytest.mark.parametrize("value", ['"open', 'a"b', '"a"b'])
def test_a_list_that_the_server_could_not_split_is_an_error(value: str) -> None:
    with pytest.raises(SettingError, match="invalid list syntax"):
        list_elements("shared_preload_libraries", value)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=10), min_size=1, max_size=5))
def test_a_list_of_quoted_elements_comes_back(elements: list[str]) -> None:
    value = ", ".join('"' + element.replace('"', '""') + '"' for element in elements)
    assert list_elements("shared_preload_libraries", value) == tuple(elements)


@pytest.mark.parametrize(
    ("name", "value", "values"),
    [
        ("work_mem", "64MB", ("64MB",)),
        ("log_destination", "stderr, jsonlog", ("stderr, jsonlog",)),  # a list that is not quoted
        ("Shared_Preload_Libraries", "a, b", ("a", "b")),
    ],
)
def test_only_quoted_lists_are_given_one_by_one(name: str, value: str, values: tuple[str, ...]) -> None:
    assert statement_values(name, value) == values


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("archive_command", "a\nb", "to a value containing a line feed"),
        ("shared_preload_libraries", " ", "to an empty list"),
    ],
)
def test_what_alter_system_cannot_store_is_refused(name: str, value: str, message: str) -> None:
    with pytest.raises(SettingError) as caught:
        statement_values(name, value)
    assert caught.value.message == f'ALTER SYSTEM cannot set "{name}" {message}'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8MB", "8MB"),
        ("'8MB'", "8MB"),
        ("''", ""),
        ("'it''s'", "it's"),
        (r"'it\'s'", "it's"),
        (r"'a\tb\nc\\d'", "a\tb\nc\\d"),
        (r"'\101\7x'", "A\ax"),
        (r"'\q'", "q"),
    ],
)
def test_a_text_stands_for_the_value_that_the_server_reads(text: str, value: str) -> None:
    assert unquoted(text) == value
