"""What ``tune`` refuses before it starts a server."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from pgdyno.base.errors import PgdynoError
from pgdyno.cli.main import cli


@pytest.mark.parametrize(
    ("arguments", "message", "more"),
    [
        (["--embedded", "--sampler", "best"], 'unknown sampler "best"', "known samplers: guided, random"),
        ([], "no PostgreSQL was specified", "add --embedded, --pg-bin DIR, or --dsn"),
        (["--embedded", "--resume", "20200101-000000-tune"], '"20200101-000000-tune" does not exist', ""),
        (["--embedded", "--warm-start", "no.tuning.json"], 'search "no" does not exist', "no searches exist"),
        (["--embedded", "--workload", "sysbench"], 'no workload "sysbench"', ""),
        (["--embedded", "--budget", "1m"], "a budget of 1\xa0min is too small for a search", "--budget "),
        (["--embedded", "--layers", "kernel"], '"kernel"', ""),
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
    assert "Without --dsn, no running server is touched." in said
    assert "Settings that affect durability are never tried." in said
