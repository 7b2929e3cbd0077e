"""Write a profile's page and its stacks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pgdyno.postgres.process.local_machine import workspace
from pgdyno.profile.records.profile_record import TransactionProfile
from pgdyno.profile.view.profile_page import folded, render_profiles
from pgdyno.store.files import write_whole


def write_profile(profiles: Sequence[TransactionProfile], destination: Path | None = None) -> Path:
    """Write the page and return its path; by default in the directory of experiments' reports.

    Raises: StorageError if it cannot be written.
    """
    path = destination or workspace().experiments() / time.strftime("pgdyno-profile-%Y%m%d-%H%M%S.html")
    write_whole(path, render_profiles(profiles).encode())
    return path


def write_folded(profiles: Sequence[TransactionProfile], destination: Path) -> None:
    """Write the sampled stacks; with several variants, the variant's name is the outermost function.

    Raises: StorageError if it cannot be written.
    """
    lines: list[str] = []
    for one in profiles:
        named = one.variant if len(profiles) > 1 else ""
        stacks = (
            [replace(stack, frames=(named, *stack.frames)) for stack in one.stacks] if named else one.stacks
        )
        lines += folded(stacks)
    write_whole(destination, "".join(f"{line}\n" for line in lines).encode())
