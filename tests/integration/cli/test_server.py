"""``pgdyno server`` as a user calls it; full builds are in another make target."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.fix_home import pgdyno

from pgdyno.base.errors import InstallationError
from pgdyno.cli.server import command
from pgdyno.postgres.process.account import current_account


def test_a_version_that_is_none_is_a_usage_error() -> None:
    done = pgdyno("server", "install", "--from-source", "17,latest")
    assert done.returncode == 2
    assert 'ERROR:  --from-source "17,latest": "latest" is not a major version' in done.stderr


def test_what_is_missing_to_build_is_named_with_its_packages(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(own_home))
    done = CliRunner().invoke(command, ["install", "--from-source", "17"])
    assert isinstance(done.exception, InstallationError)
    assert done.exception.message == "PostgreSQL cannot be built on this host yet"
    assert str(done.exception.hint).startswith("apt-get install gcc make bison flex")


def test_removing_what_pgdyno_did_not_build_is_a_usage_error(tmp_path: Path) -> None:
    done = pgdyno("server", "remove", "debian-15", PGDYNO_HOME=str(tmp_path))
    assert done.returncode == 2
    assert 'ERROR:  pgdyno has not built a server "debian-15"' in done.stderr


def test_the_list_has_a_manifest_or_why_there_is_none(tmp_path: Path) -> None:
    done = pgdyno("server", "list", "--json", PGDYNO_HOME=str(tmp_path))
    assert done.returncode == 0
    listed = json.loads(done.stdout)
    assert listed["schema_version"] == 1
    for server in listed["servers"]:
        assert server["manifest"]["unknown"] == "not built by pgdyno"


@pytest.mark.root
def test_listing_runs_no_program_of_others_as_root() -> None:
    with tempfile.TemporaryDirectory(prefix="pgdyno-list-") as name:
        home = Path(name)
        home.chmod(0o755)
        programs = home / "servers/source-18/bin"
        programs.mkdir(parents=True)
        postgres = programs / "postgres"
        postgres.write_text('#!/bin/sh\necho "postgres (PostgreSQL) 18.$(id -u)"\n')
        postgres.chmod(0o755)
        done = pgdyno("server", "list", "--json", PGDYNO_HOME=name)
    assert done.returncode == 0, done.stderr
    (version,) = (one["version"] for one in json.loads(done.stdout)["servers"] if one["name"] == "source-18")
    assert version == f"18.{current_account().uid}"
    assert version != "18.0"


def test_the_help_says_what_is_built_and_how_long_it_takes() -> None:
    done = pgdyno("server", "install", "--help")
    assert done.returncode == 0
    assert "--from-source" in done.stdout
    assert "6 minutes" in " ".join(done.stdout.split())
