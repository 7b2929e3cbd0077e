"""Options that name a server and its resources: what they refuse."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import SettingError, UsageError
from pgdyno.cli._server_options import StatedFigures, layers_to_measure, parse_layers
from pgdyno.model.plans.plan import Layer
from pgdyno.plan.engine.resources import StorageKind

NOTHING = StatedFigures(None, None, None, None, None, None)
GIB = 1 << 30


def test_figures_are_bytes_and_kinds() -> None:
    given = StatedFigures("16GB", 4.0, "ssd", "1TB", "100GB", 50).parsed()
    assert (given.memory_bytes, given.data_bytes, given.free_disk_bytes) == (16 * GIB, 1024 * GIB, 100 * GIB)
    assert (given.cpu_count, given.storage, given.connections) == (4.0, StorageKind.SSD, 50)
    assert NOTHING.parsed().memory_bytes is None


def test_an_amount_of_memory_without_its_unit_is_refused() -> None:
    with pytest.raises(SettingError) as caught:
        StatedFigures("16", None, None, None, None, None).parsed()
    assert str(caught.value) == (
        "--ram 16 is only 16 bytes\nDETAIL:  a server needs more\nHINT:  add a unit, e.g. 16GB"
    )


def test_layers_are_named_or_all() -> None:
    assert parse_layers("system,application") == (Layer.SYSTEM, Layer.APPLICATION)
    assert parse_layers("all") == tuple(Layer)
    with pytest.raises(UsageError) as caught:
        parse_layers("system,kernel")
    assert str(caught.value) == (
        'no layer "kernel"\nHINT:  known: application, system, compiler, microarchitecture, hardware, or all'
    )


def test_of_an_owners_server_only_its_settings_are_measured_unless_layers_are_named() -> None:
    assert layers_to_measure(None, is_attached=True) == (Layer.APPLICATION,)
    assert layers_to_measure("system", is_attached=True) == (Layer.SYSTEM,)
    assert layers_to_measure(None)[:2] == (Layer.APPLICATION, Layer.COMPILER)
