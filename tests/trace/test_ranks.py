"""Collectives of several ranks, matched and compared."""

from hotloop.trace.ranks.ranks import Collective, Ranks, compare_ranks, find_collectives
from tests.trace.example import kernel
from tests.trace.reading import read_events


def _compare(*ranks: list[Collective]) -> Ranks:
    found = compare_ranks(
        range(len(ranks)), [f"{rank}.json" for rank in range(len(ranks))], ranks, [1.0] * len(ranks)
    )
    assert found is not None
    return found


def _all_reduce(group: str | None, us: int, end: int = 1_000) -> Collective:
    return Collective("allreduce", group, (end - us) * 1000, end * 1000)


def test_a_rank_waits_for_those_of_its_group() -> None:
    """Two pairs of tensor-parallel ranks, each with a group of its own, and one group of all."""
    ranks = _compare(
        [_all_reduce("1", 50), _all_reduce("0", 40, 2_000)],
        [_all_reduce("1", 10), _all_reduce("0", 40, 2_000)],
        [_all_reduce("2", 900), _all_reduce("0", 40, 2_000)],
        [_all_reduce("2", 400), _all_reduce("0", 30, 2_000)],
    )
    assert (ranks.num_matched, ranks.num_unmatched) == (3, 0)
    caused = {one.rank: one.caused_us for one in ranks.stragglers}
    assert caused == {0: 0.0, 1: 40.0, 2: 0.0, 3: 530.0}
    assert {one.num_matched for one in ranks.stragglers} == {2}


def test_a_group_of_which_one_rank_is_here_is_left_out() -> None:
    ranks = _compare([_all_reduce("1", 50)], [_all_reduce("2", 10)])
    assert (ranks.num_matched, ranks.num_unmatched) == (0, 2)
    assert ranks.stragglers[1].offset_us is None


def test_without_groups_all_ranks_are_one() -> None:
    ranks = _compare([_all_reduce(None, 50)], [_all_reduce(None, 10)], [])
    assert (ranks.num_matched, ranks.num_unmatched) == (0, 1)


def test_sends_and_receives_are_no_collectives() -> None:
    """The first send of the first stage meets the first receive of the second, not its first send."""
    events = [kernel("ncclDevKernel_SendRecv(x)", 10 * at, 10 * at + 5, at) for at in (1, 2, 3)]
    for event, name in zip(events, ("send", "recv", "all_to_all"), strict=True):
        event["args"] |= {"Collective name": name, "Process Group Name": "3"}
    assert [(one.name, one.group) for one in find_collectives(read_events(events))] == [("all_to_all", "3")]
