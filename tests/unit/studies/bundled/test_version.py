"""What ``pgdyno run version`` asks, and what it refuses."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.measure.bundled_study import StudyContext
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.variants.variant import Variant
from pgdyno.studies.bundled import version


def context(*servers: str) -> StudyContext:
    return StudyContext(
        Variant("default"), version.STUDY.measures, Design(), factors={"server": servers} if servers else {}
    )


def test_the_first_server_is_what_the_others_are_compared_with() -> None:
    found = version.study(context("source-17", "source-18", "debian-15"))
    assert found.question == (
        "How does PostgreSQL of source-18 and debian-15 compare with that of source-17?"
    )
    assert found.workloads == ("sysbench-read-only", "sysbench-read-write", "pgbench-select")


@pytest.mark.parametrize(("servers", "count"), [((), 0), (("source-18",), 1)])
def test_fewer_than_two_servers_are_refused(servers: tuple[str, ...], count: int) -> None:
    with pytest.raises(UsageError) as caught:
        version.study(context(*servers))
    assert caught.value.message == f"a comparison of versions takes two servers, not {count}"
    assert caught.value.hint == (
        "name them with --factor server=A,B; pgdyno server list shows the known servers"
    )
