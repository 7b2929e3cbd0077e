"""Divisions of caches as commands for a shell, and how they are read and compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.apply.resctrl import FakeResctrl, make_divisible, writers_of

from pgdyno.apply.runs.manual_commands import making_statement, restoring_statements
from pgdyno.base.errors import SettingError
from pgdyno.base.ports import Found
from pgdyno.host.cache_allocation import (
    OF_GROUP,
    OF_OTHERS,
    RESCTRL,
    division_of,
    is_divided_so,
    is_same_division,
)
from pgdyno.model.plans.journal import Receipt, Target
from pgdyno.model.plans.plan import CACHE_GROUP, CACHE_MOUNT, Change, Effect

DIVIDED = "L3CODE:0=fffff L3DATA:0=ffff0 for /srv/my data"


def change(kind: str, key: str, value: str) -> Change:
    return Change("cache_allocation", kind, key, None, value, Effect.IMMEDIATE)


def undone(kind: str, key: str, found: str | None) -> str:
    receipt = Receipt(
        "a/host-01",
        "a",
        "",
        "",
        Target("host", "m", None, "m", "db1"),
        change(kind, key, ""),
        Found(found, {}),
    )
    (statement,) = restoring_statements([receipt])
    return statement


def test_by_hand_it_is_mounted_divided_and_undone() -> None:
    assert making_statement(change(CACHE_MOUNT, RESCTRL, "cdp")) == (
        "mount -t resctrl -o cdp resctrl /sys/fs/resctrl"
    )
    assert making_statement(change(CACHE_GROUP, OF_GROUP, DIVIDED)) == (
        "mkdir /sys/fs/resctrl/pgdyno; "
        "printf '%s\\n' L3CODE:0=fffff L3DATA:0=ffff0 > /sys/fs/resctrl/pgdyno/schemata; "
        "postmaster=$(head -n 1 '/srv/my data/postmaster.pid'); "
        "for task in $postmaster $(pgrep -P $postmaster); do echo $task > /sys/fs/resctrl/pgdyno/tasks; done"
    )
    assert undone(CACHE_MOUNT, RESCTRL, None) == "umount /sys/fs/resctrl"
    assert undone(CACHE_GROUP, OF_GROUP, None) == "rmdir /sys/fs/resctrl/pgdyno"
    assert undone(CACHE_GROUP, OF_GROUP, "L3:0=f") == ": /sys/fs/resctrl/pgdyno existed before"
    assert undone(CACHE_GROUP, OF_OTHERS, "L3:0=7ff;1=7ff") == (
        "printf '%s\\n' 'L3:0=7ff;1=7ff' > /sys/fs/resctrl/schemata"
    )


def test_a_schemata_file_is_read_without_its_bandwidths() -> None:
    found = division_of("   SMBA:0=2048;1=  64\n     MB:0=2048;1=2048\n     L3:0=ffff;1=ff00\n")
    assert found is not None
    assert str(found) == "L3:0=ffff;1=ff00"


@pytest.mark.parametrize("text", ["", "MB:0=100", "L3:0", "L3:x=f", "L3:0=g", "L4:0=f"])
def test_what_divides_no_cache_is_no_division(text: str) -> None:
    assert division_of(text) is None


def test_divisions_are_the_same_whoever_is_in_them_and_however_they_are_ordered() -> None:
    assert is_same_division("L3DATA:1=f;0=f L3CODE:0=0f", "L3CODE:0=f L3DATA:0=f;1=f for /srv/pg")
    assert not is_same_division("L3:0=f", "L3:0=ff")
    assert not is_same_division("L3:0=f", "none")


def test_caches_are_compared_that_both_divisions_or_the_plan_name() -> None:
    assert is_same_division("L2:0=f L3:0=f", "L3:0=f")
    assert not is_same_division("L2:0=f L3:0=f", "L2:0=f L3:0=ff")
    assert not is_same_division("L2:0=f", "L3:0=f")
    assert is_divided_so("L3:0=f", "L2:0=1 L3:0=0f for /srv/pg")
    assert not is_divided_so("L3CODE:0=f L3DATA:0=f", "L3CODE:0=f")
    assert not is_divided_so("L3:0=f", "none")


def test_a_group_without_the_servers_processes_is_not_what_was_asked_for(tmp_path: Path) -> None:
    writer = writers_of(make_divisible(tmp_path))[CACHE_GROUP]
    assert not writer.meets(OF_GROUP, "L3:0=f for /srv/pg", "L3:0=f")
    assert writer.meets(OF_GROUP, "L3:0=f for /srv/pg", "L3:0=f for /srv/pg")
    assert writer.meets(OF_OTHERS, "L3:0=f", "L3:0=0f")


def test_what_is_no_division_or_no_way_to_mount_is_not_tried(tmp_path: Path) -> None:
    root = make_divisible(tmp_path)
    with pytest.raises(SettingError) as caught:
        writers_of(root)[CACHE_MOUNT].write(RESCTRL, "yes")
    assert caught.value.message == '"yes" is not a way to mount /sys/fs/resctrl'
    FakeResctrl(root).mount(with_cdp=False)
    with pytest.raises(SettingError) as caught:
        writers_of(root)[CACHE_GROUP].write(OF_OTHERS, "everything")
    assert caught.value.message == '"everything" is no cache division'
