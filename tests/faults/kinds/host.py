"""Faults of the user's own code between and inside the phases."""

from __future__ import annotations

import ast

from tests.faults import forms
from tests.faults.case import Base, Fault
from tests.faults.forms import Form, inline
from tests.faults.inject import Tree, after_imports

RESIDUAL = frozenset({"RESIDUAL_HEAVY"})
_OUTSIDE = frozenset({"loop-outside-phases", "hot-line-outside-phases"})
_BEFORE = frozenset({"hot-line-before-backward", "python-loop-over-tensor", "hot-line-outside-phases"})
"""The last one: Lightning computes the loss in what the optimizer calls."""


def _after(
    name: str, code: str, form: Form, expected: frozenset[str] = frozenset(), imports: str = ""
) -> Fault:
    def inject(tree: Tree, base: Base) -> None:
        forms.after_step(tree, base, code, form)
        if imports:
            after_imports(tree, imports)

    return Fault(f"{name}_{form.__name__}", _OUTSIDE | expected, inject, categories=RESIDUAL)


def logs_values(values: int, form: Form = inline) -> Fault:
    """So many values of each parameter are written as JSON in each step."""
    code = (
        "with open('log.json', 'a') as file:\n    json.dump({name: value.detach().flatten()"
        f"[:{values}].tolist() for name, value in MODEL.named_parameters()}}, file)"
    )
    return _after(
        f"logs_{values}_values", code, form, frozenset({"sync-in-step", "logging-in-step"}), "import json"
    )


def logs_lines(lines: int, form: Form = inline) -> Fault:
    """So many lines of a log are written in each step, through the logging module."""
    code = f"for number in range({lines}):\n    logging.getLogger('train').warning('value %d of the step', number)"
    return _after(
        f"logs_{lines}_lines",
        code,
        form,
        frozenset({"logging-in-step"}),
        "import logging\nlogging.basicConfig(filename='train.log')",
    )


def prints(times: int, form: Form = inline) -> Fault:
    """Parameters are printed so often in each step."""
    code = f"for _ in range({times}):\n    print([value for value in MODEL.parameters()][0])"
    return _after(f"prints_{times}", code, form, frozenset({"sync-in-step", "logging-in-step"}))


def norms(times: int, form: Form = inline) -> Fault:
    """The norm of each parameter is taken so often, one by one, in each step."""
    code = f"norms = [float(p.norm()) for p in MODEL.parameters() for _ in range({times})]"
    return _after(f"norms_{times}_times", code, form, frozenset({"sync-in-step"}))


def collects_garbage(form: Form = inline) -> Fault:
    """The garbage collector runs in full in each step."""
    return _after("collects_garbage", "gc.collect()", form, imports="import gc")


def averages(copies: int, form: Form = inline) -> Fault:
    """The whole model is copied so often in each step, as some do to average it."""
    code = f"for _ in range({copies}):\n    kept = {{k: v.detach().clone() for k, v in MODEL.state_dict().items()}}"
    return _after(f"copies_state_{copies}", code, form, frozenset({"tensor-copies"}))


def counts_in_python(turns: int, form: Form = inline) -> Fault:
    """A metric is computed in pure Python."""
    code = f"total = 0\nfor number in range({turns}):\n    total += number * number % 7"
    return _after(f"python_metric_{turns}", code, form)


def waits(wait_ms: float, form: Form = inline) -> Fault:
    """The loop waits for something else in each step."""
    return _after(f"waits_{wait_ms:g}ms", f"time.sleep({wait_ms / 1e3})", form, imports="import time")


def anomaly_mode(how: str = "module") -> Fault:
    """Anomaly detection is left on: for the module, as an object that is kept, or around each backward pass."""
    switch = {
        "module": "torch.autograd.set_detect_anomaly(True)",
        "keyword": "torch.autograd.set_detect_anomaly(mode=True, check_nan=False)",
        "kept": "DEBUG = torch.autograd.detect_anomaly()\nDEBUG.__enter__()",
    }

    def inject(tree: Tree, base: Base) -> None:
        if how == "around":
            for body, index in base.before_backward(tree):
                backward = body[index]
                body[index : index + 1] = _with("torch.autograd.detect_anomaly()", backward)
        else:
            after_imports(tree, f"import torch\n{switch[how]}")

    return Fault(f"anomaly_mode_{how}", frozenset({"anomaly-mode-on"}), inject)


def threads(num: int) -> Fault:
    """So many computing threads."""
    return Fault(
        f"threads_{num}",
        frozenset({"oversubscribed-threads"}),
        lambda tree, base: after_imports(tree, f"import torch\ntorch.set_num_threads({num})"),
    )


def _before(name: str, code: str, form: Form, expected: frozenset[str], imports: str = "") -> Fault:
    def inject(tree: Tree, base: Base) -> None:
        forms.before_backward(tree, base, code, form)
        if imports:
            after_imports(tree, imports)

    return Fault(f"{name}_{form.__name__}", _BEFORE | expected, inject, categories=RESIDUAL)


def reads_each_value(values: int, times: int, form: Form = inline) -> Fault:
    """So many values of the output are read one by one, so often, before the backward pass."""
    code = (
        f"values = []\nfor _ in range({times}):\n"
        f"    values.extend(value.item() for value in OUTPUT.detach().flatten()[:{values}])"
    )
    return _before(f"reads_{values}_values_{times}_times", code, form, frozenset({"sync-in-step"}))


def row_by_row(rows: int, times: int, form: Form = inline) -> Fault:
    """A part of the loss is computed row by row, so often."""
    code = (
        f"parts = []\nfor _ in range({times}):\n    for row in OUTPUT.flatten()[:{rows * 4}].view({rows}, 4):\n"
        "        parts.append((row - row.mean()).square().mean())\npenalty = sum(parts)"
    )
    return _before(f"{rows}_rows_{times}_times", code, form, frozenset())


def branches(times: int, form: Form = inline) -> Fault:
    """So many branches on single values of the output."""
    code = f"for index in range({times}):\n    if OUTPUT.detach().flatten()[index % 4] > 1e9:\n        break"
    return _before(f"branches_{times}_times", code, form, frozenset({"sync-in-step"}))


def tensor_from_list(values: int, form: Form = inline) -> Fault:
    """A tensor is made of a Python list in each step."""
    code = f"weights = torch.tensor([float(index) for index in range({values})])"
    return _before(
        f"tensor_from_{values}_values",
        code,
        form,
        frozenset({"tensor-creation-in-step"}),
        "import torch",
    )


def _with(context: str, statement: ast.stmt) -> list[ast.stmt]:
    block = ast.parse(f"with {context}:\n    pass").body
    assert isinstance(block[0], ast.With)
    block[0].body = [statement]
    return block
