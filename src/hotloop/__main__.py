"""`python -m hotloop`: the command line."""

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        from hotloop.cli.app import run
    except KeyboardInterrupt:  # before anything has begun
        sys.stderr.write("hotloop: interrupted\n")
        return 130

    return run(sys.argv[1:], whole_process=True)


def _leave_the_current_folder() -> None:
    """`python -m` looks for modules in the current folder first: a `psutil.py` beside the user's script is not ours."""
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]


if __name__ == "__main__":
    _leave_the_current_folder()
    sys.exit(main())
