"""What a server of an experiment is given, and what it is not, whatever study asks for it."""

from __future__ import annotations

import tomllib
from contextlib import nullcontext as does_not_raise
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.base.errors import VariantError
from pgdyno.model.experiments.study import cross
from pgdyno.model.variants.variant import Variant, parse_variant, require_measurable
from pgdyno.store.experiment_file import read_experiment_file

RESULTS = Path(__file__).parents[4] / "docs/results"

HIDES = "it would load other data or an unchecked configuration, possibly with fsync = off"
REACHED = "a scratch server uses trust authentication and must be reachable only by its private socket"
ENTERS = "it controls who may connect to the server"
FOLLOWS = "a scratch server never replicates from another server"
RUNS = "it names a program to run"
LOADS = "it names a library that the server loads"
NAMES = "it names a file or a directory"
ALLOCATOR = "only a known allocator may be preloaded, by its plain name: libjemalloc.so.2"
TUNABLES = "only tunables of glibc.malloc and glibc.pthread.rseq are valid: glibc.malloc.arena_max=2"
PROFILER = "options of jemalloc are name:value; those of its profiler, which writes files, are refused"
MEMORY = "only variables of memory allocators are valid: MALLOC_ARENA_MAX, GLIBC_TUNABLES, MALLOC_CONF, …"
NO_ALLOCATORS = (
    "LD_LIBRARY_PATH", "LD_AUDIT", "PGOPTIONS", "PGDATA", "PATH", "MALLOC_TRACE", "GCOV_PREFIX",
    "HEAPPROFILE",
)  # fmt: skip


def refused(settings: dict[str, str]) -> str:
    with pytest.raises(VariantError) as caught:
        require_measurable([Variant("evil", settings)])
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.parametrize(
    "key",
    [
        "/etc/cron.d/backup",
        "/proc/../etc/shadow",
        "/proc/sys/../../etc/shadow",
        "/proc/sysrq-trigger",
        "/proc/sys/vm//swappiness",
        "/proc/sys/vm/./swappiness",
        "/sys/kernel/mm/x\n",
        "vm..swappiness",
        "vm.",
        "fs/../../etc.passwd",
        "/dev/cpu/0/msr",
        "/dev/cpu_dma_latency",
        "env.",
        "env.A B",
        "env.A=B",
        "jit\n",
        "jit=on -c fsync",
        "",
        "1jit",
        "work_mem.",
    ],
)
def test_what_is_no_key_is_refused_and_reaches_nothing(key: str) -> None:
    variant = Variant("evil", {key: "1"})
    assert (variant.gucs, variant.files, variant.environment) == ({}, {}, {})
    assert refused({key: "1"}).startswith('variant "evil" has no valid key "')


