"""What a Debian package of a build says of itself, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.fix_builds import LICENCE, MANIFEST

from pgdyno.base.errors import InstallationError
from pgdyno.builds.product.debian_package import (
    changelog,
    control_fields,
    control_text,
    copyright_text,
    describe,
    maintainer,
    package_name,
    package_version,
)
from pgdyno.builds.product.manifest import AppliedPatch, Manifest, Optimised, Patched

FULL = replace(
    MANIFEST, installed_at="2026-11-22T08:24:10+02:00", package="postgresql-18", package_version="18.6-3",
    suite="forky", extensions=("amcheck", "pgcrypto"),
)  # fmt: skip


def optimised(**changes: Any) -> Manifest:
    assert isinstance(FULL.optimised, Optimised)
    return replace(FULL, optimised=replace(FULL.optimised, **changes))


def test_the_control_file_says_what_debian_asks_for_and_what_the_manifest_knows() -> None:
    fields = control_fields(
        FULL, by="Ada <ada@example.org>", architecture="amd64", depends="libc6 (>= 2.36)", installed_kib=61440
    )
    assert control_text(fields) == (
        "Package: pgdyno-postgresql-18-00000000000a\n"
        "Version: 18.6+pgdyno20261122062410\n"
        "Architecture: amd64\n"
        "Maintainer: Ada <ada@example.org>\n"
        "Installed-Size: 61440\n"
        "Depends: libc6 (>= 2.36)\n"
        "Section: database\n"
        "Priority: optional\n"
        "Homepage: https://www.postgresql.org/\n"
        "Description: PostgreSQL 18.6 built by pgdyno (lto+pgo)\n"
        " The server with its client programs and the extensions amcheck, pgcrypto,\n"
        " built by pgdyno build from forky 18.6-3. All files are in\n"
        " /usr/lib/pgdyno/built-00000000000a, separate from any other PostgreSQL: no\n"
        " cluster is created or started, and no files of the distribution's PostgreSQL\n"
        " are replaced.\n"
        " .\n"
        " It runs ONLY ON CPUs LIKE the one it was built on: without any one of its\n"
        ' instructions, its programs sooner or later crash with "Illegal instruction".\n'
        " .\n"
        " Recipe: lto+pgo, trained on sysbench-read-only. Compiler: clang 19.\n"
        " .\n"
        " It passed PostgreSQL's own tests (regress 231, isolation 122) and 40 crashes\n"
        " under load without losing a commit; 63332 results and all data are the same as\n"
        " a plain build's.\n"
    )


def test_what_only_an_emulator_has_run_says_so() -> None:
    assert FULL.verified is not None
    said = describe(replace(FULL, verified=replace(FULL.verified, is_emulated=True)))
    assert "Under an emulator, on a different machine, it passed PostgreSQL's own tests" in " ".join(
        said.split()
    )


def test_a_package_without_dependencies_has_no_such_field() -> None:
    assert control_text({"Package": "a", "Depends": "", "Priority": "optional"}) == (
        "Package: a\nPriority: optional\n"
    )


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (None, "It runs on every CPU of its architecture."),
        ("x86-64-v3", "It runs only on CPUs with all instructions of x86-64-v3: without one of them, "),
    ],
)
def test_the_cpu_is_named(target: str | None, said: str) -> None:
    assert said in " ".join(describe(optimised(target=target)).split())


def test_sets_of_instructions_are_named_where_they_are_known() -> None:
    described = " ".join(describe(optimised(instructions=("AVX2", "BMI2"))).split())
    assert "without any one of its instructions (AVX2, BMI2), its" in described


def test_what_is_not_hardened_says_so() -> None:
    assert "NOT hardened" not in describe(FULL)
    assert "It is NOT hardened: the program is at fixed addresses" in describe(
        optimised(recipe="o2+unhardened")
    )


def test_what_is_patched_says_so() -> None:
    assert "PATCHED" not in describe(FULL)
    patched = Patched((AppliedPatch("send-buffer", "ab"), AppliedPatch("no-failing-recv", "cd")), ())
    assert (
        "It is a PATCHED PostgreSQL: pgdyno applied these patches to its source: "
        "send-buffer, no-failing-recv. Extensions compiled for the release may be incompatible with it."
    ) in " ".join(describe(optimised(patched=patched)).split())


def test_what_is_plain_is_said_to_equal_nothing_else() -> None:
    assert FULL.verified is not None
    said = describe(replace(optimised(training=()), verified=replace(FULL.verified, reference="")))
    assert "Recipe: lto+pgo. Compiler: clang 19." in said
    assert said.endswith("under load without losing a commit.")


def test_releases_that_are_not_out_yet_have_names_too() -> None:
    assert package_name(replace(FULL, server_version="19devel")) == "pgdyno-postgresql-19-00000000000a"
    assert package_version(replace(FULL, server_version="19devel")) == "19devel+pgdyno20261122062410"


def test_the_changelog_has_the_time_of_the_build() -> None:
    assert changelog(FULL, "Ada <ada@example.org>") == (
        "pgdyno-postgresql-18-00000000000a (18.6+pgdyno20261122062410) UNRELEASED; urgency=medium\n\n"
        "  * PostgreSQL 18.6, built by pgdyno build. See manifest.json in\n"
        "    /usr/lib/pgdyno/built-00000000000a.\n\n"
        " -- Ada <ada@example.org>  Sun, 22 Nov 2026 06:24:10 +0000\n"
    )


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "Ada Lovelace <ada@engine>"),
        ({"EMAIL": "al@example.org"}, "Ada Lovelace <al@example.org>"),
        (
            {"DEBFULLNAME": "Ada King", "DEBEMAIL": "king@example.org", "EMAIL": "al@example.org"},
            "Ada King <king@example.org>",
        ),
        ({"DEBFULLNAME": "Ada\nEssential: yes", "DEBEMAIL": "a>"}, "Ada Essential: yes <a>"),
    ],
)
def test_the_maintainer_is_whom_debians_tools_would_name(environment: dict[str, str], expected: str) -> None:
    assert maintainer(environment, "Ada Lovelace", "ada", "engine") == expected


def test_without_a_full_name_the_maintainer_is_the_user() -> None:
    assert maintainer({}, "", "ada", "engine") == "ada <ada@engine>"


def test_the_licence_is_the_one_in_the_program() -> None:
    said = copyright_text(b"\0before\0" + LICENCE.encode() + b"\0after")
    assert said.startswith(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        "Upstream-Name: PostgreSQL\n"
        "Source: https://www.postgresql.org/ftp/source/\n\n"
        "Files: *\n"
        "Copyright: Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group\n"
        "           Portions Copyright (c) 1994, The Regents of the University of California\n"
        "License: PostgreSQL\n\n"
        "Files: src/backend/regex/*\n"
    )
    assert said.endswith(
        "\nLicense: PostgreSQL\n Permission to use is hereby granted.\n .\n THERE IS NO WARRANTY.\n"
    )


def test_every_licence_that_is_named_is_there() -> None:
    paragraphs = [dict(_fields(one)) for one in copyright_text(LICENCE.encode()).split("\n\n")]
    named = {word for one in paragraphs if "Files" in one for word in one["License"].split() if word != "and"}
    texts = {one["License"] for one in paragraphs[1:] if "Files" not in one}
    assert named - texts == {"public-domain"}  # whose few words stand beside the files
    assert texts <= named


def _fields(paragraph: str) -> list[tuple[str, str]]:
    lines = [line.partition(": ") for line in paragraph.splitlines() if not line.startswith(" ")]
    return [(name, value) for name, _, value in lines]


def test_without_a_licence_nothing_is_packaged() -> None:
    with pytest.raises(InstallationError) as caught:
        copyright_text(b"\x7fELF psql")
    assert str(caught.value) == (
        "the licence of the build was not found\n"
        'DETAIL:  PostgreSQL\'s "psql" prints it for \\copyright; this psql does not contain that text\n'
        "HINT:  PostgreSQL's licence must be in all copies, so the build is not packaged without it"
    )
