"""The parts of a build that reach its host, the network or servers. Tests give parts of their own."""

from __future__ import annotations

from pgdyno.builds.fetch import fetch
from pgdyno.builds.optimise.bolt import find_bolt
from pgdyno.builds.stages import BuildParts
from pgdyno.builds.training import check_settings, train
from pgdyno.builds.verifying.verification import verify
from pgdyno.postgres.process.local_machine import available_memory_bytes

PARTS = BuildParts(find_bolt, fetch, available_memory_bytes, check_settings, train, verify)
