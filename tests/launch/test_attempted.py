"""What a program tried to reach in a network of its own is counted by the kernel, and the hint names the option."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from hotloop.launch.isolation.attempted import Attempts, attempts, counted
from hotloop.launch.isolation.decide import Isolation, plan_isolation
from hotloop.launch.isolation.scratch import new_scratch, remove, scratch_root
from hotloop.launch.isolation.signs import sign_of_isolation
from hotloop.launch.process import start
from hotloop.observe.run.network_use import NeedsNetwork, NetworkUse

COUNTERS = """Ip: Forwarding DefaultTTL OutNoRoutes
Ip: 2 64 3
Tcp: RtoAlgorithm MaxConn ActiveOpens AttemptFails
Tcp: 1 -1 4 2
Ip6OutNoRoutes                  	1
"""
CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)
    print("connected")
except OSError as error:
    sys.exit(f"{error}")
"""


def test_counters_are_read() -> None:
    assert counted(COUNTERS) == Attempts(outside=4, refused=2)
    assert counted("") == Attempts()


@pytest.mark.parametrize(
    ("to", "seen"), [("127.0.0.1", Attempts(refused=1)), ("198.51.100.7", Attempts(outside=1))]
)
def test_a_service_of_this_machine_is_out_of_reach_and_the_option_is_named(to: str, seen: Attempts) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        argv = [sys.executable, "-c", CONNECT, to, str(server.getsockname()[1])]
        isolation = plan_isolation(argv, Path.cwd(), scratch_root(), network=True)
        if not isolation.network:
            pytest.skip(f"network namespaces are not permitted here: {isolation.missing}")
        scratch = new_scratch("arm")
        run = start(argv, os.environ, isolation, scratch, log=scratch / "log")
        run.wait(lambda: False, timeout_s=60)
        assert run.exit_code() == 1
        assert attempts(run.pid, scratch) == seen
        assert "--network" in (sign_of_isolation(run.log_end(), isolation) or "")
        use = NetworkUse(run, isolation, asked_for=False)
        if seen.outside:
            with pytest.raises(NeedsNetwork, match="tried to reach other machines"):
                use.check(1, waited=False)
        else:
            use.check(1, waited=False)
            assert (use.hint() or "").startswith("1 connection to this machine refused")
            assert "--network" in (use.hint() or "")
        run.end()
        remove(scratch)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_who_asks_for_the_network_has_it_in_trials_too() -> None:
    run = start(["true"], os.environ, Isolation(), new_scratch("arm"), log=Path(os.devnull))
    try:
        assert NetworkUse(run, Isolation(), asked_for=True).reaches_out is True
        assert NetworkUse(run, Isolation(network=True), asked_for=False).reaches_out is False
    finally:
        run.end()
        remove(run.scratch)


def test_a_program_that_waits_for_other_machines_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "network-counters").write_text(COUNTERS)
    clock = [0.0]
    run = start(["true"], os.environ, Isolation(), tmp_path, log=tmp_path / "log")
    run.end()
    use = NetworkUse(run, Isolation(network=True), asked_for=False, clock=lambda: clock[0])
    assert not use.waits()
    clock[0] = 60.0
    assert not use.waits(), "it has given up"
    (tmp_path / "network-counters").write_text(COUNTERS.replace("64 3", "64 9"))
    assert use.waits()
    with pytest.raises(NeedsNetwork):
        use.check(None, waited=True)


def test_what_a_program_tried_before_its_steps_is_not_why_it_failed_after_them(tmp_path: Path) -> None:
    """A rank that died was started again with the machine's network: torchrun had asked a name server for a name."""
    (tmp_path / "network-counters").write_text(COUNTERS)
    run = start(["true"], os.environ, Isolation(), tmp_path, log=tmp_path / "log")
    run.end()
    use = NetworkUse(run, Isolation(network=True), asked_for=False)
    use.trains()
    use.check(1, waited=False)
    (tmp_path / "network-counters").write_text(COUNTERS.replace("64 3", "64 9"))
    use.trains()
    with pytest.raises(NeedsNetwork, match="6 times"):
        use.check(1, waited=False)
