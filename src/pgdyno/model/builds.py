"""Builds of PostgreSQL that a plan can choose from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KnownBuild:
    """A build that is installed here, and was verified to be the same PostgreSQL."""

    name: str  # built-0123456789ab
    version: str  # 18.6
    compiler: str
    profile: str  # lto+pgo+bolt
    training: tuple[str, ...]
    tests: int  # of PostgreSQL's own, all passed

    @property
    def major(self) -> int:
        """The major version."""
        return int(self.version.split(".")[0])
