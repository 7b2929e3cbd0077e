"""Instruction sets of compiled code: the CPU features that it requires."""

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
"""Excluded: sets for virtualisation, enclaves and the like, which compilers never use by themselves and hosts
often hide; and AVX512_VP2INTERSECT, which compilers wrongly attribute to some CPUs."""
_X86 = ("SSE", "SSSE", "AVX", "FMA", "BMI", "LZCNT", "POPCNT", "MOVBE", "ADX", "F16C")
_OTHER_NAMES = {"SSE3": "pni", "BMI": "bmi1", "LZCNT": "abm"}  # arch/x86/include/asm/cpufeatures.h
_NEVER_SHOWN = frozenset({"AVXIFMA", "AVXNECONVERT", "AVXVNNIINT8", "AVXVNNIINT16"})  # by any kernel
_NO_SETS = ("_MATH",)  # the registers used for arithmetic, not a CPU feature


def instructions(compiler: str, target: str, machine: str) -> set[str]:
    """Return the instruction sets that a compiler may use in code for a CPU: AVX2, BMI."""
    argv = [*compiler.split(), target_flag(target, machine), "-dM", "-E", "-x", "c", "/dev/null"]
    macros = capture(argv, limit_s=_PROBE_LIMIT_S).stdout
    return {name.strip("_") for name in _MACRO.findall(macros) if not name.strip("_").endswith(_NO_SETS)}


def lacking(sets: Collection[str], features: Collection[str]) -> tuple[str, ...]:
    """Return the sets missing from a CPU's ``features`` in /proc/cpuinfo. Pure.

    Always empty on Arm, where compiler and kernel use different names.
    """
    known = {feature.replace("_", "") for feature in features}
    of_x86 = (one for one in sorted(sets) if one.startswith(_X86) and one not in _NEVER_SHOWN)
    return tuple(one for one in of_x86 if _OTHER_NAMES.get(one, one.lower().replace("_", "")) not in known)
