"""Lessons of a training: workloads, each with the settings of its server.

The syntax is that of variants, ``WORKLOAD[:setting=value,…]``, with the same restrictions. Settings matter:
a plan with cached query plans, for example, should get a build that was not trained on the planner.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pgdyno.base.errors import DurabilityError, VariantError
from pgdyno.base.facts import to_document
from pgdyno.host.kernel_file import display_name
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.variants.variant import Variant, parse_variant
from pgdyno.workload.workload_choice import find_workloads

_ID_LENGTH = 8  # of a digest
_FILE = re.compile(r".*?\.toml(?=:|$)")  # a workload file; its path may contain colons


@dataclass(frozen=True)
class Lesson:
    """A training workload, and its server's settings as a variant named after the workload."""

    workload: Workload
    variant: Variant

    @property
    def identity(self) -> str:
        """The text that identifies this lesson in a build; equal lessons have equal texts."""
        return str(replace(self.variant, name=identity(self.workload)))


def identity(workload: Workload) -> str:
    """Return the text that identifies a workload in a build.

    For a captured workload it includes a digest of the contents and of the data set.
    """
    if workload.captured is None:
        return workload.name
    text = json.dumps([to_document(workload.captured), workload.data_set.key], sort_keys=True)
    return f"{workload.name}-{hashlib.sha256(text.encode()).hexdigest()[:_ID_LENGTH]}"


def find_training_workloads(asked: Iterable[str]) -> tuple[Lesson, ...]:
    """Return the lessons named by ``WORKLOAD[:setting=value,…]``, each once.

    Raises: UsageError for an unknown workload; VariantError for an unknown setting, or one that is not
    allowed in training; DurabilityError.
    """
    lessons = map(_lesson, asked)
    return tuple({lesson.identity: lesson for lesson in lessons}.values())


def _lesson(text: str) -> Lesson:
    file = _FILE.match(text)
    name = text.partition(":")[0] if file is None else file[0]
    [workload] = find_workloads((name,)).values()
    variant = parse_variant(workload.name + text.removeprefix(name))
    _require_allowed(text, variant)
    ordered = dict(sorted(variant.settings.items()))  # equal settings give an equal identity
    return Lesson(workload, replace(variant, settings=ordered))


def _require_allowed(text: str, variant: Variant) -> None:
    """Raise VariantError for settings other than PostgreSQL's, DurabilityError for non-durable ones."""
    others = [display_name(key) for key in variant.settings if key not in variant.gucs]
    if others:
        raise VariantError(
            f'--train "{text}": {others[0]} is not a PostgreSQL setting',
            detail="training changes neither the machine nor how a server is started",
            hint="omit it",
        )
    if not variant.is_durable:
        raise DurabilityError(
            f'--train "{text}" is not durable: {", ".join(variant.unsafe_settings)}',
            detail="plans never contain such a setting, so no server would run as the build was trained",
            hint="omit it",
        )
