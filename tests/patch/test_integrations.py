"""Frameworks keep their own knobs: the keyword of their class, or the word on the command line, changes."""

from __future__ import annotations

from typing import Any

import pytest

from hotloop.integrations.own_knobs import turn_own_knob
from hotloop.patch.command_line import with_options
from hotloop.source.draft import Editor
from hotloop.source.outcome import AlreadySo, Edited, Refused

CASES: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "autocast_bf16",
        {},
        "import lightning as L\ntrainer = L.Trainer(max_epochs=3)\n",
        'import lightning as L\ntrainer = L.Trainer(max_epochs=3, precision="bf16-mixed")\n',
    ),
    (
        "debug_apis_off",
        {},
        "from pytorch_lightning import Trainer\nTrainer(detect_anomaly=True).fit(model)\n",
        "from pytorch_lightning import Trainer\nTrainer(detect_anomaly=False).fit(model)\n",
    ),
    (
        "autocast_bf16",
        {},
        "from lightning.fabric import Fabric\nfabric = Fabric(precision='32-true')\n",
        'from lightning.fabric import Fabric\nfabric = Fabric(precision="bf16-mixed")\n',
    ),
    (
        "autocast_fp16",
        {},
        "from lightning import Trainer\ntrainer = Trainer(max_epochs=1)\n",
        'from lightning import Trainer\ntrainer = Trainer(max_epochs=1, precision="16-mixed")\n',
    ),
    (
        "autocast_fp16",
        {},
        "from accelerate import Accelerator\naccelerator = Accelerator(mixed_precision='no')\n",
        'from accelerate import Accelerator\naccelerator = Accelerator(mixed_precision="fp16")\n',
    ),
    (
        "loader_workers",
        {"num_workers": 2, "persistent_workers": True},
        "from transformers import TrainingArguments\nargs = TrainingArguments(\n    output_dir='x',\n)\n",
        "from transformers import TrainingArguments\nargs = TrainingArguments(\n    output_dir='x',\n"
        "    dataloader_num_workers=2,\n    dataloader_persistent_workers=True,\n)\n",
    ),
    (
        "compile",
        {"mode": "max-autotune"},
        "import transformers\nargs = transformers.TrainingArguments('x')\n",
        "import transformers\nargs = transformers.TrainingArguments('x', torch_compile=True, "
        'torch_compile_mode="max-autotune")\n',
    ),
    (
        "fused_optimizer",
        {},
        "from transformers import TrainingArguments\nargs = TrainingArguments('x', **settings)\n",
        "from transformers import TrainingArguments\nargs = TrainingArguments('x', "
        '**{**settings, "optim": "adamw_torch_fused"})\n',
    ),
    (
        "autocast_bf16",
        {},
        "from accelerate import Accelerator\naccelerator = Accelerator()\n",
        'from accelerate import Accelerator\naccelerator = Accelerator(mixed_precision="bf16")\n',
    ),
    (
        "autocast_bf16",
        {},
        "import argparse\nfrom accelerate import Accelerator\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--mixed_precision', default='no')\nargs = parser.parse_args()\n"
        "accelerator = Accelerator(mixed_precision=args.mixed_precision)\n",
        "import argparse\nfrom accelerate import Accelerator\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--mixed_precision', default=\"bf16\")\nargs = parser.parse_args()\n"
        "accelerator = Accelerator(mixed_precision=args.mixed_precision)\n",
    ),
]


def editor(text: str) -> Editor:
    return Editor({"train.py": text.encode()}, [])


@pytest.mark.parametrize(("name", "params", "before", "after"), CASES)
def test_the_framework_s_own_keyword_changes(
    name: str, params: dict[str, Any], before: str, after: str
) -> None:
    source = editor(before)
    assert isinstance(turn_own_knob(source, name, params, {}), Edited)
    assert source.content("train.py").decode() == after
    assert isinstance(turn_own_knob(source, name, params, {}), AlreadySo)
    assert source.content("train.py").decode() == after


def test_arguments_from_the_command_line_are_words_of_it() -> None:
    text = "from transformers import HfArgumentParser\nparser = HfArgumentParser(Args)\n"
    outcome = turn_own_knob(editor(text), "loader_workers", {"num_workers": 2}, {})
    assert isinstance(outcome, Edited)
    assert outcome.options == ("--dataloader_num_workers", "2")
    command = with_options(["python", "run_glue.py", "--seed=1"], outcome.options, only_given=False)
    assert command == ("python", "run_glue.py", "--seed=1", "--dataloader_num_workers", "2")


def test_a_default_in_the_source_changes_the_command_line_only_where_that_gives_the_option() -> None:
    assert with_options(["train.py", "--workers", "0"], ("--workers", "2"), only_given=True)[-1] == "2"
    assert with_options(["train.py", "--workers=0"], ("--workers", "2"), only_given=True) == (
        "train.py",
        "--workers=2",
    )
    assert with_options(["train.py"], ("--workers", "2"), only_given=True) == ("train.py",)


def test_two_trainers_are_refused_with_what_to_write() -> None:
    text = "from lightning import Trainer\none = Trainer()\ntwo = Trainer()\n"
    outcome = turn_own_knob(editor(text), "autocast_bf16", {}, {})
    assert isinstance(outcome, Refused)
    assert "train.py:2, train.py:3" in outcome.reason
    assert outcome.code == 'precision="bf16-mixed"'


def test_a_program_without_a_framework_has_no_own_knob() -> None:
    assert turn_own_knob(editor("import torch\n"), "autocast_bf16", {}, {}) is None
