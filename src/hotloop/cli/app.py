"""The `hotloop` command: one file per subcommand, loaded when it is called."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import inspect
import io
import os
import shlex
import shutil
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

import click

from hotloop import __version__
from hotloop.launch.readers import nobody_reads
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.foreign_text import shown

if TYPE_CHECKING:
    from hotloop.cli.programs import Programs

_NO_MEMORY = ("out of memory", "can't allocate memory")
"""What torch says then, with a RuntimeError."""
_SECTIONS: dict[str, dict[str, str]] = {
    "Your program, measured": {
        "observe": "where the time of a step and of the whole run goes",
        "diagnose": "what holds it back, line by line, and what each thing costs",
        "tune": "what makes it faster, tried and proven; writes a plan",
    },
    "What was found, put to use": {
        "run": "run the program for real with a plan switched on",
        "patch": "a plan as a diff of your source",
        "report": "a session as a page, as Markdown or in short",
        "sessions": "what is stored here",
        "compare": "which of two sessions or commands is faster, phase by phase",
        "check": "a gate for CI: fails on a proven slowdown, never on noise",
    },
    "Without your program": {
        "lint": "slow habits in source files and notebooks",
        "trace": "what a device was waiting for, from a PyTorch trace",
        "data": "pack a data set into shards, check a pack, time the storage",
        "memory": "what a program needs on devices that are not here",
        "machine": "what this machine can do, and what would spoil a measurement",
        "explain": "the manual page of a finding or an optimization",
        "demo": "tune the shipped example",
    },
}
"""In the order of `hotloop --help`; the module of a command has its name."""
_NAMES = [name for section in _SECTIONS.values() for name in section]


class _LazyGroup(click.Group):
    """A group whose subcommands are imported only when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return _NAMES

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - likewise
        if cmd_name not in _NAMES:
            return None
        command = importlib.import_module(f"hotloop.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Say what was meant where there is no such command."""
        name = args[0]
        if name not in _NAMES and not name.startswith("-"):
            raise HotloopError(f"there is no command {name!r}", _meant(name, args))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - likewise
        """List the commands by what they are for, without importing them."""
        for title, commands in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))


def _meant(name: str, args: list[str]) -> str:
    if name.endswith(".py") or name.startswith("python") or shutil.which(name):
        return f"say what to do with your program: hotloop observe {shlex.join(args)}"
    close = difflib.get_close_matches(name, _NAMES, n=1, cutoff=0.5)
    return f"did you mean {close[0]}? hotloop --help lists all" if close else "hotloop --help lists all"


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hotloop")
def hotloop() -> None:
    """Say where a PyTorch program's time goes, try what would help, and prove it.

    Put a command in front of the one you already type:

        hotloop tune python train.py --epochs 3
    """


class Caller(NamedTuple):
    """Who calls a command line, as `run` says."""

    whole_process: bool
    programs: Programs | None


def run(args: Sequence[str], *, whole_process: bool = False, programs: Programs | None = None) -> int:
    """Run one command line; the only place where errors become text and an exit code.

    Args:
        args: its words.
        whole_process: this process is there for it alone: its time budget began with the process.
        programs: how programs are run; None: as usual.
    """
    _prepare_streams()
    try:
        result = hotloop.main(
            args=list(args), prog_name="hotloop", standalone_mode=False, obj=Caller(whole_process, programs)
        )
        sys.stdout.flush()
    except HotloopError as error:
        _show(error.message, error.hint)
        return error.code
    except click.ClickException as error:
        _show_usage(error, args)
        return ExitCode.USAGE
    except (KeyboardInterrupt, click.Abort):
        _show("interrupted", "")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return ExitCode.DONE
    except SystemExit:  # what click and rich make of a closed pipe
        if not nobody_reads():
            raise
        _drop_output()
        return ExitCode.DONE
    except Exception as error:
        _drop_output()
        if not _is_of_the_machine(error):
            return _show_defect()
        _show(*_refusal(error))
        return ExitCode.MACHINE
    return int(result) if isinstance(result, int) else ExitCode.DONE


