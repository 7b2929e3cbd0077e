"""Find out which I/O methods a PostgreSQL supports on this host, without a running server."""

from __future__ import annotations

from pgdyno.measure.design.isolation import split_cpus
from pgdyno.model.experiments.bundled_study import IoSupport
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import initialise
from pgdyno.postgres.process.io_uring import io_uring_obstacle
from pgdyno.postgres.process.local_machine import online_cpus, workspace


def find_io_support(installation: Installation, *, is_isolated: bool, named: str | None = None) -> IoSupport:
    """Let the server try io_uring on a data directory made for that.

    ``is_isolated`` is whether the load generator has CPUs of its own; ``named`` is what variants call the
    server.
    Raises: ServerStartError if none can be made.
    """
    place = workspace()
    with place.scratch() as scratch:
        data_directory = scratch / "io-uring"
        initialise(installation, place.account, data_directory)
        obstacle = io_uring_obstacle(installation, place.account, data_directory)
    cpus = cpus_of_server(online_cpus(), is_isolated=is_isolated)
    return IoSupport(installation.title, installation.major, cpus, obstacle, named)


def cpus_of_server(online: tuple[int, ...], *, is_isolated: bool) -> int:
    """Return how many CPUs a server has, of those that are online."""
    return len(split_cpus(online, is_wanted=is_isolated).server)
