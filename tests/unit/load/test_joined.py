"""Turns that several hosts have at once become one, by the first one's clock."""

from __future__ import annotations

import numpy as np
import pytest

from pgdyno.load.hosts_turns import HostTurn, joined_turn, moves
from pgdyno.measure.blocks.attribution import count_arm
from pgdyno.measure.blocks.transactions import parse_all
from pgdyno.model.experiments.slices import HostLog, Slice

MS, S = 1_000_000, 1_000_000_000
YEAR_2023 = 1_700_000_000 * S


def turn(start_ns: int, drained_after_ms: int = 50) -> Slice:
    return Slice(0, start_ns, start_ns + 50 * MS, (), start_ns + drained_after_ms * MS)


def test_a_turn_of_one_host_is_by_our_clock() -> None:
    assert joined_turn([HostTurn(turn(7 * S, 52), 99)], 5 * S) == turn(5 * S, 52)


def test_a_turn_of_several_lasts_until_the_last_rests() -> None:
    # It could begin at 1 s. Words of a turn of 52 ms are back 53 ms later, those of one of 61 ms after 65 ms.
    hosts = [HostTurn(turn(7 * S, 52), 1053 * MS), HostTurn(turn(10 * S, 61), 1065 * MS)]
    assert joined_turn(hosts, 1000 * MS) == Slice(0, 1000 * MS, 1050 * MS, (), 1061 * MS, apart_ns=4 * MS)


def test_words_that_come_before_the_turn_can_have_ended_are_no_negative_time() -> None:
    assert joined_turn([HostTurn(turn(7 * S), 5), HostTurn(turn(8 * S), 5)], 0).apart_ns == 0


def test_turns_of_other_lengths_are_refused() -> None:
    longer = Slice(0, 7 * S, 7 * S + 51 * MS, (), 7 * S + 52 * MS)
    with pytest.raises(ValueError, match="it reports a turn with a different length than other hosts"):
        joined_turn([HostTurn(turn(7 * S), 0), HostTurn(longer, 0)], 0)


def log(*ends_ns: int) -> bytes:
    """Transactions of 10 ms."""
    return b"".join(b"0 1 10000 0 %d %d\n" % (end // S, end % S // 1000) for end in ends_ns)


def test_transactions_of_clocks_that_are_off_fall_into_the_turns_that_they_were_of() -> None:
    # By our clock turns begin at 0 and 100 ms. The first host is 1 h behind; the second, 3 s ahead, begins
    # 1 ms late, then 4 ms.
    ours = (YEAR_2023, YEAR_2023 + 100 * MS)
    behind = tuple(at - 3600 * S for at in ours)
    ahead = (ours[0] + 3001 * MS, ours[1] + 3004 * MS)
    first = HostLog(log(behind[0] + 20 * MS, behind[1] + 20 * MS), moves(behind, ours))
    # In the first turn at its 15th and 51st ms (it had ended by then), in the second at its 49th ms.
    second = HostLog(log(ahead[0] + 15 * MS, ahead[0] + 51 * MS, ahead[1] + 49 * MS), moves(ahead, ours))
    merged = parse_all([first, second])
    assert sorted((merged.completed_ns - YEAR_2023) // MS) == [15, 20, 51, 120, 149]
    counted = count_arm([turn(ours[0]), turn(ours[1])], 0, merged, 5 * MS, is_drained=True)
    assert counted.transactions == 4
    assert counted.running_s == pytest.approx(0.09)
    assert counted.latency_us.tolist() == [10_000] * 5  # all began in a counted part


def test_the_beginning_of_a_turn_is_within_it_although_logs_have_whole_microseconds() -> None:
    merged = parse_all([HostLog(log(5 * S + 1_999), moves((5 * S + 1_999,), (YEAR_2023 + 999,)))])
    assert merged.completed_ns.tolist() == [YEAR_2023]


def test_failures_of_all_hosts_are_added_up() -> None:
    failed = b"0 1 failed:40001::x 0 5 0\n"
    merged = parse_all([HostLog(failed), HostLog(failed, ((0, 5),)), HostLog(b"", ((0, 5),))])
    assert merged.failed_ns["40001", "x"].tolist() == [5 * S, 5 * S + 5]
    assert merged.count == 0
    assert merged.completed_ns.dtype == np.int64
