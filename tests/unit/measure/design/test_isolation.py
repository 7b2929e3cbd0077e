"""Splitting CPUs between server and client."""

from __future__ import annotations

import pytest

from pgdyno.measure.design.isolation import split_cpus


@pytest.mark.parametrize(
    ("cpus", "server", "client"),
    [((0, 1), (0,), (1,)), ((3, 1, 2), (1, 2), (3,)), (tuple(range(8)), tuple(range(6)), (6, 7))],
)
def test_the_last_quarter_issues_load(
    cpus: tuple[int, ...], server: tuple[int, ...], client: tuple[int, ...]
) -> None:
    split = split_cpus(cpus, is_wanted=True)
    assert (split.server, split.client, split.is_isolated) == (server, client, True)


def test_a_single_cpu_is_shared() -> None:
    assert not split_cpus((0,), is_wanted=True).is_isolated


def test_sharing_can_be_asked_for() -> None:
    assert split_cpus((0, 1), is_wanted=False).client == (0, 1)
