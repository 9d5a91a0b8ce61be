"""`hotloop demo`: the main job on the shipped example."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import click

import hotloop
from hotloop.cli.options import TimeSpan
from hotloop.cli.tune import command as tune_command
from hotloop.model.errors import ExitCode, HotloopError

_EXAMPLE = "jpeg_classifier"
_INSTALLED = Path(hotloop.__file__).parent / "_examples" / _EXAMPLE
_IN_TREE = Path(hotloop.__file__).parents[2] / "examples" / _EXAMPLE


@click.command("demo")
@click.option("--budget", type=TimeSpan(), default="4m", show_default=True, help="Time budget for tuning.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("hotloop-demo"),
    show_default=True,
    help="Folder to copy the example to.",
)
@click.pass_context
def command(context: click.Context, budget: float, folder: Path) -> int:
    """Tune the shipped example, an image classifier on JPEG files with slow habits.

    The example is copied to a folder of its own, draws its pictures, and is then tuned as any program would be.
    """
    _demand_packages()
    folder = _here(_writable(folder))
    _copy(folder)
    if not (folder / "data").exists():
        click.echo(f"hotloop: drawing the example's pictures in {folder / 'data'} (once)", err=True)
        subprocess.run([sys.executable, "make_data.py", "data"], cwd=folder, check=True)
    script = str(folder / "train.py")
    click.echo(f"$ hotloop tune --budget {budget:.0f}s --plan {folder / 'hotloop.toml'} {script}", err=True)
    plan = folder / "hotloop.toml"
    code = context.invoke(tune_command, budget=budget, plan_file=plan, allow_writes=True, command=(script,))
    click.echo(f"\nThat was {script}; your own: hotloop tune python train.py")
    return int(code)


def _writable(folder: Path) -> Path:
    """Return the folder, or one for temporary files where this one cannot be made or written to."""
    there = folder if folder.exists() else folder.absolute().parent
    if os.access(there, os.W_OK):
        return folder
    return Path(tempfile.gettempdir()) / folder.name


def _here(folder: Path) -> Path:
    """Return the folder as it is named from the current one, which is another where sessions cannot be stored here."""
    if os.access(Path.cwd(), os.W_OK):
        return folder
    os.chdir(folder.absolute().parent)
    click.echo(
        f"hotloop: this folder may not be written to, so the example is tuned in another one: cd {Path.cwd()}",
        err=True,
    )
    return Path(folder.name)


def _demand_packages() -> None:
    """The example needs torch and Pillow, which hotloop itself does not.

    Raises:
        HotloopError: one is missing.
    """
    missing = [name for name, module in (("torch", "torch"), ("pillow", "PIL")) if find_spec(module) is None]
    if missing:
        raise HotloopError(
            f"the example needs {' and '.join(missing)}, which this Python does not have",
            f"pip install {' '.join(missing)}",
            ExitCode.MACHINE,
        )


def _copy(folder: Path) -> None:
    source = _INSTALLED if _INSTALLED.exists() else _IN_TREE
    folder.mkdir(exist_ok=True)
    for file in source.glob("*.py"):
        if not file.name.endswith("_by_hand.py") and not (folder / file.name).exists():
            shutil.copy(file, folder / file.name)
