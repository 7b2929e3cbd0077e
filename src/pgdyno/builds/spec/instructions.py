"""Instruction sets of compiled code: the required features of a CPU."""

from __future__ import annotations

import re
from collections.abc import Collection

from pgdyno.host.processes.running import capture
from pgdyno.model.plans.recipe import target_flag

_PROBE_LIMIT_S = 20.0
_MACRO = re.compile(
    r"^#define "
    r"(__(?:S?SSE|AVX(?!512VP2)|FMA|BMI|LZCNT|POPCNT|MOVBE|ADX|F16C|ARM_FEATURE_)\w*) 1$",
    re.MULTILINE,
)
"""Those of virtualisation, enclaves and the like are never used unasked, and hosts often hide them; so is
AVX512_VP2INTERSECT, which compilers ascribe to CPUs without it."""
_X86 = ("SSE", "SSSE", "AVX", "FMA", "BMI", "LZCNT", "POPCNT", "MOVBE", "ADX", "F16C")
_OTHER_NAMES = {"SSE3": "pni", "BMI": "bmi1", "LZCNT": "abm"}  # arch/x86/include/asm/cpufeatures.h
_NEVER_SHOWN = frozenset({"AVXIFMA", "AVXNECONVERT", "AVXVNNIINT8", "AVXVNNIINT16"})  # by any kernel
_NO_SETS = ("_MATH",)  # with which registers to calculate, not what the CPU knows


def instructions(compiler: str, target: str, machine: str) -> set[str]:
    """Return the sets of instructions that compilers use by themselves in code for a CPU: AVX2, BMI."""
    argv = [*compiler.split(), target_flag(target, machine), "-dM", "-E", "-x", "c", "/dev/null"]
    macros = capture(argv, limit_s=_PROBE_LIMIT_S).stdout
    return {name.strip("_") for name in _MACRO.findall(macros) if not name.strip("_").endswith(_NO_SETS)}


def lacking(sets: Collection[str], features: Collection[str]) -> tuple[str, ...]:
    """Return those sets that a CPU lacks whose features /proc/cpuinfo lists. Pure.

    Arm's compilers and kernel have no names in common: nothing is said of them.
    """
    known = {feature.replace("_", "") for feature in features}
    of_x86 = (one for one in sorted(sets) if one.startswith(_X86) and one not in _NEVER_SHOWN)
    return tuple(one for one in of_x86 if _OTHER_NAMES.get(one, one.lower().replace("_", "")) not in known)
