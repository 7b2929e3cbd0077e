"""The command that measures an experiment again. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from itertools import product

from pgdyno.host.cpu_idling import AS_BOOTED_GIVEN
from pgdyno.measure.verdicts.peer_effects import added_to_peers
from pgdyno.measure.view.wording import step_names
from pgdyno.model.experiments.experiment import CELL_OPTION, Design, DesignKind, Experiment, Phase
from pgdyno.model.experiments.study import SERVER_FACTOR
from pgdyno.model.experiments.workload import DRIVER, USER_SCRIPTS, ResetPolicy
from pgdyno.model.variants.variant import Variant, setting_key

_STEPS_OF_ALL = 10  # the Insert Benchmark's
_BENCHMARK = "benchmark"  # option naming the study whose steps were measured with another study's variants
_REPEATABLE = "workload"  # option repeated per value; a study's own options take comma-separated values


def repeat_command(experiment: Experiment) -> str | None:
    """Return the command that measures the same again; None if no command line can.

    Cells of a grid are a study's own workloads, unknown to other commands. Parts have separate reports.
    Non-durable variants can only be measured from experiment files or by a study's preset. The files of user
    scripts are not part of an experiment.
    """
    command = _command(experiment)
    if command is None:
        return None
    is_as_booted = experiment.awake is not None and experiment.awake.reason == AS_BOOTED_GIVEN
    allowed = [word for path in experiment.allowed_files for word in ("--allow-file", path)]
    return " ".join([command, *map(shlex.quote, allowed), *(["--as-booted"] if is_as_booted else [])])


def _command(experiment: Experiment) -> str | None:
    if experiment.parts:
        return None
    if experiment.operations:
        return _repeat_steps(experiment)
    if experiment.cells:
        return _repeat_grid(experiment)
    if not experiment.variants or not all(variant.is_durable for variant in experiment.variants):
        return None
    if USER_SCRIPTS in experiment.workloads:
        return None
    words = [*_question(experiment), *_installation(experiment), *_scale(experiment), *_generator(experiment)]
    return shlex.join([*words, *_design_options(experiment)])


def is_attached_as_found(experiment: Experiment) -> bool:
    """Whether a study's grid was measured on an attached server as found, without restarts.

    Servers that pgdyno starts have a recorded installation.
    """
    is_named = experiment.installation is not None or all(variant.server for variant in experiment.variants)
    return bool(experiment.cells) and not is_named


def _repeat_grid(experiment: Experiment) -> str | None:
    """Return the command of a grid study, with its budget or its number of blocks.

    The connection string of a running server is not recorded, so a placeholder stands in. None if the
    factors' values cannot be derived from the variants.
    """
    factors = _factors(experiment) if experiment.factors else {}
    if factors is None:
        return None
    design = experiment.design
    is_ours = not is_attached_as_found(experiment)
    place = _installation(experiment) if is_ours else ["--dsn", "DSN", "--allow-load"]
    words = ["pgdyno", "run", experiment.name, *place, *_factor_options(factors)]
    for name, value in experiment.options.items():
        for each in value.split(",") if name == _REPEATABLE else (value,):
            words += [f"--{name}", each] if each else [f"--{name}"]
    if "budget" not in experiment.options:
        words += ["--blocks", str(design.rounds * design.blocks_per_round)]
    if design.kind is DesignKind.DUET:  # otherwise the study sets its own lengths
        words += ["--block", f"{design.block_s:g}s"]
        usual = Design()
        is_usual = (design.slice_s, design.writing_slice_s) == (usual.slice_s, usual.writing_slice_s)
        if design.for_writing().slice_s == design.slice_s and not is_usual:  # one length for all workloads
            words += ["--slice", f"{design.slice_s * 1000:g}ms"]
    words += _phase(experiment)
    words += ["--seed", str(design.seed)]
    if is_ours:
        words += ["--isolate" if design.is_isolated else "--no-isolate"]
    return shlex.join(words)


def _repeat_steps(experiment: Experiment) -> str | None:
    """Return the command of a study of steps; None if its options or variants are unknown."""
    if _BENCHMARK in experiment.options:
        varied = [word for one in added_to_peers(experiment) for word in ("--variant", str(one))]
    elif (factors := _factors(experiment)) is not None and experiment.options:
        varied = _factor_options(factors)
    else:
        return None
    design, names = experiment.design, step_names(experiment).values()
    words = ["pgdyno", "run", experiment.name, *_installation(experiment), *varied]
    for name, value in experiment.options.items():
        words += [f"--{name}", value] if value else [f"--{name}"]
    for name in names if len(names) < _STEPS_OF_ALL else ():
        words += ["--step", name]
    words += ["--blocks", str(design.rounds), "--seed", str(design.seed), "--clients", str(design.clients)]
    return shlex.join(words if design.is_isolated else [*words, "--no-isolate"])


def _factor_options(factors: Mapping[str, Sequence[str]]) -> list[str]:
    return [word for name, values in factors.items() for word in ("--factor", f"{name}={','.join(values)}")]


def _factors(experiment: Experiment) -> dict[str, list[str]] | None:
    """Return the values of every factor; None if the variants are not their combinations.

    A server that is too old for a setting has one variant for all its values.
    """
    names = experiment.factors
    levels = [_levels(variant, names) for variant in experiment.variants]
    factors = {name: list(dict.fromkeys(level[name] for level in levels if name in level)) for name in names}
    known = [tuple(level.values()) for level in levels if len(level) == len(names)]
    others = [level for level in levels if len(level) < len(names)]
    combined = product(*factors.values())
    left_out = {level.get(SERVER_FACTOR) for level in others}
    wanted = [
        one for one in combined if dict(zip(names, one, strict=True)).get(SERVER_FACTOR) not in left_out
    ]
    return factors if known == wanted else None


def _levels(variant: Variant, names: Sequence[str]) -> dict[str, str]:
    """Return a variant's values of these factors."""
    has = {**({SERVER_FACTOR: variant.server} if variant.server else {}), **variant.settings}
    return {name: has[setting_key(name)] for name in names if setting_key(name) in has}


