"""``pgdyno bench`` on scratch servers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.fix_home import pgdyno
from tests.integration.load.test_sysbench import BRIEFLY, FAILING


@pytest.mark.server
@pytest.mark.usefixtures("home", "pg18_bin")
def test_a_rollback_that_a_script_asks_for_is_no_failure(tmp_path: Path) -> None:
    script = tmp_path / "undone.sql"
    script.write_text("BEGIN;\nUPDATE pgbench_branches SET bbalance = 1;\nROLLBACK;\n")
    done = pgdyno("bench", "--script", str(script), *BRIEFLY, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["failed_transactions"] == []


@pytest.mark.server
@pytest.mark.usefixtures("home", "pg18_bin")
def test_nothing_is_measured_of_which_every_server_gives_up_too_much(tmp_path: Path) -> None:
    script = tmp_path / "failing.sql"
    script.write_text(FAILING.replace("'8MB'", "'4MB'"))
    done = pgdyno("bench", "--script", str(script), *BRIEFLY)
    assert done.returncode != 0
    assert "% of the transactions failed on the server of default" in done.stderr.replace("\xa0", " ")
    assert "of SQLSTATE 40001 (serialization_failure); at most 5 % may" in done.stderr.replace("\xa0", " ")


@pytest.mark.parametrize(
    "text", ["\\set x 1\n", "-- nothing\n/* SELECT 1; */ ;\n\\set x \\\n 1 + \\\n 2\n", ""]
)
def test_a_script_without_a_statement_is_refused(text: str, tmp_path: Path) -> None:
    script = tmp_path / "empty.sql"
    script.write_text(text)
    done = pgdyno("bench", "--script", str(script), "--embedded")
    assert done.returncode != 0
    assert f'script "{script}" has no SQL statement' in done.stderr
