"""A profile-guided PostgreSQL 18 built for real, in the user's own workspace, where what is there is kept.

Not among the usual tests: it takes 20 minutes on two idle cores, its plain reference included. Continuous
integration runs it; what an earlier run has built there is verified again, which takes four.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import psycopg
import pytest

from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import find_installation

pytestmark = [
    pytest.mark.skipif(
        os.environ.get("PGDYNO_REAL_BUILD") != "1", reason="a real build is requested: make test-real-build"
    ),
    pytest.mark.timeout(5400),
    pytest.mark.server,
]

LEAST_TESTS = 400  # 18.6 has 231 regression tests and 122 of isolation, and its extensions' besides
LEAST_ANSWERS = 60_000  # lines; our corpus has 63,000
LEAST_REACHED = 3000  # functions of about 13,000


def build(*arguments: str) -> dict[str, Any]:
    """Run pgdyno build, whose progress goes to stderr, and return what it prints."""
    command = [sys.executable, "-m", "pgdyno", "build", *arguments, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_a_profile_guided_build_is_verified_and_runs() -> None:
    was_there = {one["manifest"]["name"] for one in build("list")["builds"]}
    manifest = build("--source", "debian:18", "--recipe", "pgo", "--train", "pgbench-tpcb")["server"]
    if manifest["name"] in was_there:
        manifest = build("verify", manifest["name"])["server"]
    verified = manifest["verified"]
    assert sum(suite["tests"] for suite in verified["suites"]) >= LEAST_TESTS
    assert verified["answers"] >= LEAST_ANSWERS
    assert verified["crashes"] == 40
    assert int(manifest["optimised"]["reached"].split()[0]) >= LEAST_REACHED

    place = workspace()
    installation = find_installation(manifest["name"], place)
    with place.scratch() as scratch, place.sockets(scratch) as sockets:
        initialise(installation, place.account, scratch / "data")
        server = Instance(installation, place.account, scratch / "data", sockets, 5432, {})
        server.start()
        try:
            with psycopg.connect(server.dsn) as connection:
                row = connection.execute("SELECT sum(i * i) FROM generate_series(1, 1000) AS i").fetchone()
        finally:
            server.stop(is_immediate=True)
    assert row == (333_833_500,)
