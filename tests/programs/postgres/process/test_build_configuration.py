"""What an installation's own pg_config says, with programs made here."""

from __future__ import annotations

from pathlib import Path

from pgdyno.base.facts import Unknown
from pgdyno.postgres.process.account import caller
from pgdyno.postgres.process.installation import Installation


def installation(directory: Path, script: str | None) -> Installation:
    if script is not None:
        (directory / "pg_config").write_text(f"#!/bin/sh\n{script}\n")
        (directory / "pg_config").chmod(0o755)
    return Installation(directory, "18.6", 18, "mine")


def test_pg_config_is_asked(tmp_path: Path) -> None:
    found = installation(tmp_path, "echo CC = gcc").build_configuration(caller())
    assert found.value == "CC = gcc\n"
    assert found.source == str(tmp_path / "pg_config")


def test_without_pg_config_the_build_is_unknown(tmp_path: Path) -> None:
    found = installation(tmp_path, None).build_configuration(caller())
    assert found.value == Unknown("no such program")


def test_a_pg_config_that_fails_says_why(tmp_path: Path) -> None:
    script = "echo libpq.so.5: cannot open shared object file >&2; exit 127"
    found = installation(tmp_path, script).build_configuration(caller())
    assert found.value == Unknown("libpq.so.5: cannot open shared object file")
