"""Which builds a server is not switched to: what has failed, and what is not hardened unless it is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_builds import MANIFEST
from tests.fix_progress import Remembered

from pgdyno.apply.ledger.log import open_journal
from pgdyno.apply.runs.changes import Prepared, receipts_for
from pgdyno.base.errors import ConnectionFailedError, RefusedError
from pgdyno.base.ports import Found
from pgdyno.builds.product.manifest import AppliedPatch, Manifest, Optimised, Patched
from pgdyno.builds.servers import remove_server
from pgdyno.builds.switching.server_access import server_access
from pgdyno.builds.switching.switch import SwitchRequest, switch
from pgdyno.model.plans.journal import Target
from pgdyno.model.plans.plan import PROGRAM_LINK, Change, Effect
from pgdyno.postgres.process.workspace import Workspace

NOWHERE = "host=/nonexistent"
Install = Callable[[Manifest], Path]


def switch_to(name: str) -> None:
    switch(server_access(NOWHERE), SwitchRequest(name), Remembered())


def unhardened() -> Manifest:
    assert isinstance(MANIFEST.optimised, Optimised)
    return replace(MANIFEST, optimised=replace(MANIFEST.optimised, recipe="lto+pgo+unhardened"))


def test_a_build_that_has_failed_is_refused(install_build: Install) -> None:
    install_build(replace(MANIFEST, verified=None))
    for name in ("built", MANIFEST.name):
        with pytest.raises(RefusedError) as caught:
            switch_to(name)
        assert caught.value.message == f"{MANIFEST.name} is not verified"
        assert caught.value.hint == f"pgdyno build verify {MANIFEST.name} verifies it again"


def test_a_build_without_hardening_has_to_be_named(install_build: Install) -> None:
    install_build(unhardened())
    with pytest.raises(RefusedError) as caught:
        switch_to("built")
    assert caught.value.message == f"the newest build, {MANIFEST.name}, is not hardened"
    assert caught.value.detail == "its recipe is lto+pgo+unhardened"
    with pytest.raises(ConnectionFailedError):  # it came as far as to look for the server
        switch_to(MANIFEST.name)


def test_a_patched_build_takes_a_flag(install_build: Install) -> None:
    assert isinstance(MANIFEST.optimised, Optimised)
    patched = Patched((AppliedPatch("send-buffer", "ab"), AppliedPatch("no-failing-recv", "cd")), ())
    install_build(replace(MANIFEST, optimised=replace(MANIFEST.optimised, patched=patched)))
    for name in ("built", MANIFEST.name):
        with pytest.raises(RefusedError) as caught:
            switch_to(name)
        assert caught.value.message == f"{MANIFEST.name} is a patched PostgreSQL"
        assert caught.value.detail == "pgdyno's patches in its source: send-buffer, no-failing-recv"
    with pytest.raises(ConnectionFailedError):  # it came as far as to look for the server
        switch(server_access(NOWHERE), SwitchRequest(MANIFEST.name, accepts_patches=True), Remembered())


def test_a_build_that_a_server_was_switched_to_is_not_removed(
    install_build: Install, builds_place: Workspace
) -> None:
    prefix = install_build(MANIFEST)
    change = Change(
        "test", PROGRAM_LINK, "/opt/pg", "/usr/lib/postgresql/18/bin", str(prefix), Effect.RESTART
    )
    target = Target("server", "7", "/srv/pg", "m", "host=/run port=5432")
    with open_journal(builds_place.root / "journal") as journal:
        journal.add(*receipts_for("20261122T000000Z-abcdef", target, [Prepared(change, Found("/old", {}))]))
    with pytest.raises(RefusedError) as caught:
        remove_server(MANIFEST.name)
    assert caught.value.message == f'server "{MANIFEST.name}" is needed'
    assert caught.value.detail == (
        "host=/run port=5432 was switched to it, or from it (20261122T000000Z-abcdef)"
    )
    assert (prefix / "bin/postgres").is_file()
