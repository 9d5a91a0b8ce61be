"""Code that reads a program instead of running it, or that looks at its callers: it must find the same with us.

Run as a program: `python readers ROOT RESULTS_JSON FOLDER`. Each case returns two things: what must be the same
whatever is switched on, and what must be the same to the last line and digit where the program is only observed.
Every reader reads the model before its first training forward, in the middle of training, and after it.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from program import ROOT, Found, made

HERE = Path(__file__).parent


def names(folder: str) -> list[str]:
    return sorted(path.stem for path in (HERE / folder).glob("*.py"))


def attempt(call: Callable[[], Found]) -> dict[str, Any]:
    """Return what a case found; an error that it has without us too is a finding."""
    try:
        always, observing = call()
    except Exception as error:
        first = str(error).strip().splitlines()[:1]
        return {
            "always": ["error", type(error).__name__, first],
            "observing": None,
            "error": traceback.format_exc(),
        }
    return {"always": always, "observing": observing}


def main() -> None:
    results: dict[str, Any] = {}
    readers = {name: importlib.import_module(f"cases.{name}").read for name in names("cases")}
    model, inputs, train = made()

    def read(when: str) -> None:
        for name, reader in readers.items():
            results[f"{name} {when}"] = attempt(lambda reader=reader: reader(model, inputs))  # type: ignore[misc]

    read("before")
    train(model, lambda: read("in training"))
    read("after")
    if ROOT == "plain":
        once = {name: importlib.import_module(f"once.{name}").read for name in names("once")}
        results.update({name: attempt(reader) for name, reader in once.items()})
    Path(sys.argv[2]).write_text(re.sub(r"0x[0-9a-f]{9,}", "0x", json.dumps(results)))


if __name__ == "__main__":
    main()
