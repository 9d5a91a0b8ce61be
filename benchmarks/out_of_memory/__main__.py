"""`python -m benchmarks.out_of_memory ROWS [PROGRAM...]`: each program runs under `hotloop observe` until it dies.

Nine run under a limit of their address space (`ulimit -v`), with which torch, NumPy and Python raise their own errors.
The tenth is killed by SIGKILL when it is too large, as the kernel kills: a thread of this benchmark does it, and tells
hotloop that the kernel has counted one more. A holder is named where the class that holds most is the expected one, and
a line that the program marks `# holder` or `# keeper` is named.

`python -m benchmarks.out_of_memory ROWS --page` writes the result page.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.out_of_memory.cases import CASES
from benchmarks.out_of_memory.judge import judged
from benchmarks.out_of_memory.page import page
from benchmarks.out_of_memory.run import ran_out_under_limit
from benchmarks.tune.page import write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    known = json.loads(options.rows.read_text()) if options.rows.exists() else {}
    for case in [] if options.page else CASES:
        if case.name not in options.programs and (options.programs or case.name in known):
            continue
        known[case.name] = judged(case, ran_out_under_limit(case))
        options.rows.write_text(json.dumps(known, indent=1))
        print(case.name, known[case.name]["named"], known[case.name]["says"], file=sys.stderr)
    if options.page:
        write("out-of-memory", "Ten programs that run out of memory in ten ways", page(known))


if __name__ == "__main__":
    main()
