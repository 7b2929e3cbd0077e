"""Options of ``tune --dsn``: which are refused, and the command that applies an answer."""

from __future__ import annotations

import shlex

import pytest
from click.testing import CliRunner

from pgdyno.cli._tuning_in_place import apply_command
from pgdyno.cli.main import cli
from pgdyno.model.errors import PermissionNotGivenError, PgdynoError, SettingError, UsageError


def refused(text: str) -> PgdynoError:
    """Return the error of ``pgdyno tune`` with these words."""
    error = CliRunner().invoke(cli, ["tune", *shlex.split(text)], standalone_mode=False).exception
    assert isinstance(error, PgdynoError), error
    return error


@pytest.mark.parametrize(
    "option", ["--allow-load", "--limit-latency 20ms", "--limit-memory 8GB", "--maintenance-window"]
)
def test_permissions_and_limits_without_a_server_are_refused(option: str) -> None:
    error = refused(f"--embedded {option}")
    assert isinstance(error, UsageError)
    name = option.partition(" ")[0]
    assert error.message == f"{name} concerns a running server, and none was named"
    assert error.hint == "name it with --dsn"


@pytest.mark.parametrize("option", ["--embedded", "--pg-bin /usr/lib/postgresql/15/bin"])
def test_one_server_is_named_not_two(option: str) -> None:
    assert refused(f"--dsn service=x --allow-load {option}").message == (
        "--dsn names a server, and --embedded or --pg-bin another"
    )


@pytest.mark.parametrize("option", ["layers all", "attribute", "resume 20261125-201500-tune", "aim wal"])
def test_options_of_scratch_servers_are_refused(option: str) -> None:
    name = option.partition(" ")[0]
    assert refused(f"--dsn service=x --allow-load --{option}").message == (
        f"--{name} is for searches on scratch servers, and --dsn names a running one"
    )


def test_load_has_to_be_allowed() -> None:
    error = refused("--dsn service=x")
    assert isinstance(error, PermissionNotGivenError)
    assert error.hint is not None
    assert "--allow-load" in error.hint


def test_a_limit_that_is_no_amount_names_its_option() -> None:
    error = refused("--dsn service=x --allow-load --limit-memory much")
    assert isinstance(error, SettingError)
    assert "--limit-memory" in error.message


def test_the_command_that_applies_an_answer_can_be_typed() -> None:
    command = apply_command(
        "host=/run/pg dbname=shop password=secret", {"work_mem": "24MB", "wal_compression": "lz4"}
    )
    assert "secret" not in command
    words = shlex.split(command)
    assert words[:2] == ["psql", "-d"]
    assert words[3:] == [
        "-c", "ALTER SYSTEM SET work_mem = '24MB'",
        "-c", "ALTER SYSTEM SET wal_compression = 'lz4'",
        "-c", "SELECT pg_reload_conf()",
    ]  # fmt: skip