def test_why_a_key_is_none_is_said() -> None:
    assert refused({"/etc/cron.d/backup": "* * * * * root id"}) == (
        'variant "evil" has no valid key "/etc/cron.d/backup"\n'
        "DETAIL:  a key is a setting of PostgreSQL, a sysctl, a file below /proc/sys, /proc/irq or /sys, "
        "a register /dev/cpu/N/msr:0x…, env.NAME, or process.scheduling_policy"
    )
    # ParseLongOption in src/backend/utils/misc/guc.c turns every "-" of a name into "_".
    assert refused({"Full-Page-Writes": "off"}) == (
        'variant "evil" has no valid key "full-page-writes"\n'
        'DETAIL:  PostgreSQL reads "-" as "_": write full_page_writes'
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("vm.swappiness", "/proc/sys/vm/swappiness"),
        ("VM.swappiness", "vm.swappiness"),
        ("ENV.MALLOC_ARENA_MAX", "env.MALLOC_ARENA_MAX"),
        ("/dev/cpu/00/msr:0x01a4", "/dev/cpu/0/msr:0x1a4"),
        ("Work_Mem", "work_mem"),
    ],
)
def test_two_spellings_are_one_key(one: str, other: str) -> None:
    found = Variant("a", {one: "1"})
    assert found == Variant("a", {other: "1"})
    assert replace(found, name="a") == found
    with pytest.raises(VariantError, match='variant "a" sets a setting twice'):
        Variant("a", {one: "1", other: "1"})


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("config_file", HIDES),
        ("data_directory", HIDES),
        ("include_dir", HIDES),
        ("listen_addresses", REACHED),
        ("port", REACHED),
        ("unix_socket_directories", REACHED),
        ("bonjour", REACHED),
        ("hba_file", ENTERS),
        ("ident_file", ENTERS),
        ("krb_server_keyfile", ENTERS),
        ("ssl_key_file", ENTERS),
        ("ssl_dh_params_file", ENTERS),
        ("ssl_crl_dir", ENTERS),
        ("oauth_validator_libraries", ENTERS),
        ("primary_conninfo", FOLLOWS),
        ("primary_slot_name", FOLLOWS),
        ("recovery_target_time", FOLLOWS),
        ("promote_trigger_file", FOLLOWS),
        ("archive_command", RUNS),
        ("restore_command", RUNS),
        ("archive_cleanup_command", RUNS),
        ("recovery_end_command", RUNS),
        ("ssl_passphrase_command", RUNS),
        ("basebackup_to_shell.command", RUNS),
        ("plperl.on_init", RUNS),
        ("archive_library", LOADS),
        ("output_plugin_libraries", LOADS),
        ("jit_provider", LOADS),
        ("external_pid_file", NAMES),
        ("log_directory", NAMES),
        ("log_filename", NAMES),
        ("stats_temp_directory", NAMES),
        ("dynamic_library_path", NAMES),
        ("extension_control_path", NAMES),
        ("extension_destdir", NAMES),
    ],
)  # fmt: skip
def test_settings_of_places_listeners_and_programs_are_refused(name: str, reason: str) -> None:
    assert refused({name.upper(): "/tmp/x"}) == (
        f'variant "evil" may not set {name} to "/tmp/x"\nDETAIL:  {reason}\nHINT:  leave it out'
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shared_preload_libraries", "pg_stat_statements"),
        ("shared_preload_libraries", 'auto_explain, "pg_stat_statements"'),
        ("session_preload_libraries", ""),
        ("local_preload_libraries", "$libdir/plugins/pldebugger"),
        ("search_path", '"$user", public'),
        ("default_tablespace", "fast"),
        ("log_destination", "stderr"),
        ("pg_stat_statements.max", "100"),
        ("data_sync_retry", "off"),
        ("env.MALLOC_ARENA_MAX", "2"),
        ("env.MALLOC_TOP_PAD_", "67108864"),
        ("env.GLIBC_TUNABLES", "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=2"),
        ("env.LD_PRELOAD", "libjemalloc.so.2"),
        ("env.LD_PRELOAD", "libmimalloc.so.2.0"),
        ("env.LD_PRELOAD", "libtcmalloc_minimal.so.4"),
        ("env.MALLOC_CONF", "background_thread:true,dirty_decay_ms:-1,narenas:4"),
        ("env.MIMALLOC_LARGE_OS_PAGES", "1"),
        ("env.TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES", "33554432"),
    ],
)
def test_what_a_measurement_may_be_about_is_given(name: str, value: str) -> None:
    with does_not_raise():
        require_measurable([Variant("good", {name: value})])


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("shared_preload_libraries", "/tmp/evil.so", '"/tmp/evil.so" is not the plain name of a library'),
        ("shared_preload_libraries", "jit,$libdir/x", '"$libdir/x" is not the plain name of a library'),
        ("session_preload_libraries", "../evil", '"../evil" is not the plain name of a library'),
        ("local_preload_libraries", "$libdir/x", '"$libdir/x" is not the plain name of a library'),
        ("env.LD_PRELOAD", "/usr/lib/libeatmydata.so", ALLOCATOR),
        ("env.LD_PRELOAD", "libeatmydata.so", ALLOCATOR),
        ("env.LD_PRELOAD", "libjemalloc.so.2 /tmp/x.so", ALLOCATOR),
        ("env.LD_PRELOAD", "/tmp/libjemalloc.so.2", ALLOCATOR),
        ("env.GLIBC_TUNABLES", "glibc.rtld.execstack=2", TUNABLES),
        ("env.MALLOC_CONF", "prof:true,prof_prefix:/etc/cron.d/x", PROFILER),
        ("env.MALLOC_CONF", "narenas:4,prof_gdump:true", PROFILER),
        ("env.MALLOC_ARENA_MAX", "x", "it must be a number"),
        ("env.TCMALLOC_MEMFS_MALLOC_PATH", "/etc/x", "it must not be a path"),
        *(
            (f"env.{name}", "x", MEMORY)
            for name in NO_ALLOCATORS
        ),
        ("work_mem", "1\x00", "it contains a NUL byte"),
    ],
)  # fmt: skip
def test_values_that_load_or_write_something_are_refused(key: str, value: str, reason: str) -> None:
    assert refused({key: value}) == (
        f'variant "evil" may not set {key} to "{value}"\nDETAIL:  {reason}\nHINT:  leave it out'
    )


