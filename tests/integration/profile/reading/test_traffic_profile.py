"""The traffic of a running server, profiled."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fix_servers import RealServer
from tests.integration.cli.test_profile import (
    SLEEP_MS,
    WITH_SAMPLES,
    WITHOUT_SAMPLES,
    profiled,
    traffic,
    us_by_group,
)

from pgdyno.cli.output import Lines
from pgdyno.host.tracing.perf import find_perf
from pgdyno.profile import parts
from pgdyno.profile.reading.hardware_counting import HardwareCounters
from pgdyno.profile.reading.traffic_profile import profile_attached
from pgdyno.profile.records.profile_record import AccountGroup

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]


def test_the_traffic_of_a_running_server_is_profiled_and_a_planted_sleep_is_found(
    pg18: RealServer, home: Path, tmp_path: Path
) -> None:
    del home
    with traffic(pg18, tmp_path):
        found = profiled("--dsn", pg18.dsn, "--for", "8s")
    assert found["workload"] == "its own traffic"
    slept_us = us_by_group(found, "waiting")["Timeout:PgSleep"]
    assert slept_us == pytest.approx(SLEEP_MS * 1000, rel=0.3)
    assert found["sessions"] == pytest.approx(2, abs=0.3)
    if WITH_SAMPLES:
        assert parts.PLANNING in us_by_group(found, "server")
        assert not [one for one in found["remarks"] if one.endswith(WITHOUT_SAMPLES)]
    assert any(remark.startswith("while watching, pgdyno used ") for remark in found["remarks"])
    assert found["transactions_per_s"] * found["latency"]["us"] / 1e6 == pytest.approx(
        found["sessions"], rel=0.3
    )


@pytest.mark.skipif(find_perf() is None, reason="perf is not installed: apt-get install linux-perf")
def test_a_running_servers_sessions_are_counted(pg18: RealServer, home: Path, tmp_path: Path) -> None:
    """By the kernel's own clock of CPU time, in ms: every machine has that counter."""
    del home

    def counters(directory: Path) -> HardwareCounters:
        return HardwareCounters(directory, find_perf() or "", {"CPU time": "task-clock"})

    with traffic(pg18, tmp_path):
        found = profile_attached(pg18.dsn, 8.0, Lines(), counters)
    assert found.counted is not None
    [figure] = found.counted.events
    cpu_us = sum(line.time.us for line in found.lines if line.group is AccountGroup.SERVER)
    assert figure.per_transaction.value * 1000 == pytest.approx(cpu_us, rel=0.5)
