"""Builds adapters. The only place where ports and adapters meet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pgdyno.app.arena import Arena, online_cpus
from pgdyno.app.datasets import DataSets
from pgdyno.experiments.isolation import split_cpus
from pgdyno.generators.discovery import find_generator
from pgdyno.model.ports import Progress
from pgdyno.server.account import current_account
from pgdyno.server.installation import Installation, embedded_installation
from pgdyno.server.workspace import Workspace, default_root


def workspace() -> Workspace:
    """Return this user's workspace."""
    return Workspace(default_root(), current_account())


def embedded() -> Installation:
    """Return the embedded PostgreSQL. Raises: ServerError if the extra ``pgdyno[pg]`` is missing."""
    return embedded_installation(workspace())


@contextmanager
def open_arena(installation: Installation, progress: Progress, *, is_isolated: bool) -> Iterator[Arena]:
    """Provide an arena for scratch servers of one installation; its directories are removed at the end."""
    place = workspace()
    with place.scratch() as scratch, place.sockets() as sockets:
        data_sets = DataSets(
            place,
            installation,
            lambda name: find_generator(
                name, bin_directory=installation.bin_directory, scratch_directory=scratch
            ),
            progress,
        )
        split = split_cpus(online_cpus(), is_wanted=is_isolated)
        yield Arena(place, installation, data_sets, scratch, sockets, split)
