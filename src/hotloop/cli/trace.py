"""`hotloop trace`: read PyTorch traces, without torch and without a device."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hotloop.cli.files import write_json
from hotloop.cli.options import NewScreen, ResultFile, output_options
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.outcome import of_all
from hotloop.model.quantities import counted
from hotloop.report.terminal.layout import next_steps

if TYPE_CHECKING:
    from hotloop.trace.read.trace import Trace

_SETTINGS = {"help_option_names": ["-h", "--help"]}
_READERS = {
    "perfetto": "ui.perfetto.dev opens it",
    "speedscope": "speedscope.app opens it",
    "parquet": "pandas and DuckDB read its files",
}
_PATHS = click.Path(path_type=Path)


@click.group("trace", context_settings=_SETTINGS)
def command() -> None:
    """Say what a device was waiting for, from a PyTorch trace.

    Reads torch.profiler (Kineto) JSON, plain, gzip, zip or tar, of one rank or many, CUDA, ROCm or XPU, and
    Nsight Systems SQLite exports. Needs neither torch nor a device.
    """


@command.command("analyze", context_settings=_SETTINGS, epilog="Example: hotloop trace analyze trace.json.gz")
@click.argument("paths", nargs=-1, required=True, type=_PATHS, metavar="FILES|DIR...")
@click.option("--json", "json_file", type=ResultFile(), help="Write all facts.")
@click.option(
    "--budget",
    "budgets",
    multiple=True,
    metavar="EXPR",
    help='A gate like "idle<10%"; exit code 1 if broken, 5 if not in the trace.',
)
@click.option("--top", default=10, show_default=True, type=click.IntRange(min=1), help="Rows per table.")
@click.option(
    "--window", metavar="NAME", help="Annotation that bounds the critical path; default: the whole trace."
)
@click.option("--jobs", type=click.IntRange(min=1), help="Maximum number of processes, for several files.")
@output_options
def analyze_command(
    paths: tuple[Path, ...],
    *,
    json_file: Path | None,
    budgets: tuple[str, ...],
    top: int,
    window: str | None,
    jobs: int | None,
    new_screen: NewScreen,
) -> int:
    """Health, device timeline, idle causes, kernels, operators, findings, ranks."""
    from hotloop.report.sections.trace.report import trace_document
    from hotloop.report.terminal import walk
    from hotloop.trace.compare.budget import check_gate, parse_gate
    from hotloop.trace.facts.health import failure
    from hotloop.trace.ranks.study import analyze
    from hotloop.trace.read.source import find_files

    gates = [parse_gate(text) for text in budgets]
    screen = new_screen()
    report = analyze(
        *paths,
        jobs=jobs,
        window=window,
        limit=None if json_file else max(top, 50),
        progress=lambda name: screen.progress(f"analyzed {name}"),
    )
    files = find_files(list(paths))
    failures = [failure(analysis.health) for analysis in report.traces]
    if all(failures):
        raise _refused(files, failures)
    if json_file is not None:
        write_json(json_file, report)
    verdicts = [check_gate(gate, analysis) for gate in gates for analysis in report.traces]
    screen.show(walk.render(trace_document(report, verdicts, top), verbose=True))
    found = [finding.code for analysis in report.traces for finding in analysis.findings]
    explain = [("the manual of a finding", ["hotloop", "explain", found[0]])] if found else []
    diff = ["hotloop", "trace", "diff", str(files[0]), "AFTER"]
    screen.show(next_steps([*explain, ("what a change of the program did", diff)]))
    return of_all(verdict.outcome for verdict in verdicts).exit_code


def _refused(files: Sequence[Path], failures: Sequence[str | None]) -> HotloopError:
    """What is said where none of the files gives a figure, and what to type instead."""
    why = failures[0] if failures else "This is an archive without a file that ends in .json."
    more = f" None of the {len(files)} files is a trace." if len(files) > 1 else ""
    return HotloopError(f"{files[0]}: {why}{more}", _instead(files[0]))


def _instead(path: Path) -> str:
    """What to type where a file is no trace."""
    if path.suffix == ".py":
        return f"it is a program, and this measures it: hotloop observe {shlex.quote(str(path))}"
    return "name a file that torch.profiler's export_chrome_trace wrote, or an Nsight Systems SQLite export"


@command.command(
    "diff", context_settings=_SETTINGS, epilog="Example: hotloop trace diff before.json.gz after.json.gz"
)
@click.argument("before", type=_PATHS, metavar="A")
@click.argument("after", type=_PATHS, metavar="B")
@click.option("--json", "json_file", type=ResultFile(), help="Write all changes.")
@click.option("--top", default=15, show_default=True, type=click.IntRange(min=1), help="Rows per table.")
@output_options
def diff_command(
    before: Path, after: Path, *, json_file: Path | None, top: int, new_screen: NewScreen
) -> int:
    """What changed from trace A to trace B, by operator and module, matched by call tree."""
    from hotloop.report.sections.trace.diff import differences
    from hotloop.report.terminal import walk
    from hotloop.trace.compare.diff import diff_traces

    diff = diff_traces(_single(before), _single(after))
    if json_file is not None:
        write_json(json_file, diff)
    screen = new_screen()
    screen.show(walk.render_blocks(list(differences(diff, top))))
    again = ["hotloop", "trace", "analyze", diff.after]
    now = "what the device waits for now" if diff.device_after else "what takes the time now"
    screen.show(next_steps([(now, again)]))
    return ExitCode.DONE


@command.command(
    "convert",
    context_settings=_SETTINGS,
    epilog="Example: hotloop trace convert trace.json.gz trace.speedscope.json",
)
@click.argument("source", type=_PATHS, metavar="FILE")
@click.argument("target", type=_PATHS, metavar="TARGET")
@click.option(
    "--to",
    "form",
    type=click.Choice(["perfetto", "speedscope", "parquet"]),
    help="Default: by TARGET's name.",
)
@click.option(
    "--redact", "private", is_flag=True, help="Remove user names, host names, paths and environment."
)
@output_options
def convert_command(
    source: Path, target: Path, *, form: str | None, private: bool, new_screen: NewScreen
) -> int:
    """Write a trace for Perfetto (.json, .json.gz), speedscope (.speedscope.json) or as Parquet (a folder)."""
    from hotloop.trace import convert

    writers = {
        "perfetto": convert.write_chrome,
        "speedscope": convert.write_speedscope,
        "parquet": convert.write_parquet,
    }
    chosen = form or _form_of(target)
    trace = _single(source)
    if private:
        trace = convert.redact(trace)
    num = writers[chosen](trace, target)
    screen = new_screen()
    screen.note(f"hotloop: wrote {target} ({counted(num, 'part')}); {_READERS[chosen]}")
    if not str(target).startswith(("/dev/", "/proc/")):  # there a result may be read alone
        screen.show(
            next_steps([("what the device waited for", ["hotloop", "trace", "analyze", str(source)])])
        )
    return ExitCode.DONE


def _form_of(target: Path) -> str:
    if target.name.endswith("speedscope.json"):
        return "speedscope"
    if target.name.endswith((".json", ".json.gz")):
        return "perfetto"
    if target.suffix in {"", ".parquet"} or target.is_dir():
        return "parquet"
    raise HotloopError(
        f"{target} does not say what to convert to",
        "name it .json or .json.gz (Perfetto), .speedscope.json, or a folder (Parquet), or say it with --to",
    )


def _single(path: Path) -> Trace:
    from hotloop.trace.ranks.study import traces_in
    from hotloop.trace.read.source import find_files

    files = find_files([path])
    trace = next(traces_in(files[0]))
    if trace.loss.unreadable:
        raise HotloopError(
            f"{path} is not a readable trace: {trace.loss.unreadable}",
            _instead(path),
        )
    return trace