def _is_of_the_machine(error: Exception) -> TypeGuard[OSError | MemoryError | ImportError | RuntimeError]:
    """Whether the machine does not allow something.

    Where no further thread or process can be had, torch and Python raise what they raise for other things, too.
    """
    from concurrent.futures import BrokenExecutor

    if not isinstance(error, RuntimeError):
        return isinstance(error, (OSError, MemoryError, ImportError))
    return isinstance(error, BrokenExecutor) or any(
        words in str(error) for words in ("can't start new thread", *_NO_MEMORY)
    )


def _show_defect() -> int:
    """Show the exception that is being handled, and say whose fault it is."""
    with contextlib.suppress(OSError):
        traceback.print_exc()
    _show(
        "that is a defect of hotloop, not of your program",
        f"please report it, with the lines above and the command; this is hotloop {__version__}",
    )
    return ExitCode.DEFECT


def _prepare_streams() -> None:
    """Make closed streams writable, and narrow encodings harmless: a result is not lost over how it is shown."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - as long as the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """What a stream still holds cannot be written; without this Python fails again at its end."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # its reader is gone, or it is full
            with contextlib.suppress(OSError, ValueError):
                os.dup2(nothing, stream.fileno())
    os.close(nothing)


def _refusal(error: OSError | MemoryError | ImportError | RuntimeError) -> tuple[str, str]:
    """What this machine does not allow, and what to do about it."""
    if isinstance(error, ImportError):
        return (
            f"a library cannot be loaded: {error}",
            "check memory and limits (ulimit -a), or install it again",
        )
    if isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY):
        return "out of memory", "free some, or raise the limit (ulimit -v)"
    if isinstance(error, RuntimeError):
        return (
            f"no further process or thread could be started: {error}",
            "raise the limit (ulimit -u), or free some",
        )
    try:
        os.getcwd()
    except OSError:
        return "the current folder does not exist any more", "change to one that does: cd"
    what = error.strerror or str(error)
    place = f"{error.filename}: " if error.filename is not None else ""
    return f"this machine does not allow it: {place}{what}", "check space, permissions and limits (ulimit -a)"


def _show_usage(error: click.ClickException, args: Sequence[str]) -> None:
    """Say what is wrong, and how it is written: a command's epilog is an example of it."""
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        sys.stderr.write(f"{error.format_message()}\n")  # nothing was typed wrong: the help, and no more
        return
    context = getattr(error, "ctx", None) or _context(args)  # click's parser knows none
    said = f"{context.get_usage()}\nError: {shown(error.format_message(), lines=True)}\n"
    example = inspect.cleandoc(context.command.epilog or "").replace("\b\n", "")
    sys.stderr.write(f"{said}{example}\n" if example else said)


def _context(args: Sequence[str]) -> click.Context:
    """Return the context of the command that a command line names."""
    context = click.Context(hotloop, info_name="hotloop")
    for word in args:
        group = context.command
        command = group.get_command(context, word) if isinstance(group, click.Group) else None
        if command is None:
            break
        context = click.Context(command, parent=context, info_name=word)
    return context


def _show(message: str, hint: str) -> None:
    with contextlib.suppress(OSError):  # standard error is full or gone: the exit code says it
        _print(message, hint)


def _print(message: str, hint: str) -> None:
    """A further line is the program's own and marked as such: it must not pass for one of ours, or start a command."""
    from rich.text import Text

    from hotloop.report.terminal.console import console, wraps

    first, *rest = message.splitlines() or [""]
    err = console(stderr=True)
    # Hints hold commands, which are pasted: they are not broken.
    err.print(Text.assemble(("hotloop:", "bold red"), " ", first), soft_wrap=not wraps(err))
    for line in rest:
        err.print(Text(f"  | {line}"))
    first, *rest = hint.splitlines() or [""]
    if first:
        err.print(Text(f"  {first}"))
    for line in rest:
        err.print(Text(f"  | {line}"))