def _question(experiment: Experiment) -> list[str]:
    if len(experiment.variants) == 1:
        return ["pgdyno", "bench", *experiment.workloads, "--variant", str(experiment.variants[0])]
    variants = sorted(experiment.variants, key=lambda variant: variant.name != experiment.baseline)
    workloads = (word for workload in experiment.workloads for word in ("--workload", workload))
    return ["pgdyno", "compare", *map(str, variants), *workloads]


def _installation(experiment: Experiment) -> list[str]:
    if experiment.installation is None or all(variant.server for variant in experiment.variants):
        return []
    return ["--embedded"] if experiment.installation == "embedded" else ["--pg-bin", experiment.installation]


def _scale(experiment: Experiment) -> list[str]:
    """Return --scale if all workloads have the same; different scales are the workloads' defaults."""
    scales = set(experiment.scales.values())
    return ["--scale", str(scales.pop())] if len(scales) == 1 else []


def _generator(experiment: Experiment) -> list[str]:
    """Return --generator, unless it is the default; it applies to all workloads."""
    others = set(experiment.generators.values()) - {DRIVER}
    return ["--generator", others.pop()] if len(others) == 1 else []


def _design_options(experiment: Experiment) -> list[str]:
    """Return the design options that differ from the defaults, and always blocks and seed."""
    design, usual = experiment.design, Design()
    if ResetPolicy.RESTORE in experiment.reset_policies.values():
        usual = usual.with_writing()
    words = ["--blocks", str(design.rounds * design.blocks_per_round), "--seed", str(design.seed)]
    if design.clients != usual.clients or experiment.likenesses:  # captured ones have another default
        words += ["--clients", str(design.clients)]
    if any(one.is_another_workload for one in experiment.likenesses.values()):
        words += ["--unlike"]
    if design.block_s != usual.block_s:
        words += ["--block", f"{design.block_s:g}s"]
    if design.kind is DesignKind.ALTERNATING:
        words += ["--design", str(design.kind)]
    elif (design.slice_s, design.writing_slice_s) != (usual.slice_s, usual.writing_slice_s):
        words += ["--slice", f"{design.slice_s * 1000:g}ms"]
    words += _phase(experiment)
    if CELL_OPTION in experiment.options:
        words += [f"--{CELL_OPTION}", experiment.options[CELL_OPTION]]
    return words if design.is_isolated else [*words, "--no-isolate"]


def _phase(experiment: Experiment) -> list[str]:
    return ["--phase", "cycle"] if experiment.design.phase is Phase.CYCLE else []
