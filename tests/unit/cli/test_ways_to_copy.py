"""Options of ``workload copy`` that contradict each other are refused before anything is read."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from pgdyno.base.errors import UsageError
from pgdyno.cli.main import cli


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--share", "0.1"), "--share is of sampled or made-up rows"),
        (("--sample",), "--sample takes a share of the rows"),
        (("--sample", "--synthetic", "--share", "0.1"), "--sample takes rows, and --synthetic makes them up"),
        (("--synthetic", "--sample-from", "customers"), "--sample-from says what is sampled"),
        (("--rate", "0", "--sample", "--share", "0.1"), "--rate 0 is not a positive size"),
    ],
)
def test_a_copy_is_of_one_kind(options: tuple[str, ...], message: str) -> None:
    arguments = ["workload", "copy", "no-file.toml", "--dsn", "host=/nowhere", *options]
    error = CliRunner().invoke(cli, arguments).exception
    assert isinstance(error, UsageError)
    assert error.message == message
