"""SIGKILL at random moments: every entry that was reported as committed is there afterwards."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from hotloop.store.session import find_session

_WRITER = """
import sys
from pathlib import Path
from hotloop.store.session import find_session, new_session, sessions
session = find_session(Path()) if sessions(Path()) else new_session(Path(), "s")
number = len(session.keys())
while True:
    session.put(f"trial|{number}", {"number": number, "losses": [0.5] * 200})
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
    number += 1
"""


def test_what_was_committed_is_there_after_twenty_kills(tmp_path: Path) -> None:
    (tmp_path / "writer.py").write_text(_WRITER)
    rng = random.Random(0)
    num_committed = 0
    for _ in range(20):
        reported = _killed_after(tmp_path, rng.uniform(0.0, 0.05))
        session = find_session(tmp_path)
        kept = session.keys("trial|")
        session.close()
        # At most one entry more than was reported: committed, and killed before it could say so.
        assert kept == [f"trial|{number}" for number in range(len(kept))]
        assert reported + 1 <= len(kept) <= reported + 2
        assert len(kept) > num_committed
        num_committed = len(kept)


def _killed_after(folder: Path, seconds: float) -> int:
    """Return the last number that the writer reported; it is killed so long after the first one."""
    writer = subprocess.Popen([sys.executable, "writer.py"], cwd=folder, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    first = writer.stdout.readline()
    time.sleep(seconds)
    writer.send_signal(signal.SIGKILL)
    numbers = [first, *writer.stdout.read().splitlines(keepends=True)]
    writer.stdout.close()
    assert writer.wait() == -signal.SIGKILL
    return int([number for number in numbers if number.endswith("\n")][-1])
