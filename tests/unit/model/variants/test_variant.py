"""The variant grammar ``[SERVER@]NAME[:setting=value,…]``."""

from __future__ import annotations

import tomllib
from contextlib import nullcontext as does_not_raise
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import VariantError
from pgdyno.model.experiments.study import cross
from pgdyno.model.variants.variant import Variant, parse_variant, require_measurable
from pgdyno.store.experiment_file import read_experiment_file


@pytest.mark.parametrize(
    ("text", "variant"),
    [
        ("default", Variant("default")),
        ("big:shared_buffers=4GB", Variant("big", {"shared_buffers": "4GB"})),
        ("big:shared_buffers=4GB,jit=off", Variant("big", {"shared_buffers": "4GB", "jit": "off"})),
        ("/opt/pg18@new", Variant("new", server="/opt/pg18")),
        ("a:search_path='x,y',jit=off", Variant("a", {"search_path": "x,y", "jit": "off"})),
        ("a:application_name='it''s'", Variant("a", {"application_name": "it's"})),
        ("a:pg_stat_statements.max=100", Variant("a", {"pg_stat_statements.max": "100"})),
        ("a:DateStyle=ISO", Variant("a", {"datestyle": "ISO"})),
        ("a:vm.swappiness=1", Variant("a", {"/proc/sys/vm/swappiness": "1"})),
        ("a:/sys/block/vda/queue/scheduler=none", Variant("a", {"/sys/block/vda/queue/scheduler": "none"})),
        ("a:env.MALLOC_TOP_PAD_=65536", Variant("a", {"env.MALLOC_TOP_PAD_": "65536"})),
        ("a:process.scheduling_policy=batch", Variant("a", {"process.scheduling_policy": "batch"})),
    ],
)
def test_variants_are_parsed(text: str, variant: Variant) -> None:
    assert parse_variant(text) == variant


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'variant "" has no valid name'),
        ("@x", 'variant "@x" has an empty server before "@"'),
        ("x:", 'variant "x:" ends after ":"'),
        ("x:jit", 'variant "x:jit": "jit" is not setting=value'),
        ("x:jit=on,jit=off", 'variant "x:jit=on,jit=off" sets "jit" twice'),
        ("x:jit=on,JIT=off", 'variant "x:jit=on,JIT=off" sets "JIT" twice'),
        ("x:a='b", "unterminated quote"),
        ("x:vm.swappiness=1,/proc/sys/vm/swappiness=2", 'sets "/proc/sys/vm/swappiness" twice'),
        ("x:/proc/sysrq-trigger=c", '"/proc/sysrq-trigger=c" is not setting=value'),
        ("x:/sys/../etc/passwd=x", '"/sys/../etc/passwd=x" is not setting=value'),
        ("a b", 'variant "a b" has no valid name'),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(VariantError) as caught:
        parse_variant(text)
    assert message in caught.value.message
    assert caught.value.exit_code == 2


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_]{1,10}", fullmatch=True),
        st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=12).map(str.strip),
        max_size=4,
    )
)
def test_what_is_printed_parses_back(settings: dict[str, str]) -> None:
    variant = Variant("v", settings)
    assert parse_variant(str(variant)) == variant


@pytest.mark.parametrize(
    "setting",
    [
        "fsync=off",
        "full_page_writes=0",
        "synchronous_commit=local",
        "synchronous_commit=remote_write",
        "autovacuum=no",
        "wal_level=minimal",
        "track_counts=off",
        "data_sync_retry=on",
        "ignore_invalid_pages=on",
    ],
)
def test_settings_that_may_lose_data_make_a_variant_not_durable(setting: str) -> None:
    assert parse_variant(f"x:{setting}").unsafe_settings == (setting,)


@pytest.mark.parametrize("setting", ["FSYNC=off", "fSync=0", "Synchronous_Commit=OFF", "AutoVacuum=off"])
def test_upper_case_is_no_way_around_the_mark(setting: str) -> None:
    # guc_name_compare in src/backend/utils/misc/guc.c folds ASCII letters.
    name, _, value = setting.partition("=")
    assert parse_variant(f"x:{setting}").unsafe_settings == (f"{name.lower()}={value}",)
    assert not Variant("x", {name: value}).is_durable


def test_one_setting_in_two_spellings_is_refused() -> None:
    with pytest.raises(VariantError) as caught:
        Variant("x", {"fsync": "on", "FSYNC": "off"})
    assert str(caught.value) == (
        'variant "x" sets a setting twice\nDETAIL:  upper and lower case are the same: fsync, FSYNC'
    )


@pytest.mark.parametrize(
    "setting", ["fsync=on", "synchronous_commit=remote_apply", "wal_level=logical", "shared_buffers=1GB"]
)
def test_other_settings_leave_it_durable(setting: str) -> None:
    assert parse_variant(f"x:{setting}").is_durable


def test_what_is_the_servers_the_machines_and_the_environments_is_told_apart() -> None:
    text = "a:jit=off,vm.swappiness=1,env.LD_PRELOAD=libjemalloc.so.2,process.scheduling_policy=batch"
    variant = parse_variant(text)
    assert variant.gucs == {"jit": "off"}
    assert variant.files == {"/proc/sys/vm/swappiness": "1"}
    assert variant.environment == {"LD_PRELOAD": "libjemalloc.so.2"}
    assert variant.scheduling_policy == "batch"
    assert str(variant) == text


@pytest.mark.parametrize("policy", ["fifo", "idle", "", "batch 0"])
def test_a_policy_that_could_starve_other_processes_is_refused(policy: str) -> None:
    with pytest.raises(VariantError) as refused:
        parse_variant(f"a:process.scheduling_policy={policy}")
    assert str(refused.value) == (
        f'variant "a" may not set process.scheduling_policy to "{policy}"\n'
        "DETAIL:  the policies are other and batch\n"
        "HINT:  leave it out"
    )


def test_telling_the_kernel_that_a_disk_needs_no_flush_is_not_durable() -> None:
    assert parse_variant("a:/sys/block/vda/queue/write_cache=write through").unsafe_settings == (
        "/sys/block/vda/queue/write_cache=write through",
    )
    assert parse_variant("a:vm.swappiness=1").is_durable


def test_a_prefetch_control_is_set_cpu_by_cpu() -> None:
    variant = parse_variant("off:/dev/cpu/0/msr:0x1a4=0xf,/dev/cpu/1/msr:0x1a4=0xf")
    assert variant.files == {"/dev/cpu/0/msr:0x1a4": "0xf", "/dev/cpu/1/msr:0x1a4": "0xf"}
    assert str(variant) == "off:/dev/cpu/0/msr:0x1a4=0xf,/dev/cpu/1/msr:0x1a4=0xf"
    with pytest.raises(VariantError, match="is not setting=value"):
        parse_variant("off:/dev/cpu/0/msr=0xf")


@pytest.mark.parametrize(
    "variant",
    [
        Variant("a", {"search_path": " x "}),
        Variant("a", {"/proc/sys/net/ipv4/conf/eth0.1/forwarding": "1"}),
        Variant("a", {"/proc/sys/user/max_cgroup_namespaces": "1"}),
    ],
)
def test_blanks_around_a_value_and_dots_in_a_path_come_back(variant: Variant) -> None:
    assert parse_variant(str(variant)) == variant


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
        "a register /dev/cpu/N/msr:0x…, env.NAME, process.scheduling_policy, or sql"
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
