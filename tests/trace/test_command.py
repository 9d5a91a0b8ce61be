"""`hotloop trace` as users type it."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hotloop.cli.app import run
from tests.trace.example import example_trace


def _run(*args: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "hotloop", "trace", *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_analyze_fits_eighty_columns_and_says_what_matters(small_trace: Path, tmp_path: Path) -> None:
    done = _run("analyze", small_trace, "--json", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if str(tmp_path) not in line]  # a path is pasted whole
    assert max(map(len, lines)) <= 80
    for text in (
        "NVIDIA A100-SXM4-40GB, rank 3 of 8",
        "idle because of",
        "aten::mm",
        "sgemm_64x32",
        "sync-in-step",
    ):
        assert text in done.stdout
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["traces"][0]["device"]["busy_us"] == 32.0


def test_budgets_decide_the_exit_code(small_trace: Path) -> None:
    assert _run("analyze", small_trace, "--budget", "idle<50%").returncode == 0
    broken = _run("analyze", small_trace, "--budget", "idle<50%", "--budget", "idle<1%")
    assert broken.returncode == 1
    assert "broken idle<1%" in broken.stdout
    unknown = _run("analyze", small_trace, "--budget", "idle<50%", "--budget", "peak_memory<1GB")
    assert unknown.returncode == 5, "it is not in the trace"
    assert "peak_memory<1GB: not measured" in unknown.stdout
    assert _run("analyze", small_trace, "--budget", "idle=1").returncode == 2


@pytest.mark.parametrize(
    ("name", "instead"), [("notes.json", "export_chrome_trace"), ("train.py", "hotloop observe train.py")]
)
def test_what_is_no_trace_is_refused_before_anything_is_shown(
    name: str,
    instead: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("print('hello')")
    assert run(["trace", "analyze", name, "--json", "facts.json"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"hotloop: {name}: This is not a readable trace: ")
    assert instead in told.err.splitlines()[1]
    assert not Path("facts.json").exists()


def test_an_archive_without_traces_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        archive.writestr("notes.txt", "hello")
    assert run(["trace", "analyze", str(tmp_path)]) == 2
    assert "logs.zip: This is an archive without a file that ends in .json" in capsys.readouterr().err


def test_one_trace_among_other_files_is_shown(
    small_trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert run(["trace", "analyze", str(tmp_path / "notes.txt"), str(small_trace)]) == 0
    told = capsys.readouterr()
    assert "error: This is not a readable trace" in told.out
    assert "NVIDIA A100-SXM4-40GB, rank 3 of 8" in told.out


def test_ranks_in_a_folder_are_compared(tmp_path: Path) -> None:
    for rank, duration in ((0, 90), (1, 20), (2, 80)):
        trace = example_trace()
        trace["distributedInfo"]["rank"] = rank
        collective = {
            **trace["traceEvents"][5],
            "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)",
            "ts": 300 - duration,
        }
        trace["traceEvents"].append({**collective, "dur": duration})
        (tmp_path / f"worker{rank}.json").write_text(json.dumps(trace))
    done = _run("analyze", tmp_path, "--json", tmp_path / "report.out")
    assert done.returncode == 0, done.stderr
    ranks = json.loads((tmp_path / "report.out").read_text())["ranks"]
    assert ranks["stragglers"][0]["rank"] == 1
    assert ranks["stragglers"][0]["caused_us"] == 130.0
    assert "made others wait" in done.stdout


def test_diff_and_convert(small_trace: Path, tmp_path: Path) -> None:
    diff = _run("diff", small_trace, small_trace)
    assert diff.returncode == 0, diff.stderr
    assert "device busy" in diff.stdout
    assert _run("convert", small_trace, tmp_path / "a.json.gz", "--redact").returncode == 0
    assert _run("convert", small_trace, tmp_path / "a.speedscope.json").returncode == 0
    assert _run("convert", small_trace, tmp_path / "tables").returncode == 0
    unclear = _run("convert", small_trace, tmp_path / "x.txt")
    assert unclear.returncode == 2
    assert "does not say what to convert to" in unclear.stderr
    assert not (tmp_path / "x.txt").exists()
    assert (tmp_path / "tables" / "host.parquet").exists()
    assert _run("analyze", tmp_path / "a.json.gz").returncode == 0


def test_starts_without_torch(small_trace: Path) -> None:
    code = (
        "import sys; from hotloop.cli.app import run; "
        f"run(['trace', 'analyze', {str(small_trace)!r}, '--quiet']); sys.exit('torch' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=120).returncode
        == 0
    )


@pytest.mark.slow
def test_modules_beside_the_traces_are_not_imported_by_the_processes_that_read_them(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "x" * 600, "pid": 1, "tid": 1, "ts": 10.0 * at, "dur": 5.0}
        for at in range(1000)
    ]
    for rank in range(2):
        content = {"traceEvents": events, "distributedInfo": {"rank": rank, "world_size": 2}}
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(content))
    for name in ("pickle", "socket", "tempfile", "multiprocessing"):
        (tmp_path / f"{name}.py").write_text("open('was_here', 'w'); raise SystemExit(7)\n")
    done = subprocess.run(
        [
            Path(sys.executable).with_name("hotloop"),
            "trace",
            "analyze",
            "rank0.json",
            "rank1.json",
            "--quiet",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "was_here").exists()
