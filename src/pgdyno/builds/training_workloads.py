"""Lessons of a training: workloads, each with the settings of the server that it loads.

They are written like a variant, ``WORKLOAD[:setting=value,…]``, and refused what a variant is. A plan that
keeps the server from planning its statements again, for example, gets a build that has not learned to plan.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pgdyno.base.document import to_document
from pgdyno.base.errors import DurabilityError, VariantError
from pgdyno.host.kernel_file import display_name
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.variants.variant import Variant, parse_variant
from pgdyno.workload.workload_choice import find_workloads

_ID_LENGTH = 8  # of a digest
_FILE = re.compile(r".*?\.toml(?=:|$)")  # a workload's, whose path may have colons of its own


@dataclass(frozen=True)
class Lesson:
    """A workload that a build is trained on, and the server meanwhile: a variant called like the workload."""

    workload: Workload
    variant: Variant

    @property
    def identity(self) -> str:
        """The text by which a build knows it: of two that are equal, the same."""
        return str(replace(self.variant, name=identity(self.workload)))


def identity(workload: Workload) -> str:
    """Return the name by which a build knows a workload; of a captured one its contents and copy are part."""
    if workload.captured is None:
        return workload.name
    text = json.dumps([to_document(workload.captured), workload.data_set.key], sort_keys=True)
    return f"{workload.name}-{hashlib.sha256(text.encode()).hexdigest()[:_ID_LENGTH]}"


def find_lessons(asked: Iterable[str]) -> tuple[Lesson, ...]:
    """Return the lessons that ``WORKLOAD[:setting=value,…]`` name, each once.

    Raises: UsageError for an unknown workload; VariantError for what is no setting, or none that a server in
    training may have; DurabilityError.
    """
    lessons = map(_lesson, asked)
    return tuple({lesson.identity: lesson for lesson in lessons}.values())


def _lesson(text: str) -> Lesson:
    file = _FILE.match(text)
    name = text.partition(":")[0] if file is None else file[0]
    [workload] = find_workloads((name,)).values()
    variant = parse_variant(workload.name + text.removeprefix(name))
    _require_allowed(text, variant)
    in_order = dict(sorted(variant.settings.items()))  # which makes no difference to a server
    return Lesson(workload, replace(variant, settings=in_order))


def _require_allowed(text: str, variant: Variant) -> None:
    """Raise an error for settings that are not PostgreSQL's, and for those that could lose data."""
    others = [display_name(key) for key in variant.settings if key not in variant.gucs]
    if others:
        raise VariantError(
            f'--train "{text}": {others[0]} is no setting of PostgreSQL',
            detail="training leaves the machine, and how a server is started, as they are",
            hint="leave it out",
        )
    if not variant.is_durable:
        raise DurabilityError(
            f'--train "{text}" is not durable: {", ".join(variant.unsafe_settings)}',
            detail="no plan has such a setting, so no server would run as the build was trained",
            hint="leave it out",
        )
