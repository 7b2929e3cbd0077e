"""Failed transactions, of captured and of bundled workloads: the statement and the error are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.fix_home import pgdyno

pytestmark = pytest.mark.server


def test_a_statement_that_fails_is_named_with_its_error(workload_file: Path, home: Path) -> None:
    short = ("--clients", "1", "--blocks", "1", "--block", "300ms")
    place = {"PGDYNO_HOME": str(home), "PGDYNO_AS_BOOTED": "1"}
    done = pgdyno("bench", str(workload_file), "--embedded", "--unlike", *short, "--json", **place)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    [failed] = found["failed_transactions"]
    [reason] = failed["failures"]
    assert (reason["sqlstate"], reason["statement"]) == ("22012", "wrong")  # one of 51 transactions
    assert any("of SQLSTATE 22012 (division_by_zero) in wrong" in note for note in found["notes"])

    shown = pgdyno("report", found["experiment"], **place)
    page = Path(shown.stdout.split()[-1]).read_text()
    assert "22012 (division_by_zero)" in page
    assert "wrong" in page.partition('<h2 id="failures">')[2]


def test_a_bundled_workload_goes_on_after_an_error_and_counts_it(home: Path) -> None:
    # At scale 1 all clients update the row of one branch, and wait for each other's locks.
    short = ("--scale", "1", "--clients", "8", "--blocks", "1", "--block", "1s")
    variants = ("default", "impatient:lock_timeout=1ms")
    place = {"PGDYNO_HOME": str(home), "PGDYNO_AS_BOOTED": "1"}
    done = pgdyno("compare", *variants, "--workload", "pgbench-tpcb", "--embedded", *short, "--json", **place)
    assert done.returncode == 0, done.stderr
    by_variant = {one["variant"]: one for one in json.loads(done.stdout)["failed_transactions"]}
    assert by_variant["default"]["failures"] == []
    failures = by_variant["impatient"]["failures"]
    assert {one["sqlstate"] for one in failures} == {"55P03"}
    assert {one["statement"] for one in failures} <= {"update-branch", "update-teller", "update-account"}
    assert by_variant["impatient"]["share"] > 0
