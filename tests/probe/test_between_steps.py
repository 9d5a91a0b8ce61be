"""What is recorded beside the phases (imports, logs, checkpoints), and that the program sees nothing of it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from hotloop.observe.decode.spans import Timeline, timelines
from hotloop.probe.record.events import Kind

from .conftest import RunProgram

_TRAIN = """
import torch
from torch import nn
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train(num=3):
    for _ in range(num):
        optimizer.zero_grad()
        model(torch.ones(3, 4)).sum().backward()
        optimizer.step()
"""


def _recorded(tmp_path: Path) -> Timeline:
    (timeline,) = timelines(tmp_path / "probe", {}).values()
    return timeline


def _kinds(tmp_path: Path) -> Counter[Kind]:
    return Counter(span.kind for span in _recorded(tmp_path).spans)


@pytest.mark.slow
def test_lines_and_log_records_are_logging(run_probed: RunProgram, tmp_path: Path) -> None:
    done = run_probed(
        f"{_TRAIN}\nimport logging\nlogging.basicConfig(filename='log.txt', level='INFO')\n"
        "from time import monotonic\ntrain()\nbegin_s = monotonic()\n"
        "print('one')\nlogging.info('two')\nprint('three', flush=True)\nprint(begin_s, monotonic())\n"
    )
    assert done.stdout.split()[:2] == ["one", "three"]
    begin_s, end_s = map(float, done.stdout.split()[2:])
    assert (tmp_path / "log.txt").read_text() == "INFO:root:two\n"
    # A line is two writes, the text and its end; one of them is flushed.
    logs = [one for one in _recorded(tmp_path).spans if one.kind is Kind.LOG]
    assert len([one for one in logs if begin_s < one.end_s < end_s]) == 2 + 1 + 3


@pytest.mark.slow
def test_the_streams_are_their_own_at_exit_and_after_a_fork(run_probed: RunProgram, tmp_path: Path) -> None:
    done = run_probed(
        f"import os, sys\n{_TRAIN}\ntrain()\n"
        "if os.fork() == 0:\n    print('child'); sys.stdout.flush(); os._exit(0)\n"
        "os.wait()\nprint(type(sys.stdout).__name__, sys.stdout is sys.__stdout__)\n"
    )
    assert done.stdout.split() == ["child", "TextIOWrapper", "True"], done.stderr
    assert done.stderr == ""


@pytest.mark.slow
def test_a_stream_of_the_programs_own_works(run_probed: RunProgram) -> None:
    done = run_probed(
        f"import sys, torch\n"
        "class Tee:\n"
        "    def __init__(self, out): self.out = out\n"
        "    def write(self, text): return self.out.write(text.upper())\n"
        "    def flush(self): self.out.flush()\n"
        f"sys.stdout = Tee(sys.stdout)\n{_TRAIN}\ntrain()\nprint('shouted')\n"
    )
    assert done.stdout == "SHOUTED\n"


@pytest.mark.slow
def test_an_import_after_torch_is_recorded_once_whatever_it_imports(
    run_probed: RunProgram, tmp_path: Path
) -> None:
    (tmp_path / "outer.py").write_text("import inner, time\ntime.sleep(0.01)\n")
    (tmp_path / "inner.py").write_text("VALUE = 3\n")
    done = run_probed(
        f"{_TRAIN}\nimport sys\nfrom time import monotonic\nbegin_s = monotonic()\n"
        "import outer\nimport inner\nend_s = monotonic()\ntrain()\n"
        "print('exec_module' in vars(sys.modules['outer'].__spec__.loader), inner.VALUE, begin_s, end_s)"
    )
    assert done.stdout.split()[:2] == ["False", "3"], done.stderr
    begin_s, end_s = map(float, done.stdout.split()[2:])
    spans = _recorded(tmp_path).spans
    imports = [one for one in spans if one.kind is Kind.IMPORT and begin_s < one.end_s < end_s]
    assert len(imports) == 1
    assert imports[0].duration_s >= 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "shown"),
    [
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
        ("import warnings\nwarnings.warn('old', DeprecationWarning, stacklevel=2)\n", "program.py:"),
    ],
)
def test_a_module_that_fails_or_warns_shows_none_of_our_frames(
    run_probed: RunProgram, tmp_path: Path, module: str, shown: str
) -> None:
    (tmp_path / "awkward.py").write_text(module)
    done = run_probed("import torch, warnings\nwarnings.simplefilter('always')\nimport awkward\n")
    assert shown in done.stderr
    assert "hotloop" not in done.stderr
    assert "_bootstrap" not in done.stderr


@pytest.mark.slow
def test_a_library_is_patched_when_it_is_imported(run_probed: RunProgram, tmp_path: Path) -> None:
    folder = tmp_path / "safetensors"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "torch.py").write_text(
        "def save_file(tensors, name, metadata=None):\n    return len(tensors)\n"
    )
    done = run_probed(
        f"{_TRAIN}\nfrom safetensors.torch import save_file\nimport inspect\ntrain()\n"
        "print(save_file({'a': 1}, 'x'), *inspect.signature(save_file).parameters)\n"
    )
    assert done.stdout.split() == ["1", "tensors", "name", "metadata"], done.stderr
    assert _kinds(tmp_path)[Kind.SAVE] == 1


@pytest.mark.slow
def test_workers_that_are_not_kept_end_within_the_epoch(run_probed: RunProgram, tmp_path: Path) -> None:
    done = run_probed(
        f"{_TRAIN}\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "for _ in range(2):\n"
        "    for (x,) in DataLoader(TensorDataset(torch.ones(4, 4)), num_workers=1):\n        train(1)\n"
    )
    assert done.returncode == 0, done.stderr
    assert _kinds(tmp_path)[Kind.WORKERS_END] >= 2


@pytest.mark.slow
def test_compilation_is_recorded(run_probed: RunProgram, tmp_path: Path) -> None:
    done = run_probed(f"{_TRAIN}\nmodel = torch.compile(model, backend='eager')\ntrain()\nprint('done')\n")
    assert done.stdout == "done\n", done.stderr
    assert _kinds(tmp_path)[Kind.COMPILE] >= 1


@pytest.mark.slow
def test_the_end_of_the_interpreter_is_recorded(run_probed: RunProgram, tmp_path: Path) -> None:
    assert run_probed(f"{_TRAIN}\ntrain()\n").returncode == 0
    timeline = _recorded(tmp_path)
    assert timeline.python_s is not None
    assert timeline.torch_s is not None
    assert timeline.exit_s is not None
    assert timeline.python_s < timeline.torch_s < timeline.exit_s


@pytest.mark.slow
def test_a_helper_that_only_logs_leaves_no_records(run_probed: RunProgram, tmp_path: Path) -> None:
    done = run_probed("import torch\nfor _ in range(20000):\n    print('x')\n")
    assert done.returncode == 0
    assert timelines(tmp_path / "probe", {}) == {}


@pytest.mark.slow
def test_the_collectors_passes_are_told_by_itself(run_probed: RunProgram, tmp_path: Path) -> None:
    run_probed(
        f"import gc\n{_TRAIN}\ntrain(2)\nfor _ in range(3):\n    gc.collect()\n    gc.collect(0)\ntrain(2)\n"
    )
    recorded = _recorded(tmp_path)
    between = [span.end_s for span in recorded.spans if span.kind is Kind.OPTIMIZER][1:3]
    inside = [one for one in recorded.collections if between[0] < one.begin_s < one.end_s < between[1]]
    assert len(inside) == 3, "those over young objects alone are not kept"


@pytest.mark.slow
@pytest.mark.parametrize(("guard", "unasked"), [("torch.no_grad()", 0), ("torch.enable_grad()", 4)])
def test_forwards_of_an_evaluation_with_a_graph(
    run_probed: RunProgram, tmp_path: Path, guard: str, unasked: int
) -> None:
    run_probed(
        f"{_TRAIN}\ntrain(12)\nmodel.eval()\nwith {guard}:\n    for _ in range(4):\n        model(torch.ones(3, 4))\n"
        "model.train()\ntrain(2)\n"
    )
    scored = [span for span in _recorded(tmp_path).spans if span.kind is Kind.EVALUATE]
    assert len(scored) == 4
    assert sum(span.unasked for span in scored) == unasked
    assert _kinds(tmp_path)[Kind.FORWARD] >= 12


@pytest.mark.slow
def test_a_model_left_in_evaluation_mode_trains_all_the_same(run_probed: RunProgram, tmp_path: Path) -> None:
    run_probed(f"{_TRAIN}\ntrain(12)\nmodel.eval()\ntrain(12)\n")
    kinds = _kinds(tmp_path)
    assert kinds[Kind.EVALUATE] == 0
    assert kinds[Kind.FORWARD] >= 23


@pytest.mark.slow
def test_a_profiler_of_the_programs_own_is_noticed(run_probed: RunProgram, tmp_path: Path) -> None:
    for begins, share in (("", 0.0), ("torch.autograd.profiler.profile().__enter__()", 1.0)):
        for path in (tmp_path / "probe").glob("process-*"):
            path.unlink()
        run_probed(f"{_TRAIN}\n{begins}\ntrain(5)\n")
        (facts,) = (tmp_path / "probe").glob("process-*.json")
        assert json.loads(facts.read_text())["profiled"] == share
