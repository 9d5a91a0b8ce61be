"""Arms of several processes: ports, and time that goes by while they are frozen."""

from __future__ import annotations

import pytest

from hotloop.model.optimization import Candidate
from hotloop.tune.trials.ranks import of_ranks, port_is_taken
from hotloop.tune.trials.timeouts import Timeouts


def test_without_a_network_of_its_own_each_arm_has_its_own_port() -> None:
    one, other = (of_ranks({"MASTER_PORT": "29500"}, own_network=False) for _ in range(2))
    assert one["PET_MASTER_PORT"] == one["MASTER_PORT"]
    assert one["PET_MASTER_PORT"] != "29500"
    assert one["PET_MASTER_PORT"] != other["PET_MASTER_PORT"]


def test_a_port_that_the_user_did_not_set_stays_the_programs() -> None:
    assert "MASTER_PORT" not in of_ranks({}, own_network=False)


def test_with_a_network_of_its_own_ranks_meet_on_the_loopback() -> None:
    assert of_ranks({}, own_network=True)["NCCL_SOCKET_IFNAME"] == "lo"
    assert "PET_MASTER_PORT" not in of_ranks({}, own_network=True)


@pytest.mark.parametrize("own_network", [True, False])
def test_frozen_time_is_not_hung_time(own_network: bool) -> None:
    assert of_ranks({}, own_network=own_network)["TORCH_NCCL_ENABLE_MONITORING"] == "0"


@pytest.mark.parametrize(
    "words",
    [
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. "
        "port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
        "OSError: [Errno 98] Address already in use",
        "ConnectionError: Tried to launch distributed communication on port `29500`, but another process is "
        "utilizing it.",
    ],
)
def test_a_port_that_is_fixed_in_the_program_is_known_by_its_words(words: str) -> None:
    assert port_is_taken(f"Traceback\n{words}\n")


def test_patience_grows_with_what_compilation_was_seen_to_take() -> None:
    patience, compiled = Timeouts(startup_s=10, step_s=0.1), (Candidate(name="compile", one_off_s=45.0),)
    plain = patience.warm_up_s((), 6)
    assert patience.warm_up_s(compiled, 6) == plain + 450
    patience.warmed(compiled, 300)
    assert patience.warm_up_s(compiled, 6) == plain + 3000
    assert patience.warm_up_s((), 6) == plain
