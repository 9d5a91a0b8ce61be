"""`python -m hotloop`: the command line."""

import os
import sys


def main() -> int:
    """Run the command line and return its exit code."""
    _library_first()
    try:
        from hotloop.cli.app import run
    except KeyboardInterrupt:  # before anything has begun
        sys.stderr.write("hotloop: interrupted\n")
        return 130

    return run(sys.argv[1:], whole_process=True)


def _library_first() -> None:
    """Look into what PYTHONPATH names last: it is about the user's program, and may hold a `psutil.py` of its own."""
    named = {os.path.abspath(place) for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place}
    sys.path.sort(key=lambda place: os.path.abspath(place) in named)


def _leave_the_current_folder() -> None:
    """`python -m` looks for modules in the current folder first: a `psutil.py` beside the user's script is not ours."""
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]


if __name__ == "__main__":
    _leave_the_current_folder()
    sys.exit(main())
