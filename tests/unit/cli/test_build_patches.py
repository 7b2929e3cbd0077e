"""``pgdyno build patches``: what there is, and what measuring has shown."""

from __future__ import annotations

import json

from click.testing import CliRunner

from pgdyno.cli.main import cli


def test_patches_are_listed_with_their_verdicts() -> None:
    done = CliRunner().invoke(cli, ["build", "patches"])
    assert done.exit_code == 0
    name, title, verdict = done.stdout.partition("send-buffer  ")[2].splitlines()[:3]
    assert name == "(PostgreSQL 18)"
    assert title == "  answers are sent in pieces of 64 kB instead of 8 kB"
    assert verdict.startswith("  alone better on read-only, throughput ")
    assert "not measured yet; not measurable on 2 CPUs" in done.stdout


def test_as_a_document_they_have_whose_idea_they_are() -> None:
    done = CliRunner().invoke(cli, ["build", "patches", "--json"])
    found = {one["name"]: one for one in json.loads(done.stdout)["patches"]}
    assert found["no-failing-recv"]["idea"].startswith('PostgreSQL\'s wiki, "Syscall Reduction"')
    assert found["no-failing-recv"]["major"] == 18
