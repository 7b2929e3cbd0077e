"""``pgdyno cell check --limit``: as long as the system can wait."""

from __future__ import annotations

from click.testing import CliRunner

from pgdyno.base.errors import UsageError
from pgdyno.cli.main import cli


def test_a_limit_that_no_host_needs_is_refused() -> None:
    error = CliRunner().invoke(cli, ["cell", "check", "--limit", "600h"], standalone_mode=False).exception
    assert isinstance(error, UsageError)
    assert error.message.replace("\N{NO-BREAK SPACE}", " ") == "--limit is at most 1 h, not 600 h"
    assert error.hint == "a usable host responds within seconds; the default is 30\N{NO-BREAK SPACE}s"
