"""An installation is known by what its ``postgres`` says."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.postgres.process.account import caller
from pgdyno.postgres.process.installation import installation_at


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("postgres (PostgreSQL) 18.6 (Debian 18.6-1.pgdg12+1)", "18.6"),
        ("postgres (PostgreSQL) 19devel", "19devel"),
        ("postgres (PostgreSQL) 16.1+site-2~rc1", "16.1+site-2~rc1"),
        ("postgres (PostgreSQL) 18/../../etc", "18"),
        ("postgres (PostgreSQL) 18.6\\033[2J", "18.6"),
    ],
)
def test_a_version_is_no_path(tmp_path: Path, said: str, version: str) -> None:
    postgres = tmp_path / "postgres"
    postgres.write_text(f"#!/bin/sh\nprintf '{said}\\n'\n")
    postgres.chmod(0o755)
    assert installation_at(tmp_path, caller()).version == version
