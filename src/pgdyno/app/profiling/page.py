"""Writes the page of a profile."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from pgdyno.app.local_machine import workspace
from pgdyno.model.profiles.profile import TransactionProfile
from pgdyno.report.profiles.profile_page import render_profiles
from pgdyno.store.files import write_whole


def write_profile(profiles: Sequence[TransactionProfile], destination: Path | None = None) -> Path:
    """Write the page and return its path: beside the reports of experiments by default.

    Raises: StorageError if it cannot be written.
    """
    path = destination or workspace().experiments() / time.strftime("pgdyno-profile-%Y%m%d-%H%M%S.html")
    write_whole(path, render_profiles(profiles).encode())
    return path
