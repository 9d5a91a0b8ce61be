"""Sigmoids that an output is made of are given fp32 in the source, or the patch says why not."""

from __future__ import annotations

import pytest

from hotloop.model.sites import Argument, Place, Site, SiteKind, Sites
from hotloop.optimize.reduced_precision.sigmoid_rewrite import CLASS, keep_sigmoids_in_fp32
from hotloop.source.draft import Editor
from hotloop.source.outcome import CannotEdit

CLASS_LINES = f'''
class {CLASS}(nn.Sigmoid):
    """A probability above 0.998 is 1 in bfloat16."""

    def forward(self, x):
        return x.float().sigmoid()
'''
MODEL = "class Net(nn.Module):\n    def forward(self, x):\n        return {}\n"


def written(text: str, ends: bool | None = True) -> str:
    returns = Argument(rank=2, floating=True, ends_in_sigmoid=ends)
    site = Site(
        kind=SiteKind.FORWARD, slot=0, callee="Net", places=(Place(path="train.py", line=1),), returns=returns
    )
    editor = Editor({"train.py": text.encode()}, [])
    keep_sigmoids_in_fp32(editor, Sites(sites=(site,)))
    return editor.content("train.py").decode()


@pytest.mark.parametrize(
    ("head", "before", "after"),
    [
        ("import torch\n", "torch.sigmoid(self.a(x))", "torch.sigmoid(self.a(x).float())"),
        ("import torch\n", "torch.special.expit(x + 1)", "torch.special.expit((x + 1).float())"),
        ("import torch.nn.functional as F\n", "F.sigmoid(x)", "F.sigmoid(x.float())"),
        ("", "self.a(x).sigmoid()", "self.a(x).float().sigmoid()"),
        ("", "x.double().sigmoid()", "x.double().sigmoid()"),
        ("", "x.float().sigmoid()", "x.float().sigmoid()"),
    ],
)
def test_what_a_model_computes_is_cast(head: str, before: str, after: str) -> None:
    head += "from torch import nn\n"
    assert written(head + MODEL.format(before)) == head + MODEL.format(after)


@pytest.mark.parametrize(
    ("head", "rest"),
    [
        ("import os\nfrom torch import nn\n", "net = nn.Sequential(nn.Linear(2, 1), {}())\n"),
        ("import os\nos.environ['A'] = '1'\nimport torch\nfrom torch import nn\n", "net = {}()\n"),
        ("from torch import nn\n", "def judge(x):\n    return {}()(x)\n"),
    ],
    ids=["sequential", "behind the import that it needs", "called at once"],
)
def test_modules_become_a_class_that_casts(head: str, rest: str) -> None:
    after = written(head + rest.format("nn.Sigmoid"))
    assert after == head + CLASS_LINES + rest.format(CLASS)
    compile(after, "train.py", "exec")
    assert written(after) == after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (MODEL.format("self.body(x)"), "no class of the program"),
        ("import torch\ndef accuracy(x):\n    return torch.sigmoid(x) > 0.5\n", "no class of the program"),
        (MODEL.format("x.sigmoid_()"), "not edited"),
        ("import torch\n" + MODEL.format("torch.sigmoid(input=x)"), "not edited"),
        ("import torch\n" + MODEL.format("torch.sigmoid(*x)"), "not edited"),
        ("from torch import nn\nact = nn.Sigmoid\n" + MODEL.format("act()(x)"), "not edited"),
        ("from torch.nn import *\n" + MODEL.format("Sigmoid()(x)"), "not edited"),
        ("if True:\n    from torch import nn\nnet = nn.Sigmoid()\n", "does not import nn at its top"),
    ],
)
def test_what_cannot_be_edited_is_refused(text: str, reason: str) -> None:
    with pytest.raises(CannotEdit, match=reason):
        written(text)


def test_a_method_of_the_model_is_no_tensors() -> None:
    text = "from torch import nn\nimport torch\n" + MODEL.format("self.sigmoid() + torch.sigmoid(x)")
    assert written(text) == text.replace("torch.sigmoid(x)", "torch.sigmoid(x.float())")


@pytest.mark.parametrize("text", [MODEL.format("x.sigmoid()"), "import torch\ny = torch.sigmoid\n"])
def test_where_no_output_is_made_of_one_nothing_is_edited(text: str) -> None:
    assert written(text, ends=False) == text


def test_where_compiled_code_hides_it_what_there_is_is_edited() -> None:
    assert written(MODEL.format("x.sigmoid()"), ends=None) == MODEL.format("x.float().sigmoid()")
    assert written(MODEL.format("x.tanh()"), ends=None) == MODEL.format("x.tanh()")
