"""What was started is gone when hotloop is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from hotloop.launch.isolation.scratch import belongs_to, scratch_root

OWNER = """
    import os, sys, time
    from hotloop.launch.isolation.decide import Isolation
    from hotloop.launch.environment import probed
    from hotloop.launch.process import start
    from hotloop.launch.isolation.scratch import new_scratch
    from hotloop.probe.process.config import ProbeConfig

    scratch = new_scratch("arm")
    ProbeConfig(folder=str(scratch)).save(scratch / "probe.json")
    child = (
        "import subprocess, sys, time; "
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); time.sleep(600)"
    )
    environment = probed(os.environ, scratch / "probe.json")
    run = start([sys.executable, "-c", child], environment, Isolation(), scratch, log=scratch / "log")
    while len(run.tree()) < 2:
        time.sleep(0.05)
    run.freeze()
    print(*[process.pid for process in run.tree()], flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
def test_a_killed_hotloop_leaves_no_frozen_process_and_no_scratch(tmp_path: Path) -> None:
    script = tmp_path / "owner.py"
    script.write_text(textwrap.dedent(OWNER))
    owner = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pids = [int(word) for word in owner.stdout.readline().split()]
    assert len(pids) == 2
    assert all(psutil.pid_exists(pid) for pid in pids)
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    for _ in range(400):
        alive = [pid for pid in pids if _alive(pid)]
        left = [folder for folder in scratch_root().iterdir() if belongs_to(folder, owner.pid)]
        if not alive and not left:
            break
        time.sleep(0.05)
    assert not alive
    assert not left


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
