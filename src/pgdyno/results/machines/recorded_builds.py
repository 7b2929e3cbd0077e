"""The PostgreSQL build of a recorded experiment in words. Pure.

It is the build of the baseline's server, without parts that cannot change its speed; ``confounding`` defines
these parts.
"""

from __future__ import annotations

from pgdyno.base.errors import ServerError
from pgdyno.measure.records.recorded_facts import fact_at
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.plans.confounding import (
    Build,
    code_flags,
    optimisation_level,
    parse_build,
    relevant_options,
)

BETWEEN_FLAGS, BETWEEN_OPTIONS = " ", ", "
"""Separators of the items of a text; only differing items are shown."""

_NOT_RECORDED = "not recorded"


def flags(experiment: Experiment) -> str | None:
    """Return the compiler flags that change the generated code; None if not recorded."""
    build = _build(experiment)
    if build is None or not build.cflags:
        return None
    return BETWEEN_FLAGS.join([optimisation_level(build), *code_flags(build)])


def options(experiment: Experiment) -> str | None:
    """Return the built-in features and the other configure options; None if not recorded."""
    build = _build(experiment)
    found = None if build is None else relevant_options(build)
    return (
        None if found is None else BETWEEN_OPTIONS.join(f"{name}: {value}" for name, value in found.items())
    )


def package(experiment: Experiment) -> str | None:
    """Return the vendor of the package, "none" if it is none; None if not recorded."""
    build = _build(experiment)
    return None if build is None else build.vendor or "none"


def compiler(experiment: Experiment) -> str | None:
    """Return the compiler with its version; None if not recorded."""
    build = _build(experiment)
    return None if build is None else build.compiler


def _build(experiment: Experiment) -> Build | None:
    version = fact_at(experiment.server, "version")
    if version is None:
        return None
    recorded = {
        "CONFIGURE": fact_at(experiment.server, "capabilities.build_flags"),
        "CFLAGS": fact_at(experiment.server, "capabilities.compiler_flags"),
    }
    lines = [f"{name} = {_one_line(value)}" for name, value in recorded.items()]
    version_text = _one_line(fact_at(experiment.server, "build"))
    try:
        return parse_build(
            "", "\n".join([f"VERSION = PostgreSQL {_one_line(version)}", *lines]), version_text=version_text
        )
    except ServerError:  # the recorded version is not a PostgreSQL version
        return None


def _one_line(value: object) -> str:
    text = " ".join(str(value).split())
    return "" if value is None or text == _NOT_RECORDED else text
