"""Lines of lackey's trace, as valgrind 3.19 writes them."""

from __future__ import annotations

from pgdyno.profile.misses.traces import parse_accesses


def accesses(text: str) -> list[tuple[bool, int, int]]:
    found = parse_accesses(text.encode())
    return list(zip(found.is_code.tolist(), found.addresses.tolist(), found.sizes.tolist(), strict=True))


def test_instructions_and_their_data_are_read_in_order() -> None:
    text = "I  04a2a353,6\n L 1ffefff788,8\n S 04b38a18,16\n M 04b2fa88,4\nI  004a3d1f,2\n"
    assert accesses(text) == [
        (True, 0x04A2A353, 6),
        (False, 0x1FFEFFF788, 8),
        (False, 0x04B38A18, 16),
        (False, 0x04B2FA88, 4),
        (True, 0x004A3D1F, 2),
    ]


def test_sizes_have_up_to_three_digits() -> None:
    assert accesses(" L 00d64000,512\n S 00d64000,1\n") == [(False, 0xD64000, 512), (False, 0xD64000, 1)]


def test_valgrinds_own_words_are_no_accesses() -> None:
    text = (
        "==7282== Warning: set address range perms: large range [0x4b94000, 0xd00000)\n"
        "\n"
        "--7282-- WARNING: unhandled syscall: 334\n"
        " L 04b38750\n"
        " X 04b38750,8\n"
        "I  04b38750,3\n"
    )
    assert accesses(text) == [(True, 0x04B38750, 3)]


def test_nothing_has_no_accesses() -> None:
    assert accesses("") == []
    assert accesses("\n") == []
