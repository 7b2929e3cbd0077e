"""Every fact of every fixture machine, against the tables written by hand beside the machines' files."""

from __future__ import annotations

import pytest
from tests.unit.host.machines import MACHINES, facts_of, load, plain

from pgdyno.host.files.tree import NO_SUCH_FILE


@pytest.mark.parametrize("name", MACHINES)
def test_every_fact_of_the_machine_is_as_written_in_its_table(name: str) -> None:
    machine = load(name)
    found = {key: plain(fact) for key, fact in facts_of(machine.inspect()).items()}
    assert {key: found.get(key) for key in machine.expected} == machine.expected


@pytest.mark.parametrize("name", MACHINES)
def test_facts_that_the_table_leaves_out_are_unknown_for_want_of_a_file(name: str) -> None:
    machine = load(name)
    others = {key: fact for key, fact in facts_of(machine.inspect()).items() if key not in machine.expected}
    assert {key: fact for key, fact in others.items() if fact.value != NO_SUCH_FILE} == {}


def test_there_are_machines_of_all_kinds() -> None:
    assert len(MACHINES) >= 8


def test_every_kind_of_fact_is_known_on_some_machine() -> None:
    known: set[str] = set()
    possible: set[str] = set()
    for name in MACHINES:
        for key, fact in facts_of(load(name).inspect()).items():
            possible |= {key} if key.startswith(("cpu.", "memory.", "limits.")) else set()
            known |= {key} if fact.is_known else set()
    assert possible - known == set()
