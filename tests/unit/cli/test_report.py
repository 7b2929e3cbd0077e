"""``pgdyno report --list`` where nothing was measured yet."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from pgdyno.cli.report import command


def test_a_list_without_experiments_says_so(own_home: Path) -> None:
    assert own_home.is_dir()
    shown = CliRunner().invoke(command, ["--list"])
    assert shown.output == (
        "No experiments yet: pgdyno compare, run and accelerate store their results here.\n"
    )
    assert CliRunner().invoke(command, ["--list", "--json"]).output == (
        '{\n  "schema_version": 1,\n  "experiments": []\n}\n'
    )
