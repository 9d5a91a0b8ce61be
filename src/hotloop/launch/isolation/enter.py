"""Enter the isolation, then become the user's command: `python -I -S enter.py ORDERS`.

The orders are a JSON file that is removed when it has been read: `argv`, `cwd`, `scratch`, `lifeline` (a descriptor;
null where nothing minds the run), and how to isolate: `covered`, `denied`, `unconnected`,
`network` (with `addresses` and `hosts`),
`scratch_root`, `writable`, `own`, `copies`, `listed_ids`. The environment is this process's own, which is not written
anywhere.
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
    from hotloop.launch.isolation.minder import mind

    orders = json.loads(Path(orders_path).read_text())
    os.unlink(orders_path)
    try:
        _isolate(orders)
        os.chdir(orders["cwd"])
    except OSError as error:
        (Path(orders["scratch"]) / "isolation-error").write_text(str(error))
        return FAILED
    if orders["lifeline"] is None:
        return _become(orders["argv"])
    scratch = Path(orders["scratch"])
    at_end = functools.partial(keep_counters, scratch) if orders["network"] else lambda: None
    return mind(lambda: _become(orders["argv"]), orders["lifeline"], at_end)


def _isolate(orders: dict[str, Any]) -> None:
    from hotloop.launch.isolation import landlock, namespace
    from hotloop.launch.isolation.overlays import WholeTree

    scratch = Path(orders["scratch"])
    if orders["covered"] or orders["network"]:
        within_user = namespace.enter(
            network=orders["network"], addresses=orders["addresses"], listed_ids=orders["listed_ids"]
        )
    if orders["covered"]:
        tree = WholeTree(
            scratch,
            orders["scratch_root"],
            orders["writable"],
            orders["own"],
            orders["copies"],
            within_user=within_user,
        )
        tree.enter()
        (scratch / READ_ONLY).write_text(json.dumps(tree.read_only))
    if orders["hosts"]:
        namespace.bind(orders["hosts"], "/etc/hosts")
    if orders["denied"]:
        places = [orders["scratch_root"], *_devices(), "/proc", "/sys", *orders["writable"]]
        landlock.write_only_to(places, connected=not orders["unconnected"])


def _devices() -> list[str]:
    """Devices and shared memory, but no new files among them."""
    return [entry.path for entry in os.scandir("/dev") if not entry.is_symlink()]


def _become(argv: list[str]) -> int:
    for name in (
        "SIGPIPE",
        "SIGXFSZ",
    ):  # Python ignores them, and what is ignored stays so in what it becomes
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"hotloop: {argv[0]!a} cannot be executed: {error.strerror}\n")
        sys.stderr.flush()
        return CANNOT_EXECUTE


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))
    sys.exit(main(sys.argv[1]))
