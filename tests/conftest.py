"""Registers the fixtures that tests of several packages share, and how Hypothesis runs here."""

import os
import shutil
import tempfile
from itertools import chain, groupby, islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = (
    "tests.durations",
    "tests.fix_home",
    "tests.fix_servers",
    "tests.fix_scratch",
    "tests.fix_builds",
    "tests.fix_debian",
    "tests.fix_machine",
)

# Tests run beside measuring ones on few CPUs: how long an example takes says nothing about the code.
settings.register_profile("pgdyno", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pgdyno")

# For matrices of ten rows a thread per CPU costs more than it gives, above all beside other tests. Set before
# numpy is imported, and for the commands that tests start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Servers come and go by the hundred here. Their files are made in memory, if there is enough of it: ext4
# gives inodes out again only some seconds after they were freed, and looks through those for each new file.
_MEMORY, _ENOUGH_BYTES = Path("/dev/shm"), 8 << 30
if "TMPDIR" not in os.environ and _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ENOUGH_BYTES:
    os.environ["TMPDIR"] = str(_MEMORY)
    tempfile.tempdir = None  # what was found before


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let each worker begin with its share of the tests of servers, so that the last ones are short.

    At first, xdist gives each worker as many tests as the others, in their order.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    shares: list[list[pytest.Item]] = [[] for _ in range(workers)]
    of_servers = [item for item in items if "integration" in item.path.parts]
    for place, (_, of_file) in enumerate(groupby(of_servers, key=lambda item: item.path)):
        shares[place % workers] += of_file
    others = iter([item for item in items if "integration" not in item.path.parts])
    size = len(items) // workers
    shares = [[*share, *islice(others, max(0, size - len(share)))] for share in shares]
    items[:] = [*chain.from_iterable(shares), *others]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what takes root where an ordinary user runs the tests."""
    if item.get_closest_marker("root") is not None and os.geteuid() != 0:
        pytest.skip("takes root")
