"""Root is not misled by a user who exchanges directories and files while root works in them."""

from __future__ import annotations

import os

import pytest
from bench.race import race, table

pytestmark = pytest.mark.root


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be misled")
def test_a_user_who_exchanges_names_misleads_nobody() -> None:
    results = race(tries=300)
    assert [(one.operation, one.changed, one.read, one.hung) for one in results] == [
        (one.operation, 0, 0, 0) for one in results
    ], table(results)
    assert len(results) == 14
    assert sum(one.during for one in results) > 0, "no names were exchanged during any try"
    assert sum(one.done for one in results) > 0 < sum(one.refused for one in results)
