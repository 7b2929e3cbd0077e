"""Keys that rows do not fulfil are told from other failures, also where programs speak another language."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.fix_servers import RealServer

from pgdyno.postgres.process.account import caller
from pgdyno.postgres.process.dump import COPY_ROLE, restore_keys
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import Instance

pytestmark = pytest.mark.server

_GERMAN = """#!/bin/sh
[ "$LC_ALL" = C ] && exec {program} "$@"
{program} "$@" 2>"$0.said"
code=$?
sed "s/from TOC entry/in Inhaltsverzeichniseintrag/; s/error:/Fehler:/" "$0.said" >&2
exit $code
"""


def test_keys_that_rows_break_are_told_in_any_language(
    scratch_pg18: RealServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, dump = scratch_pg18, scratch_pg18.directory / "schema.dump"
    server.execute("CREATE TABLE codes (code int UNIQUE)")
    place = f"--host={server.socket_directory}", f"--port={server.port}", "--username=postgres"
    server.run("pg_dump", *place, "--format=custom", "--schema-only", f"--file={dump}", "postgres")
    server.execute(f"CREATE ROLE {COPY_ROLE} LOGIN")
    server.execute(f"CREATE DATABASE made OWNER {COPY_ROLE}")
    server.execute("CREATE TABLE codes (code int); INSERT INTO codes VALUES (1), (1)", "made")
    server.execute(f"ALTER TABLE codes OWNER TO {COPY_ROLE}", "made")
    program = tmp_path / "pg_restore"
    program.write_text(_GERMAN.format(program=shlex.quote(str(server.bin_directory / "pg_restore"))))
    program.chmod(0o755)
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    german = Installation(tmp_path, "18.0", 18, "german")
    scratch = Instance(german, caller(), tmp_path / "data", server.socket_directory, server.port)
    assert restore_keys(scratch, "made", dump) == ("CONSTRAINT codes codes_code_key",)
