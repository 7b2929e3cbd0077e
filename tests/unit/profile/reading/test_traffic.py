"""Time of sessions in transactions that the server does not count, in a window of its traffic."""

from __future__ import annotations

import pytest

from pgdyno.postgres.sampling.session_samples import SessionSamples
from pgdyno.profile.cycles import Counters
from pgdyno.profile.reading.traffic import TrafficWindow
from pgdyno.profile.stacks import Stack

SESSION, OTHER = 7, 8
EXECUTE, BIND = ("PortalRun", "PostgresMain"), ("GetCachedPlan", "PostgresMain")
LOOKS = SessionSamples(looks=10, working=5, between=4)
CPU = Counters(
    session_cpu=4_000_000_000,
    session_queue=0,
    background_cpu=0,
    client_cpu=0,
    client_queue=0,
    stolen=0,
    busy=0,
)


def window(added: Counters | None = CPU) -> TrafficWindow:
    """Ten seconds in which the server counted seven of one session in 10,000 transactions."""
    return TrafficWindow(LOOKS, 10_000, 7.0, added, (0, 10_000_000_000), frozenset({SESSION}), begun=0)


def stacks(*frames: tuple[str, ...], pid: int = SESSION) -> list[Stack]:
    return [Stack(pid, 0, one, in_kernel=False) for one in frames]


def test_time_of_parse_and_bind_is_added_by_its_share_of_samples() -> None:
    samples = [*stacks(EXECUTE, BIND), *stacks(BIND, BIND, pid=OTHER)]
    found = window().sampled(samples)
    assert found.uncounted_s == pytest.approx(2.0)  # half of 4 s
    assert found.mean_sessions == pytest.approx(0.9)
    cycle = found.cycle(samples)
    assert cycle.plain.latency_us == pytest.approx(900.0)
    assert cycle.client_waits["between statements of a transaction"] == pytest.approx(0.4)


@pytest.mark.parametrize(("added", "samples"), [(CPU, []), (None, stacks(BIND)), (CPU, stacks(EXECUTE))])
def test_without_such_samples_it_is_what_the_server_counts(
    added: Counters | None, samples: list[Stack]
) -> None:
    found = window(added).sampled(samples)
    assert found.mean_sessions == pytest.approx(0.7)
    assert (found.uncounted_s is None) == (added is None or not samples)
