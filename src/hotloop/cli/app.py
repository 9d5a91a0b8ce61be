"""The `hotloop` command: one file per subcommand, loaded when it is called."""

import importlib
import io
import os
import sys
from collections.abc import Sequence

import click

from hotloop import __version__
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.foreign_text import shown

_COMMANDS: dict[str, str] = {
    "observe": "hotloop.cli.observe",
    "diagnose": "hotloop.cli.diagnose",
    "tune": "hotloop.cli.tune",
    "run": "hotloop.cli.run",
    "patch": "hotloop.cli.patch",
    "report": "hotloop.cli.report",
    "sessions": "hotloop.cli.sessions",
    "compare": "hotloop.cli.compare",
    "check": "hotloop.cli.check",
    "demo": "hotloop.cli.demo",
    "machine": "hotloop.cli.machine",
    "lint": "hotloop.cli.lint",
    "explain": "hotloop.cli.explain",
    "trace": "hotloop.cli.trace",
}


class _LazyGroup(click.Group):
    """A group whose subcommands are imported only when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - likewise
        module = _COMMANDS.get(cmd_name)
        if module is None:
            return None
        command = importlib.import_module(module).command
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hotloop")
def hotloop() -> None:
    """Say where a PyTorch program's time goes, try what would help, and prove it.

    Put a command in front of the one you already type:

        hotloop tune python train.py --epochs 3
    """


def run(args: Sequence[str]) -> int:
    """Run one command line; the only place where errors become text and an exit code."""
    _prepare_streams()
    try:
        result = hotloop.main(args=list(args), prog_name="hotloop", standalone_mode=False)
        sys.stdout.flush()
    except HotloopError as error:
        _show(error.message, error.hint)
        return error.code
    except click.ClickException as error:
        _show_usage(error)
        return ExitCode.USAGE
    except (KeyboardInterrupt, click.Abort):
        _show("interrupted", "")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return ExitCode.DONE
    except (OSError, MemoryError) as error:
        _drop_output()
        _show(*_refusal(error))
        return ExitCode.MACHINE
    return int(result) if isinstance(result, int) else ExitCode.DONE


def _prepare_streams() -> None:
    """Make closed streams writable, and narrow encodings harmless: a result is not lost over how it is shown."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - as long as the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """What standard output still holds cannot be written; without this Python fails again at its end."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)


def _refusal(error: OSError | MemoryError) -> tuple[str, str]:
    """What this machine does not allow, and what to do about it."""
    if isinstance(error, MemoryError):
        return "out of memory", "free some, or raise the limit (ulimit -v)"
    try:
        os.getcwd()
    except OSError:
        return "the current folder does not exist any more", "change to one that does: cd"
    what = error.strerror or str(error)
    place = f"{error.filename}: " if error.filename is not None else ""
    return f"this machine does not allow it: {place}{what}", "check space, permissions and limits (ulimit -a)"


def _show_usage(error: click.ClickException) -> None:
    context = getattr(error, "ctx", None)
    usage = f"{context.get_usage()}\n" if context is not None else ""
    sys.stderr.write(f"{usage}Error: {shown(error.format_message(), lines=True)}\n")


def _show(message: str, hint: str) -> None:
    from rich.text import Text

    from hotloop.report.terminal.console import console

    first, *rest = message.splitlines() or [""]
    err = console(stderr=True)
    err.print(Text.assemble(("hotloop:", "bold red"), " ", first))
    for (
        line
    ) in rest:  # the program's own words, marked as such: a line of theirs must not pass for one of ours
        err.print(Text(f"  | {line}"))
    if hint:
        err.print(Text(f"  {hint}"))
