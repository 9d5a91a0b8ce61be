"""A run with a network of its own: ranks meet at the machine's name, or at its outer address, as they did before."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.launch.isolation.attempt import attempt
from hotloop.launch.isolation.decide import Isolation, wrap
from hotloop.launch.isolation.hosts_file import hosts_file, own_addresses

_MEET = """
import socket, sys
server = socket.create_server((sys.argv[1], 0))
client = socket.create_connection((sys.argv[1], server.getsockname()[1]), timeout=5)
server.accept()
print("met")
"""


@pytest.mark.parametrize("place", ["localhost", socket.gethostname(), *own_addresses()])
def test_ranks_meet_at_the_machines_name_and_addresses(tmp_path: Path, place: str) -> None:
    isolation = Isolation(network=True)
    why = attempt(isolation, tmp_path).error
    if why is not None:
        pytest.skip(f"network namespaces are not permitted here: {why}")
    argv = wrap([sys.executable, "-c", _MEET, place], isolation, tmp_path, tmp_path)
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "met\n", done.stderr


def test_a_name_that_is_an_outer_address_is_the_loopback_there(tmp_path: Path) -> None:
    """As a container on a bridge has it."""
    name = socket.gethostname()
    known = tmp_path / "etc-hosts"
    known.write_text(f"127.0.0.1 localhost\n172.17.0.2 {name}\n10.0.0.9 storage\n")
    text = Path(hosts_file(tmp_path, known) or "").read_text()
    assert f"172.17.0.2 {name}" not in text
    assert "10.0.0.9 storage" in text
    assert "::ffff:127.0.0.1 mapped-loopback" in text.splitlines(), (
        "of a rank's connection torch asks it by this"
    )
    assert text.splitlines()[0].startswith("127.0.0.1 localhost")
    assert name in text.splitlines()[0].split()
