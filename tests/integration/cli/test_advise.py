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
    assert (
        "HINT:  lower the largest part, connections' work_mem, or give the server 2.73\xa0GB of memory\n"
        in refused.stderr
    )


def test_a_plan_for_fewer_connections_is_shown_if_it_would_fit() -> None:
    refused = pgdyno("advise", "--embedded", "--ram", "1GB")
    assert refused.returncode == 4
    assert "HINT:  12 connections would fit instead of 97: state how many you need with" in refused.stderr
    head, _, plan = refused.stdout.partition("\n\n")
    assert head == "With --connections 12 this would fit:"
    assert [line.split() for line in plan.splitlines() if line.startswith("max_connections ")] == [
        ["max_connections", "100", "→", "15", "[restart,", "risk:", "restart]"]
    ]
    assert "of 1\xa0GB" in plan.partition("Worst-case memory")[2]
    as_file = pgdyno("advise", "--embedded", "--ram", "1GB", "--format", "conf")
    assert (as_file.returncode, as_file.stdout) == (4, "")


def test_a_lever_that_is_named_is_planned_alone_whatever_its_layer() -> None:
    found = pgdyno("advise", "--embedded", "--lever", "cache_allocation", "--lever", "random_page_cost")
    assert found.returncode == 0, found.stderr
    assert "cache_allocation" in found.stdout
    assert "shared_buffers:" not in found.stdout.partition("Worst-case memory")[0]
    refused = pgdyno("advise", "--embedded", "--lever", "cache_alocation")
    assert refused.returncode == 2
    assert 'no lever "cache_alocation"' in refused.stderr
