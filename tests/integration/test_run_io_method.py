"""``pgdyno run io-method`` on real servers, at a size that takes seconds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.fix_home import pgdyno

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home", "pg18_bin")]

TINY = ("--scale", "1", "--block", "1s", "--slice", "100ms", "--blocks", "1")


def test_the_methods_that_work_are_compared_and_the_others_named_with_their_cause() -> None:
    done = pgdyno("run", "io-method", "--embedded", "--workload", "scan-sequential-cached", *TINY, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["baseline"] == "sync"
    assert "worker" in {one["variant"] for one in document["comparisons"]}
    effective = {(one["variant"], one["name"]): one["effective"] for one in document["settings"]}
    assert effective["sync", "io_method"] == "sync"
    assert effective["worker", "io_method"] == "worker"
    assert effective["worker", "max_parallel_workers_per_gather"] == "0"
    (left_out,) = (note for note in document["notes"] if "left out" in note)
    assert left_out.startswith("io_uring is left out on PostgreSQL 18.")
    assert "(embedded): not compiled in" in left_out


def test_a_server_before_18_is_refused_with_how_to_get_a_newer_one(pg15_bin: Path) -> None:
    done = pgdyno("run", "io-method", "--pg-bin", str(pg15_bin))
    assert done.returncode == 2
    assert "has no io_method: it came with PostgreSQL 18" in done.stderr
    assert "pgdyno server install --from-source 18 --with-liburing" in done.stderr


def test_without_a_server_there_is_nothing_to_look_at() -> None:
    done = pgdyno("run", "io-method")
    assert done.returncode == 2
    assert "no PostgreSQL was specified" in done.stderr
