"""``pgdyno advise`` on a real server: what does not fit is refused, with the sum and a way out."""

from __future__ import annotations

import pytest
from tests.fix_home import pgdyno

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home", "pg18_bin")]


def test_a_plan_that_does_not_fit_memory_is_refused_as_unsafe() -> None:
    refused = pgdyno("advise", "--embedded", "--ram", "200MB")
    assert refused.returncode == 4
    assert refused.stdout == ""
    assert "of the 200\xa0MB this server may use; above 85\xa0% is refused" in refused.stderr
    assert (
        "1.17\xa0GB  connections' work_mem: 100 × 4MB × (1 for a sort + 2 for a hash table)" in refused.stderr
    )
    assert "the limit was read from --ram" in refused.stderr
    assert "HINT:" in refused.stderr


def test_a_lever_that_is_named_is_planned_alone_whatever_its_layer() -> None:
    found = pgdyno("advise", "--embedded", "--lever", "cache_allocation", "--lever", "random_page_cost")
    assert found.returncode == 0, found.stderr
    assert "cache_allocation" in found.stdout
    assert "shared_buffers:" not in found.stdout.partition("Memory at worst")[0]
    refused = pgdyno("advise", "--embedded", "--lever", "cache_alocation")
    assert refused.returncode == 2
    assert 'no lever "cache_alocation"' in refused.stderr
