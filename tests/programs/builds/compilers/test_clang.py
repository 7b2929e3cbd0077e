"""Clang as a compiler of PostgreSQL: what it needs beside it."""

from __future__ import annotations

from pgdyno.builds.compilers.clang import Clang
from pgdyno.model.plans.recipe import parse_recipe


def test_clang_needs_its_linker_and_what_merges_counts() -> None:
    assert dict(Clang("-19").needs(parse_recipe("o2"))) == {"ld.lld-19": "lld-19"}
    assert dict(Clang("-19").needs(parse_recipe("pgo+lto"))) == {
        "ld.lld-19": "lld-19",
        "llvm-ar-19": "llvm-19",
        "llvm-ranlib-19": "llvm-19",
        "llvm-nm-19": "llvm-19",
        "llvm-profdata-19": "llvm-19",
    }
