"""The fuzz targets of pgdyno's Python: one per reader of bytes from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.fuzz.readers import configuration, servers, stored, texts, workloads

CORPORA = Path(__file__).with_name("corpora")

TARGETS: Mapping[str, Callable[[bytes], None]] = {
    name.removeprefix("check_"): check
    for module in (configuration, servers, stored, texts, workloads)
    for name, check in vars(module).items()
    if name.startswith("check_") and check.__module__ == module.__name__
}
