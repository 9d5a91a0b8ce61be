"""Things that real programs do to hooks. What each case returns must be the same with the probe.

Run as a program: `python hazards RESULTS_JSON FOLDER`. Cases run by name, in one process.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys
import traceback
from pathlib import Path
from typing import Any

from program import Net

CASES = sorted(path.stem for path in Path(__file__).parent.glob("cases/*.py"))
# A program pickles its own classes by this name.
Net.__module__ = "__main__"


def main() -> None:
    results: dict[str, Any] = {}
    for name in CASES:
        # Names that count (case_1, ...) differ between runs if anything was left behind by an earlier case.
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                results[name] = {"value": importlib.import_module(f"cases.{name}").case()}
            except BaseException:
                results[name] = {"error": traceback.format_exc()}
    Path(sys.argv[1]).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
