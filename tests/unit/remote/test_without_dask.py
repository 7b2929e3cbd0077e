"""Workers on other machines take a package that not everybody has."""

from __future__ import annotations

import sys

import pytest

from pgdyno.model.errors import UsageError
from pgdyno.remote.dask_workers import dask_workers


def test_without_distributed_the_way_to_get_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError) as caught, dask_workers("tcp://127.0.0.1:8786"):
        pytest.fail("there are no workers")
    assert caught.value.message == (
        "workers on other machines take the package distributed, which is not installed"
    )
    assert caught.value.hint == "pip install 'pgdyno[fleet]', here and on the machines"
