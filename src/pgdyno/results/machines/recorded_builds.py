"""The PostgreSQL build of a recorded experiment in words. Pure.

Parts that cannot change its speed are left out.

It is the build of the server that the baseline ran; see ``confounding`` for what is left out.
"""

from __future__ import annotations

from pgdyno.base.errors import ServerError
from pgdyno.measure.records.recorded_facts import fact_at
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.plans.confounding import Build, code_flags, optimisation_level, parse_build, telling_options

BETWEEN_FLAGS, BETWEEN_OPTIONS = " ", ", "
"""What stands between the items of a text, of which only those that differ are worth telling."""

_NOT_RECORDED = "not recorded"


def flags(experiment: Experiment) -> str | None:
    """Return the compiler's flags that change the code."""
    build = _build(experiment)
    if build is None or not build.cflags:
        return None
    return BETWEEN_FLAGS.join([optimisation_level(build), *code_flags(build)])


def options(experiment: Experiment) -> str | None:
    """Return the features built in, and the other configure options."""
    build = _build(experiment)
    found = None if build is None else telling_options(build)
    return (
        None if found is None else BETWEEN_OPTIONS.join(f"{name}: {value}" for name, value in found.items())
    )


def package(experiment: Experiment) -> str | None:
    """Return whose package it is."""
    build = _build(experiment)
    return None if build is None else build.vendor or "none"


def compiler(experiment: Experiment) -> str | None:
    """Return the compiler with its version."""
    build = _build(experiment)
    return None if build is None else build.compiler


def _build(experiment: Experiment) -> Build | None:
    version = fact_at(experiment.server, "version")
    if version is None:
        return None
    told = {
        "CONFIGURE": fact_at(experiment.server, "capabilities.build_flags"),
        "CFLAGS": fact_at(experiment.server, "capabilities.compiler_flags"),
    }
    lines = [f"{name} = {_one_line(value)}" for name, value in told.items()]
    version_text = _one_line(fact_at(experiment.server, "build"))
    try:
        return parse_build(
            "", "\n".join([f"VERSION = PostgreSQL {_one_line(version)}", *lines]), version_text=version_text
        )
    except ServerError:  # no version that could be one
        return None


def _one_line(value: object) -> str:
    text = " ".join(str(value).split())
    return "" if value is None or text == _NOT_RECORDED else text
