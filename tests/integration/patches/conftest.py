"""Two real builds of PostgreSQL 18: one as it was released, and one with all patches of the catalogue.

They are built in the user's own workspace, where what is there is kept. Not among the usual tests: two plain
builds take a quarter of an hour, their verification included.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fix_servers import RealServer, running_server

from pgdyno.builds.patching.patches import known_patches

LEAST_TESTS, LEAST_ANSWERS = 400, 60_000  # as for other real builds
ALIKE = "autovacuum = off"  # its statistics take numbers that tables have in the other server


def built(*arguments: str) -> Path:
    """Build PostgreSQL 18 without optimisation, and return where its programs are."""
    command = [sys.executable, "-m", "pgdyno", "build", "--source", "debian:18", "--recipe", "o2"]
    done = subprocess.run(
        [*command, "--compiler", "gcc", *arguments, "--json"], stdout=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 0
    found = json.loads(done.stdout)
    verified = found["server"]["verified"]
    assert sum(suite["tests"] for suite in verified["suites"]) >= LEAST_TESTS
    assert (verified["answers"] >= LEAST_ANSWERS) == bool(arguments)
    return Path(found["prefix"]) / "bin"


@pytest.fixture(scope="session")
def released() -> Iterator[RealServer]:
    """A server as it was released."""
    with running_server(built(), ALIKE) as server:
        yield server


@pytest.fixture(scope="session")
def patched() -> Iterator[RealServer]:
    """A server with all patches."""
    names = [patch.name for patch in known_patches() if patch.major == 18]
    with running_server(built(*(word for name in names for word in ("--patch", name))), ALIKE) as server:
        yield server
