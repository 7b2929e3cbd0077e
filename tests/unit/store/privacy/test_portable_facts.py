"""What must not leave the machine: secrets are planted wherever an experiment can carry them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fix_settings import MAJORS, settings_of
from tests.golden.synthetic import HOST, SERVER, experiment
from tests.golden.synthetic_steps import experiment as of_ten_steps

from pgdyno.measure.decisions.notes import with_load_hosts
from pgdyno.model.cells.cell import CellHost, HostRole
from pgdyno.model.experiments.experiment import Experiment, LoadHosts, SettingDifference
from pgdyno.model.experiments.likeness import Likeness, StatementLikeness
from pgdyno.model.experiments.step_record import Stall, StallCause
from pgdyno.model.plans.plan import Effect
from pgdyno.model.variants.variant import Variant
from pgdyno.remote.cells.reach import ReachedLoadHost
from pgdyno.store.documents import dump_experiment, load_experiment
from pgdyno.store.privacy import portable_facts, redaction
from pgdyno.store.privacy.portable_facts import PRIVATE_TEXTS, PUBLIC_TEXTS

PASSWORD = "hunter2-Zebra"  # noqa: S105 — planted
CONNINFO = (
    f"host=zeus7.corp.example port=5432 user=replicator password={PASSWORD} sslkey=/home/alice/client.key"
)
ARCHIVE = "AWS_SECRET=Kx9Planted wal-g wal-push %p"
SECRETS = (PASSWORD, "Kx9Planted", "pepper-Planted")
PRIVATE = (
    *("alice", "zeus7", "corp.example", "replicator", "10.20.30.40", "wal-g", "client.key"),
    *("/srv/tenant-blue", "tenant_blue", "erp_production", "standby-zurich", "Blue Corp"),
    # the connected role, a hidden database, a mount, a logical volume, a unit, an interface, an installation
    *("acme_tuner", "acme_erp", "/mnt/acme-data", "acme--vg-pgdata", "acme-prod.service", "wg-acme"),
    *("/opt/acme/pg18", "acme_schema", "acme_app", "acme_orders", "fd00:aced::17", "acme_secret_fact"),
    "tenant_acme.id",  # even a setting's name can be telling
)


UNIT = "/sys/fs/cgroup/system.slice/acme-prod.service"


def guc(name: str, setting: str, **more: object) -> dict[str, object]:
    return {"name": name, "setting": setting, "unit": None, "source": "configuration file", **more}


def portable(base: Experiment) -> Experiment:
    return load_experiment(portable_facts.portable(dump_experiment(base)))


def without_secrets(base: Experiment) -> Experiment:
    return load_experiment(redaction.without_secrets(dump_experiment(base)))


def test_the_load_host_of_a_cell_has_no_name_elsewhere() -> None:
    host = CellHost("acme-client", HostRole.LOAD, "acme-client")
    reached = ReachedLoadHost(host, None, "10.20.30.40", "10.20.30.41", (0, 1), 0.0001, 0.0002, "boot", "o")
    note = reached.note(2)
    found = replace(experiment(), notes=(note,), options={"cell": "acme-lab.toml"})
    found = with_load_hosts(found, ["acme-client", "acme-other"], 0)
    there = portable(with_load_hosts(found, ["acme-other"], 3))
    assert there.options == {"cell": "hosts.toml"}
    assert there.load_hosts == (
        LoadHosts(0, ("load-host-1", "load-host-2")),
        LoadHosts(3, ("load-host-2",)),
    )
    assert "acme" not in json.dumps(dump_experiment(there))
    assert "over the network, round trip 100\N{NO-BREAK SPACE}µs" in there.notes[0]


def planted() -> Experiment:
    """Return an experiment that carries secrets and private names in every kind of place."""
    base = experiment()
    assert base.plan is not None
    assert base.plan.memory_proof is not None
    settings_: dict[str, object] = {
        one["name"]: one  # type: ignore[misc]
        for one in (
            guc("primary_conninfo", CONNINFO, boot_val="", reset_val=CONNINFO),
            guc("archive_command", ARCHIVE),
            guc("restore_command", f"curl -u alice:{PASSWORD} https://zeus7.corp.example/%f"),
            guc("ssl_key_file", "/home/alice/server.key", sourcefile="/home/alice/pg/postgresql.conf"),
            guc("data_directory", "/srv/tenant-blue/pg18"),
            guc("cluster_name", "Blue Corp"),
            guc("listen_addresses", "10.20.30.40"),
            guc("synchronous_standby_names", "standby-zurich"),
            guc("app.jwt_secret", "pepper-Planted"),
            guc("search_path", "acme_schema, public", vartype="string"),
            guc("shared_preload_libraries", "pg_stat_statements", vartype="string"),
            guc("tenant_acme.id", "7"),
            guc("io_method", "worker", vartype="enum"),
            guc("work_mem", "4096", sourcefile="/home/alice/pg/postgresql.auto.conf", sourceline=3),
        )
    }
    line = base.plan.lines[0]
    change = replace(line.change, key="archive_command", current=ARCHIVE, value=ARCHIVE, effect=Effect.RELOAD)
    return replace(
        base,
        question="Is zeus7.corp.example faster?",
        variants=(
            Variant("default", server="/opt/acme/pg18"),
            Variant("plan", {"archive_command": ARCHIVE, "work_mem": "16MB"}),
        ),
        installation="/opt/acme/pg18",
        blocks=(
            replace(
                base.blocks[0],
                void=f'server crashed: could not connect: "{CONNINFO}" at 10.20.30.40, see /home/alice/log; '
                'role "acme_app" may not read table "acme_orders", said the server at fd00:aced::17',
            ),
            *base.blocks[1:],
        ),
        settings=(SettingDifference("plan", "archive_command", ARCHIVE, ARCHIVE),),
        plan=replace(
            base.plan,
            lines=(replace(line, change=change, reason="read from /home/alice/pg"),),
            memory_proof=replace(base.plan.memory_proof, limit_source=f"{UNIT}/memory.max"),
        ),
        host={
            **HOST,
            "hostname": {"value": "zeus7.corp.example", "source": "/proc/sys/kernel/hostname"},
            "mounts": {
                "value": [
                    {"target": "/home/alice/data", "device": "zeus7:/export", "filesystem": "nfs"},
                    {"target": "/", "device": "/dev/vda1", "filesystem": "ext4"},
                    {
                        "target": "/mnt/acme-data",
                        "device": "/dev/mapper/acme--vg-pgdata",
                        "filesystem": "xfs",
                        "options": ["rw", "noatime", "logbufs=8", "clientaddr=10.20.30.40"],
                        "available_bytes": {"value": 1 << 30, "source": "statvfs /mnt/acme-data"},
                    },
                ],
                "source": "/proc/self/mountinfo",
            },
            "limits": {
                "memory_bytes": {"value": 1 << 30, "source": f"{UNIT}/memory.max"},
                "cpu_count": {"unknown": f"permission denied: {UNIT}/cpu.max", "source": f"{UNIT}/cpu.max"},
            },
            "nics": {
                "value": [
                    {
                        "name": "wg-acme",
                        "rx_queues": {"value": 2, "source": "/sys/class/net/wg-acme/queues"},
                    }
                ],
                "source": "/sys/class/net",
            },
            "asset_tag": {"value": "acme_secret_fact", "source": "a fact that was added tomorrow"},
        },
        server={
            **SERVER,
            "settings": settings_,
            "data_directory": {"value": "/srv/tenant-blue/pg18", "source": "SHOW data_directory"},
            "databases_bytes": {
                "unknown": "the role may not see the size of acme_erp",
                "source": "sum of pg_database_size()",
            },
            "hidden": ["the state of standbys (GRANT pg_monitor TO acme_tuner shows them)"],
            "is_colocated": {
                "unknown": "postmaster 7 has the data directory /mnt/acme-data",
                "source": "/proc",
            },
            "overrides": {
                "value": [
                    {
                        "role": "tenant_blue",
                        "database": "erp_production",
                        "name": "app.password",
                        "value": PASSWORD,
                    }
                ],
                "source": "pg_db_role_setting",
            },
            "program": {
                "allocator": {"value": "jemalloc", "source": "/proc/7/maps"},
                "malloc_variables": {
                    "value": {"LD_PRELOAD": "/home/alice/lib/libjemalloc.so.2", "MALLOC_ARENA_MAX": "2"},
                    "source": "/proc/7/environ",
                },
            },
            "standbys": {
                "value": [{"application_name": "standby-zurich", "state": "streaming", "sync_state": "sync"}],
                "source": "pg_stat_replication",
            },
            "managers": [
                {
                    "name": "Patroni",
                    "evidence": "/home/alice/patroni.yml on zeus7, role tenant_blue",
                    "how_to_change": f"patronictl -d postgresql://alice:{PASSWORD}@10.20.30.40/x edit-config",
                }
            ],
        },
        notes=(
            f"connected with postgres://alice:{PASSWORD}@10.20.30.40:5432/erp_production?sslmode=require",
        ),
    )


def text_of(one: Experiment) -> str:
    return json.dumps(dump_experiment(one), ensure_ascii=False)


@pytest.mark.parametrize("secret", [*SECRETS, *PRIVATE])
def test_planted_texts_are_really_there_before(secret: str) -> None:
    assert secret in text_of(planted())


@pytest.mark.parametrize("secret", SECRETS)
def test_report_holds_no_secret(secret: str) -> None:
    assert secret not in text_of(without_secrets(planted()))


@pytest.mark.parametrize("secret", [*SECRETS, *PRIVATE])
def test_bundle_holds_neither_secrets_nor_private_names(secret: str) -> None:
    assert secret not in text_of(portable(planted()))


def test_report_of_ones_own_keeps_what_is_no_secret() -> None:
    kept = without_secrets(planted())
    assert kept.question == "Is zeus7.corp.example faster?"
    assert kept.server["data_directory"]["value"] == "/srv/tenant-blue/pg18"


def test_what_was_left_out_is_said_and_not_just_missing() -> None:
    kept = portable(planted())
    assert kept.host["hostname"] == {"unknown": "left out of the bundle", "source": "left out of the bundle"}
    assert kept.server["settings"]["cluster_name"]["setting"] == "********"
    assert kept.server["databases_bytes"]["unknown"] == "left out of the bundle"
    assert kept.variants[1].settings == {"archive_command": "********", "work_mem": "16MB"}
    assert [variant.server for variant in kept.variants] == ["server-1", None]


def test_statements_of_a_captured_workload_are_numbered() -> None:
    shares = {"calls": 0.5}
    alike = tuple(StatementLikeness(f"select-acme_orders-{n}", shares, shares, 1.0, None) for n in (1, 2))
    note = "select-acme_orders-2 of shop: answered otherwise by plan than by default"
    told = replace(experiment(), likenesses={"shop": Likeness({"calls": 0.75}, alike)}, notes=(note,))
    carried = portable(told)
    assert carried.notes == ("******** of shop: answered otherwise by plan than by default",)
    assert carried.likenesses == {
        "shop": Likeness(
            {"calls": 0.75},
            tuple(replace(one, name=f"statement-{n}") for n, one in enumerate(alike, 1)),
        )
    }


def test_what_others_need_for_judging_stays() -> None:
    before, after = planted(), portable(planted())
    assert after.blocks[1:] == before.blocks[1:]
    assert after.verdicts == before.verdicts
    assert after.design == before.design
    work_mem: dict[str, Any] = after.server["settings"]["work_mem"]
    assert (work_mem["setting"], work_mem["sourcefile"]) == ("4096", "postgresql.auto.conf")
    assert after.host["cpu"] == before.host["cpu"]
    assert after.host["mounts"]["value"][1] == {"target": "/", "device": "/dev/vda1", "filesystem": "ext4"}
    hidden = "********"
    assert after.host["mounts"]["value"][2] == {
        "target": hidden,
        "device": hidden,
        "filesystem": "xfs",
        "options": ["rw", "noatime", "logbufs=8", f"clientaddr={hidden}"],
        "available_bytes": {"value": 1 << 30, "source": "statvfs (path)"},
    }
    limits = after.host["limits"]
    assert limits["memory_bytes"] == {"value": 1 << 30, "source": "/sys/fs/cgroup/…/memory.max"}
    assert limits["cpu_count"]["unknown"] == "permission denied: /sys/fs/cgroup/…/cpu.max"
    settings_ = after.server["settings"]
    assert settings_["shared_preload_libraries"]["setting"] == "pg_stat_statements"
    assert settings_["io_method"]["setting"] == "worker"
    assert after.server["managers"] == [{"name": "Patroni"}]
    program = after.server["program"]
    assert program["allocator"]["value"] == "jemalloc"
    assert program["malloc_variables"]["value"] == {"LD_PRELOAD": "(path)", "MALLOC_ARENA_MAX": "2"}


@pytest.mark.parametrize("major", MAJORS)
def test_of_every_text_setting_of_postgresql_it_is_decided_whether_it_may_leave(major: int) -> None:
    texts = {guc.name.lower() for guc in settings_of(major).values() if guc.vartype == "string"}
    decided = {name.lower() for name in PUBLIC_TEXTS ^ PRIVATE_TEXTS}
    assert texts <= decided


def test_a_setting_of_a_variant_is_judged_by_its_name_where_its_type_is_not_known() -> None:
    settings_ = {"io_method": "io_uring", "search_path": "acme", "app.mode": "acme", "jit": "off"}
    variants = (Variant("default"), Variant("plan", settings_))
    kept = portable(replace(experiment(), variants=variants, server={})).variants[1].settings
    hidden = "********"
    assert kept == {"io_method": "io_uring", "search_path": hidden, "app.mode": hidden, "jit": "off"}


def test_names_of_facts_are_found_in_notes_too() -> None:
    host = {"hostname": {"value": "zeus.acme.example", "source": "x"}}
    base = replace(experiment(), host=host, notes=("zeus was idle, see https://www.postgresql.org/docs/",))
    assert portable(base).notes == ("******** was idle, see https://www.postgresql.org/docs/",)


def test_a_value_that_every_server_has_is_not_taken_for_a_name() -> None:
    settings_ = {
        name: guc(name, setting, boot_val="PostgreSQL", vartype="string")
        for name, setting in (("event_source", "PostgreSQL"), ("log_filename", "acme-log-%d"))
    }
    base = replace(experiment(), question="Does acme-log-%d slow PostgreSQL?", server={"settings": settings_})
    assert portable(base).question == "Does ******** slow PostgreSQL?"


@pytest.mark.parametrize(
    "text",
    [
        "tps/s over 8 kB / 2 GB at 09:30:12, and 25 % of 24 GB/s",
        "the limit was read from /sys/fs/cgroup/…/memory.max and /proc/meminfo",
        "PostgreSQL 18.0 on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14) 12.2.0, 64-bit",
        "a::b and 1:2:3 are no addresses",
    ],
)
def test_ordinary_texts_stay_as_they_are(text: str) -> None:
    assert portable(replace(experiment(), notes=(text,))).notes == (text,)


def test_kernel_release_is_not_taken_for_an_address() -> None:
    base = experiment()
    release = {"value": "5.15.167.4-microsoft-standard-WSL2", "source": "/proc/sys/kernel/osrelease"}
    kept = portable(replace(base, host={"kernel": {"release": release}}))
    assert kept.host["kernel"]["release"] == release


@pytest.mark.parametrize("name", ["plan", "duet", "better", "throughput_tps", "sysbench-read-only", "keep"])
def test_host_named_like_a_part_of_the_experiment_does_not_break_it(name: str) -> None:
    base = replace(experiment(), host={"hostname": {"value": name, "source": "x"}})
    after = portable(base)
    assert (after.design, after.verdicts, after.workloads) == (base.design, base.verdicts, base.workloads)


def test_host_with_a_short_common_name_does_not_eat_words() -> None:
    host = {"hostname": {"value": "db", "source": "x"}}
    base = replace(experiment(), host=host, notes=("the db in dbs was warm",))
    assert portable(base).notes == base.notes


def test_experiment_without_secrets_stays_as_it_is() -> None:
    assert without_secrets(experiment()) == experiment()


def test_redacting_twice_is_redacting_once() -> None:
    once = portable(planted())
    assert portable(once) == once


secret_values = st.text(alphabet=st.characters(categories=("L", "N")), min_size=12, max_size=30)


@settings(max_examples=60)
@given(secret_values, st.sampled_from(["password={}", "postgresql://u:{}@h/d", "PASSWORD = '{}'"]))
def test_password_in_any_known_form_is_found_in_any_text(secret: str, form: str) -> None:
    text = f"could not connect: {form.format(secret)}"
    base = replace(experiment(), notes=(text,), server={"build": text})
    for after in (without_secrets(base), portable(base)):
        assert secret not in after.notes[0]
        assert secret not in after.server["build"]


def with_a_stall(why: str) -> Experiment:
    """Return steps of which one stalled, with this as the evidence."""
    base = of_ten_steps()
    arm = base.blocks[2].arms[0]
    assert arm.step is not None
    step = replace(arm.step, stalls=(Stall(1.0, 2.0, StallCause.IO, why),))
    block = replace(base.blocks[2], arms=(replace(arm, step=step), *base.blocks[2].arms[1:]))
    return replace(base, blocks=(*base.blocks[:2], block, *base.blocks[3:]))


def test_evidence_of_a_stall_loses_what_is_private_and_nothing_else() -> None:
    why = f'relation "acme_orders" was read from /srv/tenant-blue; password={PASSWORD}; IO:DataFileRead 12'
    for redacting in (portable, without_secrets):
        assert PASSWORD not in text_of(redacting(with_a_stall(why)))
    shown = text_of(portable(with_a_stall(why)))
    assert "acme_orders" not in shown
    assert "tenant-blue" not in shown
    assert "IO:DataFileRead 12" in shown


@pytest.mark.parametrize("name", ["insert", "queries", "checkpoint", "autovacuum", "unknown", "driver"])
def test_host_named_like_a_part_of_a_step_does_not_break_it(name: str) -> None:
    base = of_ten_steps()
    hosted = replace(base, host={**base.host, "hostname": {"value": name, "source": "uname"}})
    assert portable(hosted).blocks == portable(base).blocks
    assert portable(hosted).operations == base.operations
