"""The `hotloop` command: one file per subcommand, loaded when it is called."""

import importlib
import sys
from collections.abc import Sequence

import click
from rich.console import Console

from hotloop import __version__
from hotloop.model.errors import ExitCode, HotloopError

_COMMANDS: dict[str, str] = {
    "observe": "hotloop.cli.observe",
    "diagnose": "hotloop.cli.diagnose",
    "tune": "hotloop.cli.tune",
    "run": "hotloop.cli.run",
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
    try:
        result = hotloop.main(args=list(args), prog_name="hotloop", standalone_mode=False)
    except HotloopError as error:
        _show(error.message, error.hint)
        return error.code
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except (KeyboardInterrupt, click.Abort):
        _show("interrupted", "")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return ExitCode.DONE
    return int(result) if isinstance(result, int) else ExitCode.DONE


def _show(message: str, hint: str) -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"[bold red]hotloop:[/] {_escape(message)}")
    if hint:
        console.print(f"  {_escape(hint)}")


def _escape(text: str) -> str:
    return text.replace("[", "\\[")
