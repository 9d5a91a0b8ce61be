"""`hotloop lint` and `hotloop explain` as a user meets them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.cli.app import run
from hotloop.lint.check.registry import all_rules

SLOW = "import torch\n\ntorch.autograd.set_detect_anomaly(True)\n"
ONLY_INFO = "import torch\n\nmodel = torch.jit.script(model)\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "train.py").write_text(SLOW)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lint(*arguments: str) -> int:
    return run(["lint", *arguments])


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[tuple[str, int, str]]:
    lint("--format", "json", *arguments)
    document = json.loads(capsys.readouterr().out)
    return [(Path(f["path"]).name, f["line"], f["code"]) for f in document["findings"]]


def test_a_warning_is_exit_code_one(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lint("train.py") == 1
    out = capsys.readouterr().out
    assert "train.py:3: warning[anomaly-mode-on]" in out
    assert "debug_apis_off" in out


def test_information_is_exit_code_zero(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "train.py").write_text(ONLY_INFO)
    assert lint("train.py") == 0
    assert "info[torch-jit-use]" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [["missing.py"], ["--select", "no-such-rule", "."], ["--unsafe", "."], ["--format", "xml", "."], []],
)
def test_wrong_use_is_exit_code_two(
    project: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert lint(*arguments) == 2
    assert capsys.readouterr().err


def test_a_syntax_error_is_a_warning_and_the_rest_goes_on(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "broken.py").write_text("import torch\ndef f(:\n")
    (project / "unrelated.py").write_text("x = (1,\n")
    (project / "bytes.py").write_bytes(b"import torch\nx = '\xff'\n")
    assert found(capsys, ".") == [
        ("broken.py", 2, "syntax-error"),
        ("bytes.py", 1, "unreadable-file"),
        ("train.py", 3, "anomaly-mode-on"),
        ("unrelated.py", 1, "syntax-error"),
    ]


def test_comments_suppress(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = SLOW.strip()
    for comment, remains in [
        ("# hotloop: ignore", False),
        ("# hotloop: ignore[anomaly-mode-on]", False),
        ("# hotloop: ignore[tf32-off, anomaly-mode-on]", False),
        ("# hotloop: ignore[tf32-off]", True),
    ]:
        (project / "train.py").write_text(f"{line}  {comment}\n")
        assert bool(found(capsys, "train.py")) == remains, comment


def test_a_comment_on_the_first_line_of_a_statement_covers_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "train.py").write_text(
        "import torch\n"
        "f(  # hotloop: ignore[anomaly-mode-on]\n"
        "    torch.autograd.set_detect_anomaly(True)\n"
        ")\n"
    )
    assert found(capsys, "train.py") == []


def test_configuration_selects_ignores_and_excludes(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "tests").mkdir()
    (project / "third_party").mkdir()
    for place in ("tests/a.py", "third_party/b.py"):
        (project / place).write_text(SLOW + ONLY_INFO)
    (project / "pyproject.toml").write_text(
        '[tool.hotloop.lint]\nselect = ["host", "torch-jit-use"]\nexclude = ["third_party"]\n'
        'per-file-ignores = { "tests/*" = ["anomaly-mode-on"] }\n'
    )
    assert found(capsys, ".") == [("a.py", 6, "torch-jit-use"), ("train.py", 3, "anomaly-mode-on")]
    assert found(capsys, "--ignore", "compute", ".") == [("train.py", 3, "anomaly-mode-on")]
    assert found(capsys, "--select", "compute", ".") == [("a.py", 6, "torch-jit-use")]


@pytest.mark.parametrize(
    "table",
    ['selct = ["host"]', 'select = "host"', 'ignore = ["no-such"]', "per-file-ignores = 3", "select = ["],
)
def test_a_wrong_configuration_is_said(project: Path, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").write_text(f"[tool.hotloop.lint]\n{table}\n")
    assert lint(".") == 2
    assert "pyproject.toml" in capsys.readouterr().err or "no-such" in table


def test_fix_writes_safe_edits_and_reports_what_is_left(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lint("--fix", "train.py") == 0
    assert (project / "train.py").read_text() == SLOW.replace("True", "False")
    assert "1 edit written" in capsys.readouterr().err


def test_what_can_be_fixed_is_counted_without_fixing_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    biased = "layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))\n"
    (project / "other.py").write_text("from torch import nn\n\n" + biased)
    lint("train.py")
    assert "1 can be fixed with --fix.\n" in capsys.readouterr().out
    lint("train.py", "other.py")
    assert "1 can be fixed with --fix, 1 more with --fix --unsafe.\n" in capsys.readouterr().out
    lint("--fix", "train.py", "other.py")
    assert "1 can be fixed with --fix --unsafe.\n" in capsys.readouterr().out


def test_diff_is_what_git_takes_and_nothing_is_written(
    project: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    lint("--diff", "train.py")
    shown = capsysbinary.readouterr()
    assert (project / "train.py").read_text() == SLOW
    (project / "change.diff").write_bytes(shown.out)
    subprocess.run(["git", "apply", "change.diff"], cwd=project, check=True)
    assert (project / "train.py").read_text() == SLOW.replace("True", "False")
    assert b"1 edit to write" in shown.err


def test_a_diff_of_nothing_says_so(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "clean.py").write_text("x = 1\n")
    assert lint("--diff", "clean.py") == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "Nothing to write: there are no findings.\n")
    biased = "layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))\n"
    (project / "other.py").write_text("from torch import nn\n\n" + biased)
    lint("--diff", "other.py")
    told = capsys.readouterr()
    assert told.out == ""
    assert "Nothing to write that computes the same numbers; --unsafe has 1 edit more.\n" in told.err


def test_standard_input_is_fixed_to_standard_output() -> None:
    command = [sys.executable, "-m", "hotloop", "lint", "--fix", "-"]
    done = subprocess.run(command, input=SLOW, capture_output=True, text=True, check=False)
    assert done.stdout == SLOW.replace("True", "False")
    assert done.returncode == 0
    command.remove("--fix")
    done = subprocess.run(command, input=SLOW, capture_output=True, text=True, check=False)
    assert "<stdin>:3" in done.stdout
    assert "1 can be fixed with --fix." in done.stdout
    assert done.returncode == 1


def test_without_fix_nothing_is_written(project: Path) -> None:
    lint("train.py")
    assert (project / "train.py").read_text() == SLOW


def test_github_annotations(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lint("--format", "github", "train.py") == 1
    out = capsys.readouterr().out
    assert out.startswith("::warning file=train.py,line=3,title=anomaly-mode-on%3A ")
    assert out.count("\n") == 1


def test_many_files_in_parallel_give_the_same_in_the_same_order(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filler = f"# {12_000 * chr(120)}\n"  # enough bytes for a pool
    for number in range(20):
        (project / f"part{number:02}.py").write_text(SLOW + filler)
    assert found(capsys, ".") == sorted(
        [(f"part{n:02}.py", 3, "anomaly-mode-on") for n in range(20)] + [("train.py", 3, "anomaly-mode-on")]
    )


def test_lint_never_imports_torch_nor_the_source(project: Path) -> None:
    (project / "train.py").write_text(SLOW + "raise SystemExit('imported')\n")
    script = (
        "import sys; from hotloop.cli.app import run; code = run(['lint', 'train.py']);"
        "sys.exit(9 if 'torch' in sys.modules or 'train' in sys.modules else code)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, cwd=project, capture_output=True)
    assert done.returncode == 1


def test_explain_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "sync-in-step"]) == 0
    assert "## Why it is slow" in capsys.readouterr().out


def test_explain_lists_all_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 0
    assert {rule.code for rule in all_rules()} <= set(capsys.readouterr().out.split())


def test_explain_suggests_a_near_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "sync-in-stp"]) == 2
    assert "sync-in-step" in capsys.readouterr().err


def test_explain_knows_optimizations_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "loader_workers"]) == 0
    assert capsys.readouterr().out.startswith("# loader_workers, an optimization\n")
