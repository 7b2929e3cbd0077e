"""The stages of one build, in order; ``directory.py`` defines their directories."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pgdyno.base.errors import InstallationError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.base.time_left import TimeLeft
from pgdyno.builds.compiling.build_plan import BuildPlan
from pgdyno.builds.compiling.publishing import publish, stage_copy
from pgdyno.builds.compiling.regression import with_tests
from pgdyno.builds.directory import BuildDirectory
from pgdyno.builds.fetch import Fetched, changed
from pgdyno.builds.make import Making, RunAs, Stage, Stages, Watch, share_of_all
from pgdyno.builds.optimise import bolt, huge_text
from pgdyno.builds.patching.patches import apply_patches
from pgdyno.builds.product.manifest import FILE, Manifest, Verified, dump_manifest, read_manifest
from pgdyno.builds.source.extensions import ALL, ExtensionTree, require_modules
from pgdyno.builds.source.source import copy_tree
from pgdyno.builds.training_workloads import Lesson
from pgdyno.builds.verifying.verification import SECONDS as VERIFYING_SECONDS
from pgdyno.builds.verifying.verification import Candidate
from pgdyno.builds.write_manifest import describe, gather
from pgdyno.host.files.source_tree import opened_tree
from pgdyno.host.processes.running import output_of
from pgdyno.model.plans.recipe import TRAINING_S
from pgdyno.postgres.process.installation import Installation, installation_at
from pgdyno.postgres.process.processes import running_from
from pgdyno.postgres.process.workspace import Workspace

_COUNTED_WITHIN_S = 60.0  # arbitrary: the writer of BOLT's counts ends about a second after its server
_BRANCHES = "branches.fdata"


@dataclass(frozen=True)
class BuildParts:
    """Functions that a build calls, in this order; ``PARTS`` in ``build.py`` has the defaults."""

    find_bolt: Callable[[], bolt.Bolt | None]
    fetch: Callable[[str, Workspace, Progress], Fetched]
    available_memory_bytes: Callable[[], int]
    check_settings: Callable[[Installation, Sequence[Lesson], Progress], None]
    train: Callable[[Installation, Installation, Mapping[str, str], Sequence[Lesson], Progress, Watch], None]
    verify: Callable[[Candidate, Workspace, Progress, Watch], Verified]


@dataclass(frozen=True)
class Building:
    """One build in progress. ``reference``: a baseline build of the same source; None: this is one.

    ``lessons``: its training workloads. ``following_s``: expected duration of the work after this build in
    the same run.
    """

    place: Workspace
    plan: BuildPlan
    fetched: Fetched
    reference: Installation | None
    progress: Progress
    parts: BuildParts
    lessons: Sequence[Lesson] = ()
    following_s: float = 0.0

    @property
    def expected_s(self) -> float:
        """The expected duration of all stages."""
        return self._stages.expected_s

    def begin(self) -> None:
        """Run the first stage unless it is complete: unpack and patch the source.

        Raises: UsageError for patches and contrib modules that the source does not support; StorageError.
        """
        self._at.forget_others()
        self._at.root.mkdir(mode=0o755, exist_ok=True)
        if done := self._stages.seconds():
            self.progress.step(f"resuming {self.plan.name}, interrupted after: {[*done][-1]}")
        replace(self._stages, stages=self._stages.stages[:1]).run(self._begin, lambda _: None)

    def run(self) -> Manifest:
        """Run the remaining stages, and return the installed build's manifest.

        Raises: InstallationError, StorageError, errors of servers and load generators; completed stages are
        kept.
        """
        total_s = self.expected_s + self.following_s
        time_left = TimeLeft(self.progress, self._stages.share_done() * self.expected_s / total_s)
        self._stages.run(self._begin, share_of_all(time_left.report, 0.0, self.expected_s, total_s))
        manifest = read_manifest(self._at.prefix).value
        assert isinstance(manifest, Manifest)  # noqa: S101 — just written
        shutil.rmtree(self._at.root)
        return manifest

    @cached_property
    def _stages(self) -> Stages:
        return Stages(tuple(self._in_order()), self._at.done)

    def _in_order(self) -> Iterator[Stage]:
        training_s = 60 + TRAINING_S * len(self.plan.training)
        yield Stage("unpack", 5, self._alone(self._unpack))
        yield Stage("configure", 30, self._alone(self._configure))
        if self.plan.recipe.is_counted:
            yield Stage("compile for counting", 280, self._alone(self._compile_for_counting))
            yield Stage("train", training_s, self._train)
        yield Stage("compile", 340, self._alone(self._compile))
        if self.plan.bolt is not None:
            yield Stage("make it count branches", 20, self._alone(self._make_it_count_branches))
            yield Stage("train on branches", training_s, self._train_on_branches)
            yield Stage("rearrange", 10, self._alone(self._rearrange))
        yield Stage("verify", VERIFYING_SECONDS, self._alone(self._verify))
        yield Stage("install", 1, self._install)

    def _alone(self, run: Callable[[Watch], None]) -> Callable[[Watch], None]:
        """Return ``run`` under the measurement lock: a build and a measurement disturb each other."""

        def run_alone(watch: Watch) -> None:
            with self.place.measuring():
                run(watch)

        return run_alone

    @cached_property
    def _at(self) -> BuildDirectory:
        name = self.plan.name
        return BuildDirectory(self.place.builds() / name, self.place.servers() / name, self.place.account)

    @cached_property
    def _making(self) -> Making:
        return Making(self._at.source, self._at.log, f"PostgreSQL {self.plan.version}", self._run_as)

    def _run_as(self, argv: Sequence[str]) -> list[str]:
        return self.place.account.run_as(argv)

    def _unpack(self, _: Watch) -> None:
        shutil.rmtree(self._at.source, ignore_errors=True)
        self.fetched.unpack(self._at.source)
        try:
            apply_patches(self.plan.patches, self._at.source, self.plan.version)
            require_modules(self.plan.extensions.modules, self._at.source, self.plan.version)
        except UsageError:
            shutil.rmtree(self._at.root)  # this request can never succeed
            raise
        self._at.give(self._at.source)
        copy_trees(self.plan.extensions.trees, self._at)

    def _configure(self, watch: Watch) -> None:
        self._at.log.unlink(missing_ok=True)
        self._making.configure((f"--prefix={self._at.prefix}", *self.plan.options), watch)

    def _compile_for_counting(self, watch: Watch) -> None:
        variables = self.plan.counting(self._at.counts)
        self._making.clean()  # leftovers of an interrupted attempt
        self._making.build(self._directories, variables, watch)
        self._making.install(self._directories, self._at.empty("counting"), variables)

    def _train(self, watch: Watch) -> None:
        environment = self.plan.compiler.counting_environment(self._at.empty("counts"))
        counting = installation_at(self._at.staged("counting") / "bin", self.place.account)
        self.parts.train(counting, self._plain, environment, self.lessons, self.progress, watch)

    def _compile(self, watch: Watch) -> None:
        self._making.clean()
        self._at.log.unlink()  # log of the instrumented program, which is not installed
        if self.plan.recipe.is_counted:
            gather(self.plan.compiler, self._at.counts, self._at.source, self._run_as)
        if self.plan.recipe.is_on_huge_pages:
            self._compile_object()
        variables = self._final
        if self.plan.recipe.is_linked_whole:  # LTO linking takes about as long as compiling
            watch = share_of_all(watch, 0.0, 1.0, 2.0)
        self._making.build(self._directories, variables, watch)
        self._making.install(self._directories, self._at.empty("built"), variables)
        install_trees(self.plan.extensions.trees, self._at, variables, self._run_as)

    def _compile_object(self) -> None:
        """Compile the additional object from a copy of its source that the account can read."""
        source = Path(shutil.copy(huge_text.SOURCE, self._at.root))
        made = self._at.empty("objects") / huge_text.OBJECT
        output_of(huge_text.compiling(self.plan.compiler.cc, source, made), self._run_as)

    def _make_it_count_branches(self, _: Watch) -> None:
        self._remake("branching", self._bolt.counting)

    def _train_on_branches(self, watch: Watch) -> None:
        self._at.empty("branches")
        # Inspect the uninstrumented program: never wait for the end of the instrumented one's output.
        finished = installation_at(self._at.staged("built") / "bin", self.place.account)
        counting = replace(finished, bin_directory=self._at.staged("branching") / "bin")
        self.parts.train(counting, self._plain, {}, self.lessons, self.progress, watch)
        deadline_s = time.monotonic() + _COUNTED_WITHIN_S
        while running_from(self._at.staged("branching")):
            if time.monotonic() > deadline_s:
                raise InstallationError(
                    f"the branch counter did not exit within {_COUNTED_WITHIN_S:g} s of its server",
                    detail=f"processes: {', '.join(map(str, running_from(self._at.staged('branching'))))}",
                    hint="end them, then run the same command again to resume the build",
                )
            time.sleep(0.1)

    def _rearrange(self, _: Watch) -> None:
        output = self._remake("moved", self._bolt.rearranging)
        bolt.require_reached(output)
        bolt.taken_branches(output)  # fails now if unreadable; the manifest records it later
        self._at.rearranged.write_text(output)

    def _remake(self, name: str, command: Callable[[Path, Path, Path], Sequence[str]]) -> str:
        """Copy the build with its server rewritten by a command; return the command's output."""
        copy, made = self._at.empty(name), self._at.staged(name) / "bin/postgres"
        output_of(["cp", "--archive", f"{self._at.root / 'built'}/.", str(copy)], self._run_as)
        finished = self._at.staged("built") / "bin/postgres"
        return output_of(command(finished, self._at.branches / _BRANCHES, made), self._run_as)

    def _verify(self, watch: Watch) -> None:
        staged = self._at.staged("built" if self.plan.bolt is None else "moved")
        placed = stage_copy(self._at.prefix, staged, self._run_as)
        subject = Candidate(
            tested=installation_at(placed / "bin", self.place.account, self.plan.name),
            reference=self.reference,
            making=self._making,
            variables=self._final,
            extensions=with_tests(self._making, self._modules),
            is_on_huge_pages=self.plan.recipe.is_on_huge_pages,
        )
        verified = self.parts.verify(subject, self.place, self.progress, watch)
        build_s = sum(self._stages.seconds().values())
        manifest = describe(self.plan, self._modules, self.fetched, self._at, verified, build_s)
        self._at.manifest.write_text(dump_manifest(manifest))

    def _install(self, _: Watch) -> None:
        publish(self._at.prefix, (FILE, self._at.manifest.read_text()))

    @property
    def _final(self) -> Mapping[str, str]:
        return self.plan.final(self._at.counts, self._at.objects)

    @cached_property
    def _modules(self) -> tuple[str, ...]:
        """The contrib modules, known once the tree is configured; those of every build come last."""
        return chosen_modules(self._making, self.plan.extensions.modules, self.plan.configure.extensions)

    @property
    def _directories(self) -> tuple[str, ...]:
        return (".", *(f"contrib/{name}" for name in self._modules))

    @property
    def _plain(self) -> Installation:
        assert self.reference is not None  # noqa: S101 — a trained build has a reference
        return self.reference

    @property
    def _bolt(self) -> bolt.Bolt:
        assert self.plan.bolt is not None  # noqa: S101 — only builds with BOLT have these stages
        return self.plan.bolt

    def _begin(self, stage: Stage) -> None:
        self.progress.step(f"{self.plan.name}: {stage.name}")


