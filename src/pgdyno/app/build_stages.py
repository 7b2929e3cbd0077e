"""The stages of one build, and where each leaves what it made.

builds/built-<id>/          the caller's: nobody else may put links into it
    done  log               which stages are done; what configure and make have printed
    source/                 the servers' account's, and so are all others
    counts/                 what the trained program has counted
    counting/  built/       installations: of the program that counts, and of the one that is kept
    manifest.json           once it is verified

What is kept is copied beside its place, verified there, and renamed: what is installed is what was tested.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from pgdyno.app.fetch import Fetched
from pgdyno.app.time_left import TimeLeft
from pgdyno.app.training import SECONDS, train
from pgdyno.app.verification import SECONDS as VERIFYING_SECONDS
from pgdyno.app.verification import Subject, verify
from pgdyno.model.ports import Progress
from pgdyno.server.installation import Installation, installation_at
from pgdyno.server.workspace import Workspace
from pgdyno.toolchain.build_log import used_flags
from pgdyno.toolchain.build_plan import BuildPlan
from pgdyno.toolchain.counts import gather, reached
from pgdyno.toolchain.making import Making
from pgdyno.toolchain.manifest import (
    FILE,
    Manifest,
    Optimised,
    Trained,
    Verified,
    dump_manifest,
    read_manifest,
)
from pgdyno.toolchain.publishing import publish, put_beside
from pgdyno.toolchain.source_build import ask, text_bytes
from pgdyno.toolchain.stages import Stage, Stages, Watch


@dataclass(frozen=True)
class Building:
    """One build under way."""

    place: Workspace
    plan: BuildPlan
    fetched: Fetched
    reference: Installation | None  # a plain build of the same source; None: this is one
    progress: Progress

    def run(self) -> Manifest:
        """Do what is not done yet, and return the manifest of what is installed.

        Raises: InstallationError, StorageError, errors of servers and generators; done stages are kept.
        """
        self._root.mkdir(mode=0o755, exist_ok=True)
        if done := self._stages.seconds():
            self.progress.step(f"going on with {self.plan.name}, which was interrupted after: {[*done][-1]}")
        time_left = TimeLeft(self.progress, self._stages.share_done())
        self._stages.run(self._begin, time_left.tell)
        manifest = read_manifest(self._prefix).value
        assert isinstance(manifest, Manifest)  # noqa: S101 — written a moment ago
        shutil.rmtree(self._root)
        return manifest

    @cached_property
    def _stages(self) -> Stages:
        return Stages(tuple(self._in_order()), self._root / "done")

    def _in_order(self) -> Iterator[Stage]:
        yield Stage("unpack", 5, self._unpack)
        yield Stage("configure", 30, self._alone(self._configure))
        if self.plan.profile.is_trained:
            yield Stage("compile for counting", 280, self._alone(self._compile_for_counting))
            yield Stage("train", 60 + SECONDS * len(self.plan.training), self._train)
        yield Stage("compile", 340, self._alone(self._compile))
        yield Stage("verify", VERIFYING_SECONDS, self._alone(self._verify))
        yield Stage("install", 1, self._install)

    def _alone(self, run: Callable[[Watch], None]) -> Callable[[Watch], None]:
        """Let no measurement run meanwhile: both would only disturb each other."""

        def run_alone(watch: Watch) -> None:
            with self.place.measuring():
                run(watch)

        return run_alone

    @property
    def _root(self) -> Path:
        return self.place.builds() / self.plan.name

    @property
    def _prefix(self) -> Path:
        return self.place.servers() / self.plan.name

    @property
    def _source(self) -> Path:
        return self._root / "source"

    @property
    def _counts(self) -> Path:
        return self._root / "counts"

    @property
    def _log(self) -> Path:
        return self._root / "log"

    @property
    def _verified(self) -> Path:
        return self._root / FILE

    @cached_property
    def _making(self) -> Making:
        return Making(self._source, self._log, f"PostgreSQL {self.plan.version}", self._run_as)

    def _run_as(self, argv: Sequence[str]) -> list[str]:
        return self.place.account.command(argv)

    def _unpack(self, _: Watch) -> None:
        shutil.rmtree(self._source, ignore_errors=True)
        self.fetched.unpack(self._source)
        self._give(self._source)

    def _configure(self, watch: Watch) -> None:
        self._log.unlink(missing_ok=True)
        self._making.configure((f"--prefix={self._prefix}", *self.plan.options), watch)

    def _compile_for_counting(self, watch: Watch) -> None:
        variables = self.plan.counting(self._counts)
        self._making.build(self.plan.recipe.directories, variables, watch)
        self._making.install(self.plan.recipe.directories, self._empty("counting"), variables)

    def _train(self, watch: Watch) -> None:
        environment = self.plan.compiler.counting_environment(self._empty("counts"))
        train(self._counting_server(), environment, self.plan.training, self.progress, watch)

    def _compile(self, watch: Watch) -> None:
        self._making.clean()
        self._log.unlink()  # of the program that is not installed
        if self.plan.profile.is_trained:
            gather(self.plan.compiler, self._counts, self._source, self._run_as)
        variables = self.plan.final(self._counts)
        self._making.build(self.plan.recipe.directories, variables, watch)
        self._making.install(self.plan.recipe.directories, self._empty("built"), variables)

    def _verify(self, watch: Watch) -> None:
        placed = put_beside(self._prefix, self._staged("built"), self._run_as)
        subject = Subject(
            tested=installation_at(placed / "bin", self.place.account, self.plan.name),
            reference=self.reference,
            making=self._making,
            variables=self.plan.final(self._counts),
            extensions=self.plan.recipe.extensions,
        )
        verified = verify(subject, self.place, self.progress, watch)
        self._verified.write_text(dump_manifest(self._manifest(placed, verified)))

    def _install(self, _: Watch) -> None:
        publish(self._prefix, (FILE, self._verified.read_text()))

    def _manifest(self, staged: Path, verified: Verified) -> Manifest:
        package = self.fetched.package
        return Manifest(
            name=self.plan.name,
            server_version=ask(staged / "bin/pg_config", "--version").removeprefix("PostgreSQL "),
            package=package.name if package else "",
            package_version=package.version if package else "",
            suite=package.suite if package else "",
            tarball=self.fetched.tarball,
            tarball_sha256=self.fetched.sha256,
            unpacked=self.fetched.how,
            compiler=self.plan.compiler_version,
            configure=self.plan.options,
            cflags=ask(staged / "bin/pg_config", "--cflags"),
            extensions=self.plan.recipe.extensions,
            notes=self.plan.recipe.notes(self.plan.major),
            build_s=round(sum(self._stages.seconds().values()), 1),
            installed_at=datetime.now(UTC).isoformat(timespec="seconds"),
            optimised=self._optimised(staged),
            verified=verified,
        )

    def _optimised(self, staged: Path) -> Optimised:
        plan, is_trained = self.plan, self.plan.profile.is_trained
        with self._log.open(errors="replace") as lines:
            used = used_flags(lines, plan.compiler.program)
        return Optimised(
            source=self.fetched.asked,
            profile=plan.profile.name,
            target=plan.target,
            common_flags=used.common,
            other_flags=used.some,
            linking_flags=used.linking,
            objects=used.objects,
            training=tuple(Trained(name, SECONDS) for name in plan.training) if is_trained else (),
            reached=reached(plan.compiler, self._counts, self._run_as) if is_trained else "",
            text_bytes=text_bytes(staged / "bin/postgres"),
        )

    def _begin(self, stage: Stage) -> None:
        self.progress.step(f"{self.plan.name}: {stage.name}")

    def _counting_server(self) -> Installation:
        return installation_at(self._staged("counting") / "bin", self.place.account)

    def _staged(self, name: str) -> Path:
        return self._root / name / self._prefix.relative_to("/")

    def _empty(self, name: str) -> Path:
        """Return an empty directory of the account's, whatever was there before."""
        path = self._root / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        self.place.account.own(path)
        return path

    def _give(self, tree: Path) -> None:
        """Give a tree to the account, its directories last: until then nobody can change what is in them."""
        for directory, _, files in os.walk(tree, topdown=False):
            self.place.account.own(*(Path(directory) / name for name in files), Path(directory))
