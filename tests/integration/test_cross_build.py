"""PostgreSQL 18 built for Arm on another machine, and run there emulated, in the user's own workspace.

Not among the usual tests: both builds have to go through all that any build does, at an emulator's speed.
What an earlier run has built is not built again.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from typing import Any

import pytest

from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.processes import running_from
from pgdyno.postgres.process.registry import find_installation

pytestmark = [
    pytest.mark.skipif(
        os.environ.get("PGDYNO_CROSS_BUILD") != "1" or platform.machine() == "aarch64",
        reason="a real build for another machine is requested: make test-cross-build",
    ),
    pytest.mark.timeout(14400),
    pytest.mark.server,
]

LEAST_TESTS = 400  # as of a build for this machine
LEAST_ANSWERS = 60_000


def pgdyno(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pgdyno, whose progress goes to stderr."""
    return subprocess.run(
        [sys.executable, "-m", "pgdyno", *arguments], stdout=subprocess.PIPE, text=True, check=False
    )


def built(*arguments: str) -> dict[str, Any]:
    """Return the manifest of a build for Arm."""
    done = pgdyno("build", "--source", "debian:18", "--machine", "aarch64", *arguments, "--json")
    assert done.returncode == 0
    manifest: dict[str, Any] = json.loads(done.stdout)["server"]
    return manifest


def atomics(manifest: dict[str, Any]) -> tuple[int, int]:
    """Return how many atomic operations a server does inline, and how many its helpers have."""
    words = manifest["optimised"]["atomics"].split()
    return int(words[0]), int(words[2])


def test_a_build_for_a_cpu_is_verified_against_one_for_all_of_them() -> None:
    manifest = built("--recipe", "o2", "--portable", "neoverse-n1")
    verified = manifest["verified"]
    assert sum(suite["tests"] for suite in verified["suites"]) >= LEAST_TESTS
    assert verified["answers"] >= LEAST_ANSWERS
    assert (verified["crashes"], verified["is_emulated"]) == (40, True)
    builds = [one["manifest"] for one in json.loads(pgdyno("build", "list", "--json").stdout)["builds"]]
    (plain,) = (one for one in builds if one["name"] == verified["reference"])
    assert (plain["machine"], plain["optimised"]["target"]) == ("aarch64", None)
    inline, outlined = atomics(manifest)
    assert inline > 100  # measured: 1637 by clang 19 with recipe lto+pgo
    assert outlined <= 10  # of what libgcc brings along
    inline, outlined = atomics(plain)
    assert inline == 0
    assert outlined >= 4  # compare and swap, exchange, add, and others, of 4 and 8 bytes


def test_its_server_is_seen_by_its_program_and_its_speed_is_not_measured() -> None:
    manifest, place = built("--recipe", "o2"), workspace()
    installation = find_installation(manifest["name"], place)
    assert installation.foreign_machine == "aarch64"
    with place.scratch() as scratch, place.sockets(scratch) as sockets:
        initialise(installation, place.account, scratch / "data")
        server = Instance(installation, place.account, scratch / "data", sockets, 5432, {})
        with server.running():
            assert server.pid in running_from(installation.bin_directory.parent)
    done = pgdyno(
        "compare", f"{manifest['name']}@default", f"{manifest['name']}@fast", "--workload", "pgbench-select"
    )
    assert done.returncode == 4
