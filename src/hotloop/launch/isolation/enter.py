"""Enter the isolation, then become the user's command: `python -I -S enter.py ORDERS`.

The orders are a JSON file that is removed when it has been read: `argv`, `cwd`, `scratch`, `lifeline` (a descriptor;
null where nothing minds the run), and how to isolate: `covered`, `denied`, `unconnected`,
`processes`, `network` (with `addresses` and `hosts`), `scratch_root`, `writable`, `own`, `copies`, `listed_ids`. The
environment is this process's own, which is not written anywhere.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

CANNOT_EXECUTE = 126
"""Exit code of a command that is there and cannot be executed, as a shell's."""
FAILED = 125
"""Exit code when the isolation could not be entered; the reason is in `<scratch>/isolation-error`."""
READ_ONLY = "read-only"
"""A file in scratch: what could not be covered, as a JSON list of folders and reasons."""


def main(orders_path: str) -> int:
    """Isolate this process and execute the command in it."""
    from hotloop.launch.isolation.attempted import keep_counters
    from hotloop.launch.isolation.subreaper import mind

    orders = json.loads(Path(orders_path).read_text())
    os.unlink(orders_path)
    leads_session = os.getsid(0) == os.getpid()
    try:
        within_user = _leave_others(orders)
        if not orders["processes"]:
            _cover(orders, within_user=within_user)
    except OSError as error:
        return _failed(orders, error)
    if orders["processes"]:
        become = functools.partial(
            _become_in_init, orders, within_user=within_user, new_session=leads_session
        )
    else:
        become = functools.partial(_become, orders["argv"])
    if orders["lifeline"] is None and not orders["processes"]:
        return become()
    at_end = functools.partial(keep_counters, Path(orders["scratch"])) if orders["network"] else None
    return mind(become, orders["lifeline"], at_end)


def _failed(orders: dict[str, Any], error: OSError) -> int:
    (Path(orders["scratch"]) / "isolation-error").write_text(str(error))
    return FAILED


def _leave_others(orders: dict[str, Any]) -> bool:
    """Enter the namespaces; return whether a user namespace was needed."""
    from hotloop.launch.isolation import namespace

    if not (orders["covered"] or orders["network"]):
        return False
    return namespace.enter(
        processes=orders["processes"],
        network=orders["network"],
        addresses=orders["addresses"],
        listed_ids=orders["listed_ids"],
    )


def _cover(orders: dict[str, Any], *, within_user: bool) -> None:
    """Give this process the files that it may see and change."""
    from hotloop.launch.isolation import landlock, namespace
    from hotloop.launch.isolation.no_mounting import never_mount
    from hotloop.launch.isolation.overlays import WholeTree

    scratch = Path(orders["scratch"])
    if orders["covered"]:
        tree = WholeTree(
            scratch,
            orders["scratch_root"],
            orders["writable"],
            orders["own"],
            orders["copies"],
            within_user=within_user,
            own_processes=orders["processes"],
        )
        tree.enter()
        (scratch / READ_ONLY).write_text(json.dumps(tree.read_only))
    if orders["hosts"]:
        namespace.bind(orders["hosts"], "/etc/hosts")
    if orders["covered"] and not within_user:
        never_mount()
    if orders["denied"]:
        places = [orders["scratch_root"], *_devices(), "/proc", "/sys", *orders["writable"]]
        landlock.write_only_to(places, connected=not orders["unconnected"])
    os.chdir(orders["cwd"])


def _become_in_init(orders: dict[str, Any], *, within_user: bool, new_session: bool) -> int:
    """Be the init of a namespace, with mounts of its own: its /proc is not the one that the subreaper needs."""
    from hotloop.launch.isolation import namespace
    from hotloop.launch.isolation.subreaper import as_init

    try:
        namespace.enter_mounts()
        _cover(orders, within_user=within_user)
    except OSError as error:
        return _failed(orders, error)
    return as_init(lambda: _become(orders["argv"]), new_session=new_session)


def _devices() -> list[str]:
    """Devices and shared memory, but no new files among them."""
    return [entry.path for entry in os.scandir("/dev") if not entry.is_symlink()]


def _become(argv: list[str]) -> int:
    from hotloop.probe.process.config import COMMAND_PID

    for name in (
        "SIGPIPE",
        "SIGXFSZ",
    ):  # Python ignores them, and what is ignored stays so in what it becomes
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    os.environ[COMMAND_PID] = str(os.getpid())  # it stays the same as long as nothing is started
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"hotloop: {argv[0]!a} cannot be executed: {error.strerror}\n")
        sys.stderr.flush()
        return CANNOT_EXECUTE


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))
    sys.exit(main(sys.argv[1]))
