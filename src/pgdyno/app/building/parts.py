"""The parts of a build that reach its host, the network or servers. Tests give parts of their own."""

from __future__ import annotations

from pgdyno.app.building.fetch import fetch
from pgdyno.app.building.stages import BuildParts
from pgdyno.app.building.training import check_settings, train
from pgdyno.app.building.verifying.verification import verify
from pgdyno.app.local_machine import available_memory_bytes
from pgdyno.toolchain.optimise.bolt import find_bolt

PARTS = BuildParts(find_bolt, fetch, available_memory_bytes, check_settings, train, verify)
