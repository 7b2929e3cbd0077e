"""Cloud SQL, as Google publishes it."""

from __future__ import annotations

from tests.fix_settings import MB
from tests.unit.plan.peers.test_amazon_rds import megabytes, of

from pgdyno.plan.peers._contract import PeerFacts


def test_cloud_sql_takes_a_third_and_the_planner_two_fifths() -> None:
    settings = of("cloud-sql", PeerFacts(100 * MB, 1, 17, "ssd"))
    assert megabytes(settings["shared_buffers"]) == 33
    assert megabytes(settings["effective_cache_size"]) == 40
