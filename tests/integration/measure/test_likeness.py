"""Captured workloads are compared with their originals before they are measured."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_captured import workload
from tests.fix_home import pgdyno

from pgdyno.model.experiments.captured import Omitted
from pgdyno.postgres.statement_counts import Seen
from pgdyno.store.workload_file import write_workload_file

pytestmark = pytest.mark.server
SHORT = ("--clients", "1", "--blocks", "1", "--block", "300ms")


def test_a_replay_that_is_not_the_workload_is_refused_unless_it_is_wanted(
    workload_file: Path, home: Path
) -> None:
    most = Omitted("COPY t FROM STDIN", "COPY", Seen(1000, 1.0, 0, 0, 0))
    write_workload_file(workload_file, replace(workload(), omitted=(most,), notes=("a gap",)))
    place = {"PGDYNO_HOME": str(home), "PGDYNO_AS_BOOTED": "1"}
    refused = pgdyno("bench", str(workload_file), "--embedded", *SHORT, **place)
    assert refused.returncode == 1
    assert "the replay of w is too unlike the original" in refused.stderr
    assert "this is not the workload; it differs most in" in " ".join(refused.stderr.split())
    assert "--unlike to measure it nevertheless" in " ".join(refused.stderr.split())
    done = pgdyno("bench", str(workload_file), "--embedded", "--unlike", *SHORT, "--json", **place)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["likenesses"]["w"]["likeness"] < 0.01
    assert "w: a gap" in found["notes"]
