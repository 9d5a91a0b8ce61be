"""Enter the isolation, then become the user's command: `python -I -S enter.py ORDERS`.

The orders are a JSON file: `argv`, `folders` (to cover), `scratch`, `network` (with
`addresses` and `hosts`), `cwd`, `environment`. It replaces
itself by the command, so that the command has no frame and no parent of ours more than it would have otherwise.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

CANNOT_EXECUTE = 126
"""Exit code of a command that is there and cannot be executed, as a shell's."""
FAILED = 125
"""Exit code when the isolation could not be entered; the reason is in `<scratch>/isolation-error`."""


def main(orders_path: str) -> int:
    """Isolate this process and execute the command in it."""
    from hotloop.launch.isolation import namespace

    orders = json.loads(Path(orders_path).read_text())
    scratch = Path(orders["scratch"])
    try:
        if orders["folders"] or orders["network"]:
            hosts = Path(orders["hosts"]) if orders["hosts"] else None
            namespace.enter(network=orders["network"], addresses=orders["addresses"], hosts=hosts)
        for index, folder in enumerate(orders["folders"]):
            namespace.overlay(Path(folder), scratch / "writes" / str(index))
    except OSError as error:
        (scratch / "isolation-error").write_text(str(error))
        return FAILED
    os.chdir(orders["cwd"])
    try:
        os.execvpe(orders["argv"][0], orders["argv"], orders["environment"])
    except OSError as error:
        sys.stderr.write(f"hotloop: {orders['argv'][0]} cannot be executed: {error.strerror}\n")
        return CANNOT_EXECUTE


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))
    sys.exit(main(sys.argv[1]))
