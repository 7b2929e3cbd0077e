"""Which experiments count as one machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.golden.synthetic_fleet import fleet, given, on_machine, with_processor

from pgdyno.base.errors import UsageError
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.results.fleets.fleet_members import identity_notes, machines_of, members_of

HINT = "name all of them or none: NAME=FILE, for example db1=a.zip db2=b.zip"


def machines(*experiments: Experiment, names: list[str] | None = None) -> list[str]:
    return [one.machine for one in members_of(given(experiments, names))]


def with_host(experiment: Experiment, part: str, **facts: Any) -> Experiment:
    known = {name: {"value": value, "source": "test"} for name, value in facts.items()}
    return replace(experiment, host={**experiment.host, part: {**experiment.host[part], **known}})


def with_disk(experiment: Experiment, name: str) -> Experiment:
    disk = {"name": name, "size_bytes": 1 << 40, "is_rotational": False}
    devices = {"value": [disk], "source": "test"}
    mounts = {"value": [{"disk": name}], "source": "test"}
    return replace(experiment, host={**experiment.host, "block_devices": devices, "mounts": mounts})


def test_other_hardware_is_another_machine() -> None:
    first = on_machine(1, 1.1, 1.0)
    assert machines(*fleet(3)) == ["A", "B", "C"]
    assert machines(first, with_host(first, "memory", total_bytes=1 << 40)) == ["A", "B"]
    assert machines(first, with_host(first, "cpu", logical_count=16)) == ["A", "B"]


def test_hardware_that_is_alike_is_one_machine_whatever_it_runs() -> None:
    first = on_machine(1, 1.1, 1.0)
    later = replace(first, id="later", server={**first.server, "version": "18.7"})
    assert machines(first, with_host(later, "kernel", release="6.12.0")) == ["A", "A"]
    assert machines(first, with_host(later, "cpu", is_smt_active=False, frequency_mhz=3000.0)) == ["A", "A"]
    # 12 kB less memory: another kernel takes more for itself.
    total = first.host["memory"]["total_bytes"]["value"]
    assert machines(first, with_host(later, "memory", total_bytes=total - 12288)) == ["A", "A"]


def test_a_kernel_that_keeps_more_memory_makes_no_other_machine() -> None:
    """16.49 and 16.51 GB are rounded to 16 and 17 GB, and yet alike; 31 and 32 GB are 3.1 % apart."""
    first = on_machine(1, 1.1, 1.0)
    less, more, other = (
        with_host(replace(first, id=f"{size}"), "memory", total_bytes=int(size * 1024**3))
        for size in (16.49, 16.51, 16.0)
    )
    assert machines(less, more) == ["A", "A"]
    assert machines(less, other) == ["A", "A"]
    large, small = (
        with_host(replace(first, id=f"{size}"), "memory", total_bytes=size * 1024**3) for size in (32, 31)
    )
    assert machines(large, small) == ["A", "B"]


def test_data_on_another_disk_make_no_other_machine() -> None:
    first = on_machine(1, 1.1, 1.0)
    assert machines(first, with_disk(replace(first, id="later"), "sdb")) == ["A", "A"]


def test_other_memory_and_disks_under_one_name_are_told_and_believed() -> None:
    first = on_machine(1, 1.1, 1.0)
    larger = with_host(with_disk(replace(first, id="later"), "sdb"), "memory", total_bytes=1 << 40)
    members = members_of(given([first, larger], ["db1", "db1"]))
    assert [one.machine for one in members] == ["db1", "db1"]
    (note,) = identity_notes(members, is_named=True)
    said = note.replace("\N{NO-BREAK SPACE}", " ")
    assert said.startswith(
        "on-1.zip and later.zip count as one machine because of its name, db1, although these differ: "
        "memory: 32 GB and 1 TB; disks: "
    )
    assert said.endswith(" and sdb, 1 TB, solid state")


def test_what_is_unknown_makes_no_other_machine() -> None:
    first, second = fleet(2)
    assert machines(first, replace(second, host={})) == ["A", "A"]


def test_letters_go_on_after_z() -> None:
    many = [replace(on_machine(1, 1.1, 1.0), id=str(n), host=with_processor(str(n))) for n in range(28)]
    assert machines(*many)[24:] == ["Y", "Z", "A2", "B2"]


def test_names_make_machines_of_alike_hardware() -> None:
    first = on_machine(1, 1.1, 1.0)
    second = replace(first, id="second")
    members = members_of(given([first, second], ["db1", "db2"]))
    assert [one.label for one in members] == ["db1 (on-1.zip)", "db2 (second.zip)"]
    (note,) = identity_notes(members, is_named=True)
    assert note == (
        "db1 and db2 have matching processors, caches and memory: they count as two machines because of "
        "their names"
    )
    assert machines(first, second, names=["db1", "db1"]) == ["db1", "db1"]


def test_one_name_for_two_machines_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        machines(*fleet(2), names=["db1", "db1"])
    assert caught.value.message == 'on-1.zip and on-2.zip both name the machine "db1", but it differs'
    assert caught.value.detail == "processor: Example CPU 9001 and Example CPU 9002"
    assert caught.value.hint == "give each machine its own name"


def test_some_names_are_refused() -> None:
    first, second = given(fleet(2))
    with pytest.raises(UsageError) as caught:
        members_of([replace(first, machine="db1"), second])
    assert caught.value.message == 'on-1.zip names its machine "db1", but on-2.zip names none'
    assert caught.value.hint == HINT


def test_what_counts_as_one_is_told() -> None:
    first = on_machine(1, 1.1, 1.0)
    members = members_of(given([first, replace(first, id="later")]))
    (note,) = identity_notes(members, is_named=False)
    assert note == (
        "A: 2 experiments with matching processors, caches and memory count as one machine; if they ran on "
        f"several, {HINT}"
    )
    assert identity_notes(members_of(given(fleet(2))), is_named=False) == []


def test_a_machine_is_described_by_all_its_experiments() -> None:
    first = on_machine(1, 1.1, 1.0)
    later = with_host(replace(first, id="later"), "kernel", release="6.12.0")
    (machine,) = machines_of(members_of(given([first, later])))
    assert machine.facts["processor"] == "Example CPU 9001"
    assert machine.facts["kernel"] == "6.1.0-40-amd64 / 6.12.0"
    assert machine.facts["PostgreSQL"] == "18.6"
    assert [one.source for one in machine.experiments] == ["on-1.zip", "later.zip"]
