"""Registers the fixtures that tests of several packages share, and how Hypothesis runs here."""

import gc
import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = (
    "tests.durations",
    "tests.fix_home",
    "tests.fix_servers",
    "tests.fix_scratch",
    "tests.fix_captured",
    "tests.fix_builds",
    "tests.fix_debian",
    "tests.fix_machine",
    "tests.fix_compare_cell",
)

# Tests run beside measuring ones on few CPUs: how long an example takes says nothing about the code.
settings.register_profile("pgdyno", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# A change is not refused because of an example that was drawn by chance and has nothing to do with it: the
# same examples are drawn each time. `make test-long` looks for new ones.
settings.register_profile("same-examples", settings.get_profile("pgdyno"), derandomize=True)
settings.register_profile("new-examples", settings.get_profile("pgdyno"), max_examples=1000, print_blob=True)
settings.load_profile("same-examples")

# A server has five seconds to let pgdyno in. On few CPUs that many tests share it may be held up for longer.
os.environ.setdefault("PGCONNECT_TIMEOUT", "60")

# For matrices of ten rows a thread per CPU costs more than it gives, above all beside other tests. Set before
# numpy is imported, and for the commands that tests start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Servers come and go by the hundred here. Their files are made in memory, if there is enough of it: ext4
# gives inodes out again only some seconds after they were freed, and looks through those for each new file.
_MEMORY, _ENOUGH_BYTES = Path("/dev/shm"), 8 << 30


def _is_suitable(directory: Path) -> bool:
    """Whether programs can be run from a directory, and there is room for the tests' files."""
    if not directory.is_dir() or os.statvfs(directory).f_flag & os.ST_NOEXEC:
        return False
    return shutil.disk_usage(directory).free > _ENOUGH_BYTES


if "TMPDIR" not in os.environ and _is_suitable(_MEMORY):
    os.environ["TMPDIR"] = str(_MEMORY)
    tempfile.tempdir = None  # what was found before


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from what is collected here: it would go through all tests for nothing."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests of real servers first: their files take longest, and the many short ones fill the end."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/integration/"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what takes root where an ordinary user runs the tests, and what takes minutes unless asked for."""
    if item.get_closest_marker("root") is not None and os.geteuid() != 0:
        pytest.skip("takes root")
    if item.get_closest_marker("long") is not None and os.environ.get("PGDYNO_LONG_TESTS") != "1":
        pytest.skip("takes minutes: make test-long")
