"""Sets of instructions by compilers' names against features by the kernel's, written by hand."""

from __future__ import annotations

from pgdyno.builds.spec.instructions import lacking

HASWELL = (
    "sse", "sse2", "pni", "ssse3", "fma", "sse4_1", "sse4_2", "movbe", "popcnt", "avx", "f16c", "abm", "bmi1",
    "avx2", "bmi2",
)  # fmt: skip
SETS = {"SSE2", "SSE3", "SSSE3", "SSE4_2", "AVX2", "BMI", "BMI2", "LZCNT", "FMA", "F16C", "MOVBE", "POPCNT"}


def test_a_cpu_that_knows_them_all_lacks_nothing() -> None:
    assert lacking(SETS, HASWELL) == ()


def test_what_a_cpu_lacks_is_named() -> None:
    assert lacking({*SETS, "AVX512F", "AVX512BF16", "ADX"}, HASWELL) == ("ADX", "AVX512BF16", "AVX512F")
    assert lacking({"AVX512BF16"}, ["avx512_bf16"]) == ()


def test_what_no_kernel_shows_is_not_missed() -> None:
    assert lacking({"AVX2", "AVXIFMA", "AVXVNNIINT8"}, HASWELL) == ()


def test_nothing_is_said_of_arm() -> None:
    assert lacking({"ARM_FEATURE_CRC32", "ARM_FEATURE_ATOMICS"}, ["fp", "asimd"]) == ()
