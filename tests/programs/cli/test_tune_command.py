"""What ``tune`` refuses before it starts a server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.golden.synthetic_tuning import tuning

from pgdyno.app.local_machine import workspace
from pgdyno.cli.main import cli
from pgdyno.model.errors import PgdynoError
from pgdyno.model.tuning.aims import Aim
from pgdyno.store.tunings import save_tuning


@pytest.mark.parametrize(
    ("arguments", "message", "more"),
    [
        (["--embedded", "--sampler", "best"], 'there is no sampler "best"', "known are: guided, random, tpe"),
        ([], "no PostgreSQL was named", "add --embedded, --pg-bin DIR, or --dsn"),
        (["--embedded", "--resume", "20200101-000000-tune"], 'there is no search "20200101-000000-tune"', ""),
        (["--embedded", "--warm-start", "no.tuning.json"], 'there is no search "no"', "none was made here"),
        (["--embedded", "--warm-start", str(Path(__file__).parent)], "no experiment in", "bundle import"),
        (["--embedded", "--workload", "sysbench"], 'no workload "sysbench"', ""),
        (["--embedded", "--budget", "1m"], "a budget of 1\xa0min is too small for a search", "--budget "),
        (["--embedded", "--layers", "kernel"], '"kernel"', ""),
        (["--embedded", "--aim", "speed"], 'there is no aim "speed"', "known are: throughput, tail, wal, "),
        (["--embedded", "--aim", "wal", "--aim", "wal"], 'the aim "wal" is given twice', "each of them once"),
        (
            ["--embedded", "--aim", "wal", "--budget", "1h"],
            'the workload "sysbench-read-only" cannot give the aim "wal": it only reads, and writes no WAL',
            "leave out --aim wal, or name other workloads",
        ),
        (["--embedded", "--aim", "tail", "--budget", "1m"], "a budget of 1\xa0min is too small", "--budget "),
    ],
)
@pytest.mark.usefixtures("pg18_bin")
def test_mistakes_are_named(arguments: list[str], message: str, more: str, own_home: Path) -> None:
    done = CliRunner().invoke(cli, ["tune", *arguments])
    assert isinstance(done.exception, PgdynoError)
    assert message in done.exception.message
    assert more in f"{done.exception.detail or ''} {done.exception.hint or ''}"
    assert not list(own_home.glob("experiments/*"))


def test_help_says_what_is_never_done() -> None:
    said = " ".join(CliRunner().invoke(cli, ["tune", "--help"]).output.split())
    assert "Without --dsn no running server is touched." in said
    assert "No setting that decides about durability is tried." in said


@pytest.mark.usefixtures("pg18_bin", "own_home")
def test_the_time_of_a_search_that_is_gone_on_with_is_reckoned_by_its_aims() -> None:
    stored = replace(tuning(), id="stored", experiment=None, aims=(Aim.THROUGHPUT, Aim.TAIL))
    save_tuning(workspace().experiments(), stored)
    asked = ["--embedded", "--resume", "stored", "--warm-start", "no.tuning.json"]
    done = CliRunner().invoke(cli, ["tune", *asked])
    assert "then a proof of the front" in done.stderr
    assert 'there is no search "no"' in str(done.exception)  # before a server is started