def test_the_command_line_refuses_it() -> None:
    with pytest.raises(VariantError) as caught:
        parse_variant("x:data_directory=/var/lib/postgresql/17/main")
    assert caught.value.message == 'variant "x" may not set data_directory to "/var/lib/postgresql/17/main"'


def test_factors_refuse_it() -> None:
    with pytest.raises(VariantError) as caught:
        cross({"full-page-writes": ["on", "off"]})
    assert caught.value.message == 'variant "full-page-writes.on" has no valid key "full-page-writes"'


@pytest.mark.parametrize("key", ["/etc/cron.d/backup", "full-page-writes", "config_file", "env.LD_AUDIT"])
def test_an_experiment_file_refuses_it(tmp_path: Path, key: str) -> None:
    file = tmp_path / "shared.toml"
    text = 'question = "q"\nworkloads = ["pgbench-select"]\n[variants.default]\n[variants.evil.settings]\n'
    file.write_text(f'{text}"{key}" = "x"\n')
    with pytest.raises(VariantError, match=rf'variant "evil" (has no valid key "|may not set ){key}'):
        read_experiment_file(file)


@pytest.mark.parametrize("file", sorted(RESULTS.glob("*.toml")), ids=lambda file: file.name)
def test_the_experiments_of_the_documentation_may_be_measured(file: Path) -> None:
    assert len(read_experiment_file(file).variants) == len(tomllib.loads(file.read_text())["variants"])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("full-page-writes", "off"),
        ("synchronous-commit", "off"),
        ("config_file", "/tmp/nofsync.conf"),
        ("data_directory", "/var/lib/postgresql/17/main"),
        ("env.LD_PRELOAD", "/usr/lib/libeatmydata.so"),
        ("/sys/module/zfs/parameters/zfs_nocacheflush", "1"),
        ("/sys/module/zfs/parameters/zil_nocacheflush", "1"),
        ("/sys/module/zfs/parameters/zil_replay_disable", "1"),
    ],
)
def test_what_may_lose_data_is_marked_whoever_has_measured_it(key: str, value: str) -> None:
    assert Variant("x", {key: value}).unsafe_settings == (f"{key}={value}",)


def test_what_flushes_disks_is_durable() -> None:
    assert Variant(
        "x", {"/sys/module/zfs/parameters/zfs_nocacheflush": "0", "full-page-writes": "on"}
    ).is_durable
    assert Variant("x", {"env.LD_PRELOAD": "libjemalloc.so.2"}).is_durable
