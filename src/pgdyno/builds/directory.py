"""Directory layout of one build's stages.

builds/built-<id>/          the caller's: nobody else may put links into it
    done                    which stages are done
    log  rearranged.log     what configure and make have printed, and what BOLT
    source/                 the servers' account's, and so are all others
    extensions/             trees of extensions that are not PostgreSQL's own
    counts/                 what trained programs have counted, for the compiler
    branches/               the same for BOLT
    objects/                what is linked in besides PostgreSQL's own
    counting/  built/       installations: of the program that counts, and of the one that is built by that
    branching/  moved/      copies of the latter: with a server that counts its branches, and a rearranged one
    manifest.json           once it is verified

What is kept is copied beside its place, verified there, and renamed: what is installed is what was tested.
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
    """The directory of one build; ``prefix`` is its place of installation."""

    root: Path
    prefix: Path
    account: Account

    @property
    def done(self) -> Path:
        """The record of stages."""
        return self.root / "done"

    @property
    def log(self) -> Path:
        """The output of configure and make."""
        return self.root / "log"

    @property
    def source(self) -> Path:
        """The tree."""
        return self.root / "source"

    @property
    def extensions(self) -> Path:
        """Trees of extensions, each by its name."""
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
        """Return the prefix of an installation below ``name``, which stands for the root directory."""
        return self.root / name / self.prefix.relative_to("/")

    def forget_others(self) -> None:
        """Remove the directory if another account has begun the build: its files are not trusted."""
        if self.source.is_dir() and self.source.stat().st_uid != self.account.uid:
            shutil.rmtree(self.root)

    def empty(self, name: str) -> Path:
        """Return an emptied directory that belongs to the account."""
        path = self.root / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        self.account.own(path)
        return path

    def give(self, tree: Path) -> None:
        """Give a tree to the account, its directories last.

        Until then nobody can change their contents. Raises: PrivilegeError if it cannot reach the tree.
        """
        self.account.require_entry(tree)
        for directory, _, files in os.walk(tree, topdown=False):
            self.account.own(*(Path(directory) / name for name in files), Path(directory))
