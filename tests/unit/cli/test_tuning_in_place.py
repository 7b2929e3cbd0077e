"""Options of ``tune --dsn``: which are refused, and the command that applies an answer."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
from click.testing import CliRunner
from tests.golden.synthetic import READ_ONLY, experiment, plan
from tests.golden.synthetic_tuning import tuning

from pgdyno.base.errors import PermissionNotGivenError, PgdynoError, SettingError, UsageError
from pgdyno.cli._tuning_in_place import apply_command, closing_text, restarts_text
from pgdyno.cli.main import cli
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.tuning.tuning import TUNED
from pgdyno.tune.tuner import Tuned


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
    assert error.message == f"{name} requires a running server, and none was named"
    assert error.hint == "name it with --dsn"


@pytest.mark.parametrize("option", ["--embedded", "--pg-bin /usr/lib/postgresql/15/bin"])
def test_one_server_is_named_not_two(option: str) -> None:
    assert refused(f"--dsn service=x --allow-load {option}").message == (
        "--dsn cannot be combined with --embedded or --pg-bin"
    )


@pytest.mark.parametrize("option", ["layers all", "attribute", "resume 20261125-201500-tune"])
def test_options_of_scratch_servers_are_refused(option: str) -> None:
    name = option.partition(" ")[0]
    assert refused(f"--dsn service=x --allow-load --{option}").message == (
        f"--{name} requires a search on scratch servers, but --dsn names a running server"
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
    assert words[:5] == ["psql", "-X", "-v", "ON_ERROR_STOP=1", "-d"]
    assert words[6:] == [
        "-c", "ALTER SYSTEM SET work_mem = '24MB'",
        "-c", "ALTER SYSTEM SET wal_compression = 'lz4'",
        "-c", "SELECT pg_reload_conf()",
    ]  # fmt: skip


ANSWER = {"shared_buffers": "2GB", "work_mem": "16MB"}


def proof() -> Experiment:
    """Return the made-up proof of an answer that is faster by a fifth on its only workload."""
    whole = experiment()
    blocks = tuple(
        replace(
            block,
            arms=tuple(
                arm if arm.variant == whole.baseline else replace(arm, variant=TUNED) for arm in block.arms
            ),
        )
        for block in whole.blocks
        if block.workload == READ_ONLY
    )
    variants = (whole.variants[0], replace(whole.variants[1], name=TUNED))
    return replace(whole, blocks=blocks, variants=variants, workloads=(READ_ONLY,))


def test_an_answer_that_pays_is_shown_with_its_restart_and_the_way_back() -> None:
    found = replace(tuning(), answer=ANSWER)
    said = closing_text("service=shop", Tuned(found, plan(), proof()))
    assert said.startswith("Nothing was left changed.\nSessions that were open during the search may keep ")
    assert apply_command("service=shop", ANSWER) in said
    assert "These settings take effect only after a server restart: shared_buffers\n" in said
    assert "To undo this: ALTER SYSTEM RESET each of these settings" in said


@pytest.mark.parametrize("measured", [None, experiment()])
def test_for_an_answer_that_is_not_proven_there_is_no_command(measured: Experiment | None) -> None:
    found = replace(tuning(), answer=ANSWER)
    said = closing_text("service=shop", Tuned(found, plan(), measured))
    assert "psql" not in said
    assert said.endswith("The answer is not proven to pay, so no command to apply it is shown.\n")


def test_without_an_answer_there_is_nothing_to_apply() -> None:
    said = closing_text("service=shop", Tuned(replace(tuning(), answer={}), plan(), None))
    assert said.count("\n") == 2


def test_restarts_are_counted_for_each_data_set() -> None:
    assert restarts_text(2) == (
        "up to 8 times per round of the search, up to 4 times more if a configuration fails in that round, "
        "and up to 4 times per round of the proof"
    )
