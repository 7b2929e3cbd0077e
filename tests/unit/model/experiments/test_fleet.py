"""Names of a fleet's machines and of their bundles."""

from __future__ import annotations

import hashlib

import pytest

from pgdyno.model.experiments.fleet import MACHINE_NAME, FleetOrder, MachineOrder


def test_a_bundle_is_called_by_its_machine_and_by_the_command() -> None:
    order = FleetOrder("huge", MachineOrder(("run", "huge-pages"), 60.0), ("a", "b"))
    digest = hashlib.sha256(b'["run", "huge-pages"]').hexdigest()
    assert order.bundle_name("a") == f"a-{digest[:8]}.zip"
    other = FleetOrder("huge", MachineOrder(("run huge-pages",), 60.0), ("a",))
    assert other.bundle_name("a") != order.bundle_name("a")


@pytest.mark.parametrize("name", ["a", "db-1.example_2", "0" * 60])
def test_names_that_are_files_and_resources(name: str) -> None:
    assert MACHINE_NAME.fullmatch(name)


@pytest.mark.parametrize("name", ["", ".a", "-a", "a/b", "a b", "ä", "0" * 61, "a\n"])
def test_names_that_are_none(name: str) -> None:
    assert not MACHINE_NAME.fullmatch(name)