def chosen_modules(making: Making, asked: Sequence[str], always: Sequence[str]) -> tuple[str, ...]:
    """Return the contrib modules to build, each once, with their dependencies.

    Those of every build come last. Raises: InstallationError if make fails.
    """
    named = [name for one in asked for name in _with_dependencies(making, one)]
    return tuple(name for name in dict.fromkeys(named) if name not in always) + tuple(always)


def copy_trees(trees: Sequence[ExtensionTree], at: BuildDirectory) -> None:
    """Copy extension trees into the build directory. Raises: InstallationError for a changed tree."""
    if not trees:
        return
    at.empty(at.extensions.name)
    for tree in trees:
        with opened_tree(tree.path) as found:
            digest = copy_tree(found, at.extensions / tree.name)
        if digest != tree.sha256:
            raise changed(str(tree.path))
    at.give(at.extensions)


def install_trees(
    trees: Sequence[ExtensionTree], at: BuildDirectory, variables: Mapping[str, str], run_as: RunAs
) -> None:
    """Build extension trees with the server's flags, and install them into its prefix.

    They are not trained: no workload uses them. Raises: InstallationError with make's last lines.
    """
    with_pg_config = {**variables, "PG_CONFIG": str(at.staged("built") / "bin/pg_config")}
    for tree in trees:
        making = Making(at.extensions / tree.name, at.log, f"the extension {tree.name}", run_as)
        making.clean(with_pg_config)  # leftovers of an interrupted attempt
        making.build(["."], with_pg_config, lambda _: None)
        making.install_in_place(with_pg_config)


def _with_dependencies(making: Making, requested: str) -> Iterator[str]:
    """Yield a module, or every module for ``ALL``, each after the modules that its tests need."""
    for name in making.value("contrib", "$(SUBDIRS)", {}).split() if requested == ALL else [requested]:
        needed = making.value(f"contrib/{name}", "$(EXTRA_INSTALL)", {}).split()
        yield from (one.removeprefix("contrib/") for one in needed if one.startswith("contrib/"))
        yield name
