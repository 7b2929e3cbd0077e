"""Values reach the server as they were meant; expected texts were tried on PostgreSQL 15.14 and 18.0."""

from __future__ import annotations

import pytest

from pgdyno.apply.configuration.statements import (
    equal_values,
    reset_statement,
    restore_statement,
    set_statement,
    text_of,
)
from pgdyno.base.errors import SettingError


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("work_mem", "64MB", "ALTER SYSTEM SET work_mem = '64MB';"),
        ("jit", "off", "ALTER SYSTEM SET jit = 'off';"),
        ("random_page_cost", "1.1", "ALTER SYSTEM SET random_page_cost = '1.1';"),
        ("cluster_name", "it's", "ALTER SYSTEM SET cluster_name = 'it''s';"),
        ("cluster_name", "", "ALTER SYSTEM SET cluster_name = '';"),
        ("pg_stat_statements.max", "10", "ALTER SYSTEM SET pg_stat_statements.max = '10';"),
        ("log_destination", "stderr, jsonlog", "ALTER SYSTEM SET log_destination = 'stderr, jsonlog';"),
        (
            "shared_preload_libraries",
            'pg_stat_statements,"my-lib"',
            "ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements', 'my-lib';",
        ),
        ("search_path", '"$user", Public', "ALTER SYSTEM SET search_path = '$user', 'public';"),
    ],
)
def test_a_value_is_quoted_as_the_setting_wants_it(name: str, value: str, text: str) -> None:
    assert text_of(set_statement(name, value)) == text


def test_what_was_not_set_is_taken_out_again() -> None:
    assert text_of(restore_statement("work_mem", None)) == "ALTER SYSTEM RESET work_mem;"
    assert text_of(reset_statement("TimeZone")) == "ALTER SYSTEM RESET TimeZone;"


def test_a_name_cannot_smuggle_a_statement_in() -> None:
    statement = set_statement('x"; DROP TABLE t; --', "1").as_string(None)
    assert statement == 'ALTER SYSTEM SET "x""; DROP TABLE t; --" = \'1\''


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("archive_command", "a\nb", "to a value containing a line feed"),
        ("shared_preload_libraries", " ", "to an empty list"),
    ],
)
def test_what_alter_system_cannot_store_is_refused(name: str, value: str, message: str) -> None:
    with pytest.raises(SettingError) as caught:
        set_statement(name, value)
    assert caught.value.message == f'ALTER SYSTEM cannot set "{name}" {message}'


def test_lists_are_equal_whatever_their_spaces_and_quotes() -> None:
    assert equal_values("shared_preload_libraries", "a,b", 'a, "b"')
    assert not equal_values("shared_preload_libraries", "a,b", "b,a")
    assert not equal_values("work_mem", "8MB", "8192kB")
    assert not equal_values("shared_preload_libraries", "a", None)
