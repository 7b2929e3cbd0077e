"""Options of ``workload copy`` that contradict each other are refused before anything is read."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from pgdyno.base.errors import UsageError
from pgdyno.cli.main import cli


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--share", "0.1"), "--share is only for sampled or synthetic rows"),
        (("--sample",), "--sample requires a share below 1"),
        (("--sample", "--synthetic", "--share", "0.1"), "--sample and --synthetic are mutually exclusive"),
        (("--synthetic", "--sample-from", "customers"), "--sample-from requires --sample"),
        (("--rate", "0", "--sample", "--share", "0.1"), "--rate 0 is not a positive size"),
    ],
)
def test_a_copy_is_of_one_kind(options: tuple[str, ...], message: str) -> None:
    arguments = ["workload", "copy", "no-file.toml", "--dsn", "host=/nowhere", *options]
    error = CliRunner().invoke(cli, arguments).exception
    assert isinstance(error, UsageError)
    assert error.message == message
