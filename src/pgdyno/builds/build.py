"""The use case ``build``: an optimised PostgreSQL from its own source.

Its stages, each of which runs once:

    unpack → configure → [compile for counting → train] → compile
           → [make it count branches → train on branches → rearrange] → verify → install

A build is named after its inputs: the same request finds the existing build, or resumes an interrupted one.
As root, sources are compiled and trained by the servers' unprivileged account; the result is copied, and
the copy belongs to root.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

from pgdyno.base import numbers
from pgdyno.base.errors import InstallationError, SettingError, UsageError
from pgdyno.base.facts import Unknown
from pgdyno.base.ports import Progress
from pgdyno.builds.build_request import BuildRequest, plan_build
from pgdyno.builds.built_servers import find_baseline_build
from pgdyno.builds.compiling.build_plan import BuildPlan
from pgdyno.builds.fetch import changed, fetch
from pgdyno.builds.optimise.bolt import find_bolt
from pgdyno.builds.product.manifest import Manifest, read_manifest
from pgdyno.builds.stages import Building, BuildParts
from pgdyno.builds.training import check_settings, train
from pgdyno.builds.training_workloads import find_training_workloads
from pgdyno.builds.verifying.verification import verify
from pgdyno.model.plans.recipe import PLAIN, TRAINED_ON
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.local_machine import available_memory_bytes, workspace
from pgdyno.postgres.process.registry import find_installation

_NEEDED_BYTES = 2 << 30  # measured: source 160 MB, objects 400 MB, two installations, counts
_SERVER_BYTES = 500 << 20  # memory: a server in training, with its load generator
_COMPILER_BYTES = 200 << 20  # of each concurrent compiler; measured: clang 19, linking included
_BOLT_BYTES = 2300 << 20  # measured: BOLT 19 with a program of 9 MB of machine code
_WORD = re.compile(r"[\w/.+-]+")
_ELSEWHERE = "remove something, or set PGDYNO_HOME to a directory on a larger disk"
PARTS = BuildParts(find_bolt, fetch, available_memory_bytes, check_settings, train, verify)


def build(request: BuildRequest, progress: Progress, parts: BuildParts = PARTS) -> Manifest:
    """Make the requested build unless it exists, and return its manifest.

    Raises: UsageError, RefusedError for an impossible request; InstallationError for a prerequisite or source
    that is missing, and for a failed step; StorageError if the disk is too small; errors of servers and load
    generators in training.
    """
    return _build(request, progress, parts)


def _build(
    request: BuildRequest, progress: Progress, parts: BuildParts, following_s: float = 0.0
) -> Manifest:
    """Make the build unless it exists.

    ``following_s``: expected duration of the work after this build in the same run.
    """
    place = workspace()
    lessons = find_training_workloads(request.training or TRAINED_ON)
    training = tuple(lesson.identity for lesson in lessons)
    fetched, plan = plan_build(request, training, place, progress, parts)
    found = _installed(place.servers() / plan.name)
    if found is not None:
        progress.step(f"{plan.name} already exists")
        # A build that was killed at its very end left its working directory behind.
        shutil.rmtree(place.builds() / plan.name, ignore_errors=True)
        return found
    _require_word(place.root)
    place.require_free(_NEEDED_BYTES, "building PostgreSQL", _ELSEWHERE)
    _require_memory(plan, parts.available_memory_bytes())
    if not following_s:  # else already reported
        for sentence in plan.configure.left_out:
            progress.step(sentence)
    building = Building(place, plan, fetched, None, progress, parts, lessons, following_s)
    building.begin()  # fails before compiling if the source does not allow the request
    if plan.is_plain:
        return building.run()
    reference = _reference(request, building)
    try:
        parts.check_settings(reference, lessons, progress)
    except SettingError:
        shutil.rmtree(place.builds() / plan.name)  # this request can never succeed
        raise
    return replace(building, reference=reference).run()


def _require_word(root: Path) -> None:
    """Raise UsageError for a path that make, or a shell run by make, would split."""
    if not _WORD.fullmatch(str(root)):
        raise UsageError(
            f'PostgreSQL cannot be built in "{root}"',
            detail="make would split this path: it accepts only letters, digits, and / _ . + -",
            hint="set PGDYNO_HOME to another directory",
        )


def _require_memory(plan: BuildPlan, available_bytes: int) -> None:
    """Raise InstallationError now, before the kernel kills a linker or a server. 0 bytes: unknown."""
    compilers = len(os.sched_getaffinity(0))  # make's number of jobs
    largest, what = (
        compilers * _COMPILER_BYTES,
        f"{numbers.size(_COMPILER_BYTES)} for each of {compilers} compilers",
    )
    if plan.bolt is not None and largest < _BOLT_BYTES:
        largest, what = _BOLT_BYTES, f"{numbers.size(_BOLT_BYTES)} for BOLT"
    needed_bytes = _SERVER_BYTES + largest
    if 0 < available_bytes < needed_bytes:
        raise InstallationError(
            "not enough memory for building PostgreSQL",
            detail=f"needed {numbers.size(needed_bytes)}, available {numbers.size(available_bytes)}: "
            f"{numbers.size(_SERVER_BYTES)} for a server, {what}",
            hint="stop other programs, or raise the memory limit of this container or service",
        )


def _installed(prefix: Path) -> Manifest | None:
    """Return the manifest of an existing build. Raises: InstallationError if it cannot be trusted."""
    if not prefix.exists():
        return None
    found = read_manifest(prefix).value
    if isinstance(found, Unknown) or found.verified is None:
        why = (
            f"its manifest: {found.reason}" if isinstance(found, Unknown) else "its last verification failed"
        )
        raise InstallationError(
            f"{prefix.name} exists but cannot be trusted",
            detail=why,
            hint=f"pgdyno build verify {prefix.name} verifies it again; or remove {prefix} and build again",
        )
    return found


def _reference(request: BuildRequest, building: Building) -> Installation:
    """Return a baseline build of the same source; make one if none exists.

    It needs no extensions: the data that both builds read use only features of every build.
    Raises: InstallationError if the source has changed since it was read.
    """
    plan, place, progress = building.plan, building.place, building.progress
    found = find_baseline_build(plan.source_sha256, plan.options, place)
    if found is None:
        progress.step("first a baseline build of the same source, to verify the optimised build against")
        plain = replace(request, recipe=PLAIN, target=None, training=(), extensions=(), patches=())
        made = _build(plain, progress, building.parts, building.expected_s)
        if made.tarball_sha256 != plan.source_sha256:
            raise changed(request.source)
        found = find_installation(made.name, place)
    progress.step(f"reference for verification: {found.name}, a baseline build of the same source")
    return found
