"""The variant grammar ``[SERVER@]NAME[:setting=value,…]``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import VariantError
from pgdyno.model.variants.variant import Variant, parse_variant


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
