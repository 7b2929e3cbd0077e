"""Registers the fixtures that tests of several packages share, and how Hypothesis runs here."""

import os

from hypothesis import HealthCheck, settings

pytest_plugins = (
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
