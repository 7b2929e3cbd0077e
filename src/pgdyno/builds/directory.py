"""Directory layout of one build's stages.

builds/built-<id>/          owned by the caller, so that no other account can create links in it
    done                    names of completed stages
    log  rearranged.log     output of configure and make; of BOLT
    source/                 this and all following directories are owned by the servers' account
    extensions/             source trees of external extensions
    counts/                 profile data for the compiler
    branches/               profile data for BOLT
    objects/                additional objects to link
    counting/  built/       installations: instrumented; built from its profile
    branching/  moved/      copies of built/: with a server instrumented by BOLT; with a rearranged server
    manifest.json           once the build is verified

The result is copied next to its final place, verified there, and renamed: the installed files are the tested
files.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from pgdyno.builds.product.manifest import FILE
from pgdyno.postgres.process.account import Account


@dataclass(frozen=True)
class BuildDirectory:
    """The directory of one build; ``prefix`` is its installation prefix."""

    root: Path
    prefix: Path
    account: Account

    @property
    def done(self) -> Path:
        """The record of completed stages."""
        return self.root / "done"

    @property
    def log(self) -> Path:
        """The output of configure and make."""
        return self.root / "log"

    @property
    def source(self) -> Path:
        """PostgreSQL's source tree."""
        return self.root / "source"

    @property
    def extensions(self) -> Path:
        """Source trees of extensions, each in a directory with its name."""
        return self.root / "extensions"

    @property
    def counts(self) -> Path:
        """The compiler's profile data."""
        return self.root / "counts"

    @property
    def objects(self) -> Path:
        """The additional objects to link."""
        return self.root / "objects"

    @property
    def branches(self) -> Path:
        """BOLT's profile data."""
        return self.root / "branches"

    @property
    def rearranged(self) -> Path:
        """BOLT's output."""
        return self.root / "rearranged.log"

    @property
    def manifest(self) -> Path:
        """The manifest of the verified build."""
        return self.root / FILE

    def staged(self, name: str) -> Path:
        """Return the prefix of an installation with ``name`` as its DESTDIR."""
        return self.root / name / self.prefix.relative_to("/")

    def forget_others(self) -> None:
        """Remove the directory if another account started the build: its files are not trusted."""
        if self.source.is_dir() and self.source.stat().st_uid != self.account.uid:
            shutil.rmtree(self.root)

    def empty(self, name: str) -> Path:
        """Return an empty directory owned by the account."""
        path = self.root / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        self.account.own(path)
        return path

    def give(self, tree: Path) -> None:
        """Give a tree to the account, each directory after its files.

        Until then the account cannot change the directory's contents.
        Raises: PrivilegeError if the account cannot reach the tree.
        """
        self.account.require_entry(tree)
        for directory, _, files in os.walk(tree, topdown=False):
            self.account.own(*(Path(directory) / name for name in files), Path(directory))
