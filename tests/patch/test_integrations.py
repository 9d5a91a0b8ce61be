"""Frameworks keep their own knobs: the keyword of their class, or the word on the command line, changes."""

from __future__ import annotations

from typing import Any

import pytest

from hotloop.integrations.own_knobs import turn_own_knob
from hotloop.integrations.transformers import ADAMW
from hotloop.model.optimization import Numerics
from hotloop.model.option_value import OptionValue
from hotloop.model.safety import Safety
from hotloop.model.sites import Argument, Place, Site, SiteKind, Sites
from hotloop.model.tuning import Plan, PlanStep
from hotloop.patch.account import told as told_of
from hotloop.patch.rewrite_plan import Patch, rewrite_plan
from hotloop.source.draft import Editor
from hotloop.source.outcome import AlreadySo, CannotEdit, Edited, Refused

from ..report.results import FIT
from .test_properties import sites_of

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


CASES += [
    (
        "autocast_bf16",
        {},
        "from trl import SFTConfig\nargs = SFTConfig(output_dir='x')\n",
        "from trl import SFTConfig\nargs = SFTConfig(output_dir='x', bf16=True)\n",
    ),
    (
        "autocast_bf16",
        {},
        "import transformers\n@dataclass\nclass Args(transformers.TrainingArguments):\n    depth: int = 2\n"
        "args = Args('x')\n",
        "import transformers\n@dataclass\nclass Args(transformers.TrainingArguments):\n    depth: int = 2\n"
        "args = Args('x', bf16=True)\n",
    ),
]


def editor(text: str) -> Editor:
    return Editor({"train.py": text.encode()}, [])


def observed(optimizer: str = ADAMW, *, direct: bool = False, device: str = "cpu") -> Sites:
    """A run in which one optimizer was made, by the program itself or by a library."""
    place = Place(path="train.py", line=9)
    site = Site(kind=SiteKind.OPTIMIZER, slot=0, callee=optimizer, places=(place,), direct=direct)
    return Sites(sites=(site,), device=device)


@pytest.mark.parametrize(("name", "params", "before", "after"), CASES)
def test_the_framework_s_own_keyword_changes(
    name: str, params: dict[str, Any], before: str, after: str
) -> None:
    source, sites = editor(before), observed(device="cuda")
    assert isinstance(turn_own_knob(source, sites, name, params, {}), Edited)
    assert source.content("train.py").decode() == after
    assert isinstance(turn_own_knob(source, sites, name, params, {}), AlreadySo)
    assert source.content("train.py").decode() == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from transformers import TrainingArguments\nargs = TrainingArguments('x')\n",
            "from transformers import TrainingArguments\nimport torch\n"
            "args = TrainingArguments('x', bf16=True, use_cpu=not torch.cuda.is_available())\n",
        ),
        (
            "import torch as th\nfrom transformers import TrainingArguments\nargs = TrainingArguments(**kept)\n",
            "import torch as th\nfrom transformers import TrainingArguments\nargs = TrainingArguments("
            '**{**kept, "bf16": True, "use_cpu": not th.cuda.is_available()})\n',
        ),
        (
            "from transformers import TrainingArguments\nargs = TrainingArguments('x', use_cpu=no_gpu)\n",
            "from transformers import TrainingArguments\nargs = TrainingArguments('x', use_cpu=no_gpu, bf16=True)\n",
        ),
    ],
)
def test_the_trainer_takes_bf16_on_a_cpu_only_where_it_is_told_that_there_is_no_gpu(
    before: str, after: str
) -> None:
    source, sites = editor(before), observed(device="cpu")
    assert isinstance(turn_own_knob(source, sites, "autocast_bf16", {}, {}), Edited)
    assert source.content("train.py").decode() == after
    assert isinstance(turn_own_knob(source, sites, "autocast_bf16", {}, {}), AlreadySo)


def test_arguments_from_the_command_line_are_words_of_it() -> None:
    text = "from transformers import HfArgumentParser\nparser = HfArgumentParser(Args)\n"
    outcome = turn_own_knob(editor(text), observed(), "loader_workers", {"num_workers": 2}, {})
    assert isinstance(outcome, Edited)
    assert outcome.options == (OptionValue(("--dataloader_num_workers",), "2"),)
    command = outcome.options[0].in_command(["python", "run_glue.py", "--seed=1"], only_given=False)
    assert command == ("python", "run_glue.py", "--seed=1", "--dataloader_num_workers", "2")


def test_an_option_of_the_command_line_stays_one_beside_what_is_written() -> None:
    text = "import torch\nfrom transformers import HfArgumentParser\nparser = HfArgumentParser(Args)\n"
    text += "class Net(torch.nn.Module):\n    def forward(self, x):\n        return torch.sigmoid(x)\n"
    forward = Site(
        kind=SiteKind.FORWARD,
        slot=0,
        callee="Net",
        places=(Place(path="train.py", line=6),),
        returns=Argument(rank=2, floating=True, ends_in_sigmoid=True),
    )
    step = PlanStep(name="autocast_bf16", params={}, ratio=1.5, low=1.4, high=1.6)
    patch = rewrite_plan([step], Sites(sites=(forward,)), {"train.py": text.encode()})
    assert patch.after["train.py"].decode() == text.replace("torch.sigmoid(x)", "torch.sigmoid(x.float())")
    command = ("train.py", "--seed=1", "--bf16", "True", "--use_cpu", "True")
    assert patch.started_as(("train.py", "--seed=1")) == command


@pytest.mark.parametrize(
    ("before", "after", "given"),
    [
        ("--workers 0", "--workers 2", "0"),
        ("--workers=0", "--workers=2", "0"),
        ("-j 4 --epochs 3", "-j 2 --epochs 3", "4"),
        ("-j4", "-j2", "4"),
        ("-j 4 --workers 8", "-j 2 --workers 2", "8"),
        ("--epochs 3", "--epochs 3", None),
        ("--workers", "--workers", None),
    ],
)
def test_a_default_in_the_source_changes_the_command_line_only_where_that_gives_the_option(
    before: str, after: str, given: str | None
) -> None:
    option = OptionValue(("--workers", "-j"), "2")
    assert option.given(["train.py", *before.split()]) == given
    assert option.in_command(["train.py", *before.split()], only_given=True) == ("train.py", *after.split())


def test_an_option_is_known_by_all_its_names() -> None:
    text = (
        "from torch.utils.data import DataLoader\nparser.add_argument('-j', '--workers', type=int, default=0)\n"
        "args = parser.parse_args()\nloader = DataLoader([1], num_workers=args.workers)\n"
    )
    step = PlanStep(name="loader_workers", params={"num_workers": 2}, ratio=1, low=1, high=1)
    patch = rewrite_plan([step], sites_of(text), {"train.py": text.encode()})
    assert patch.changed == ("train.py",)
    assert patch.started_as(("train.py", "-j", "4")) == ("train.py", "-j", "2")


def test_which_of_two_trainers_is_meant_is_for_a_person_to_say() -> None:
    text = "from lightning import Trainer\none = Trainer()\ntwo = Trainer()\n"
    step = PlanStep(name="autocast_bf16", ratio=1.2, low=1.1, high=1.3, numerics=Numerics.TOLERANCE)
    patch = rewrite_plan([step], observed(), {"train.py": text.encode()}, Safety.UNSAFE)
    (shown,) = patch.outcomes
    assert patch.changed == ()
    assert b'+one = Trainer(precision="bf16-mixed")\n+two = Trainer(precision="bf16-mixed")' in shown.diff
    plan = Plan(steps=(step,), speedup=None, parity=None, fit=FIT)
    told = list(told_of(patch, plan, "hotloop.toml"))
    assert "autocast_bf16: only shown: which of these places is meant is for you to say" in told


def test_two_trainers_that_have_it_are_left_alone() -> None:
    text = "from lightning import Trainer\n" + 'one = Trainer(precision="bf16-mixed")\n' * 2
    assert isinstance(turn_own_knob(editor(text), observed(), "autocast_bf16", {}, {}), AlreadySo)


LAUNCHER = """\
compute_environment: LOCAL_MACHINE
distributed_type: 'NO'  # one process
dynamo_config:
  mixed_precision: fp8
mixed_precision: 'no'
"""
ACCELERATOR = "from accelerate import Accelerator\naccelerator = Accelerator()\n"
BF16 = PlanStep(name="autocast_bf16", ratio=1, low=1, high=1)


def launched(text: str = ACCELERATOR, launcher: str = LAUNCHER) -> Patch:
    files = {"train.py": text.encode(), "one_cpu.yaml": launcher.encode()}
    return rewrite_plan([BF16], observed(), files)


def test_the_file_of_accelerate_s_launcher_changes_where_it_decides() -> None:
    patch = launched()
    assert patch.changed == ("one_cpu.yaml",)
    assert patch.after["one_cpu.yaml"].decode() == LAUNCHER.replace("'no'", '"bf16"')
    assert patch.outcomes[0].outcome.notes == ('one_cpu.yaml:5: mixed_precision: "bf16"',)  # type: ignore[union-attr]
    command = ("accelerate", "launch", "--config_file", "one_cpu.yaml", "train.py")
    assert patch.started_as(command) == command
    overruled = (*command[:2], "--mixed_precision", "no", *command[2:])
    assert patch.started_as(overruled) == (*command[:2], "--mixed_precision", "bf16", *command[2:])
    again = rewrite_plan([BF16], observed(), patch.after)
    assert again.changed == ()
    assert isinstance(again.outcomes[0].outcome, AlreadySo)


@pytest.mark.parametrize(
    ("text", "launcher"),
    [
        (ACCELERATOR.replace("()", "(mixed_precision='no')"), LAUNCHER),
        (ACCELERATOR.replace("()", "(**settings)"), LAUNCHER),
        (ACCELERATOR, LAUNCHER.replace("mixed_precision: 'no'\n", "")),
        (ACCELERATOR, LAUNCHER.replace("compute_environment: LOCAL_MACHINE\n", "")),
    ],
    ids=["the call decides", "the call may decide", "the file says nothing", "another program's file"],
)
def test_the_call_changes_where_the_launcher_s_file_does_not_decide(text: str, launcher: str) -> None:
    assert launched(text, launcher).changed == ("train.py",)


def test_what_a_launcher_leaves_to_deepspeed_is_refused() -> None:
    (outcome,) = launched(
        launcher=LAUNCHER + "deepspeed_config:\n  deepspeed_config_file: ds.json\n"
    ).outcomes
    assert outcome.outcome == Refused("one_cpu.yaml leaves mixed_precision to DeepSpeed's own file")


def test_an_heir_that_constructs_itself_may_take_other_keywords() -> None:
    text = (
        "from transformers import TrainingArguments\nclass Args(TrainingArguments):\n"
        "    def __init__(self, depth):\n        super().__init__('x')\nargs = Args(2)\n"
    )
    assert turn_own_knob(editor(text), observed(), "autocast_bf16", {}, {}) is None


def test_a_program_without_a_framework_has_no_own_knob() -> None:
    assert turn_own_knob(editor("import torch\n"), observed(), "autocast_bf16", {}, {}) is None


TRAINER = "from transformers import TrainingArguments\nargs = TrainingArguments('x', optim='sgd')\n"


@pytest.mark.parametrize(
    "text", [TRAINER, "from transformers import HfArgumentParser\nHfArgumentParser(Args)\n"]
)
@pytest.mark.parametrize(
    ("sites", "says"),
    [
        (observed("torch.optim.sgd.SGD"), "the Trainer makes torch.optim.sgd.SGD"),
        (observed("bitsandbytes.optim.adamw.AdamW8bit"), "the Trainer makes bitsandbytes"),
        (Sites(), "does not show which optimizer"),
    ],
)
def test_no_other_optimizer_is_replaced_by_adamw(text: str, sites: Sites, says: str) -> None:
    source = editor(text)
    with pytest.raises(CannotEdit, match=says):
        turn_own_knob(source, sites, "fused_optimizer", {}, {})
    assert source.content("train.py").decode() == text


def test_an_optimizer_that_the_program_hands_to_the_trainer_is_none_of_its_knobs() -> None:
    text = "from transformers import TrainingArguments\nargs = TrainingArguments('x')\n"
    assert turn_own_knob(editor(text), observed(direct=True), "fused_optimizer", {}, {}) is None


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_trainer_s_adamw_is_foreach_on_cuda_alone(device: str) -> None:
    source, params = editor(TRAINER.replace("sgd", "adamw_torch_fused")), {"implementation": "foreach"}
    if device == "cpu":
        with pytest.raises(CannotEdit, match="takes no foreach"):
            turn_own_knob(source, observed(device=device), "fused_optimizer", params, {})
    else:
        assert isinstance(
            turn_own_knob(source, observed(device=device), "fused_optimizer", params, {}), Edited
        )
        assert 'optim="adamw_torch"' in source.content("train.py").decode()


def test_lightning_does_not_clip_under_its_own_precision_what_a_fused_optimizer_steps() -> None:
    text = "import lightning as L\ntrainer = L.Trainer(gradient_clip_val=1.0)\n"
    clip = Site(
        kind=SiteKind.CLIP, slot=0, callee="clip", places=(Place(path="train.py", line=2),), direct=False
    )
    assert turn_own_knob(editor(text), Sites(sites=(clip,)), "autocast_bf16", {}, {}) is None


@pytest.mark.parametrize("params", [{"blocks": "bert.encoder.layer"}, {"mode": "default", "dynamic": True}])
def test_what_the_trainer_cannot_compile_as_the_plan_does_is_none_of_its_knobs(
    params: dict[str, Any],
) -> None:
    text = "from transformers import TrainingArguments\nargs = TrainingArguments('x')\n"
    assert turn_own_knob(editor(text), observed(), "compile", params, {}) is None


@pytest.mark.parametrize(
    ("function", "direct"), [("make_loaders", True), ("Mine.get_train_dataloader", False)]
)
def test_a_loader_of_the_program_s_own_is_none_of_the_trainer_s_knobs(function: str, direct: bool) -> None:
    text = "from transformers import TrainingArguments\nargs = TrainingArguments('x')\n"
    place = Place(path="train.py", line=9, function=function)
    made = Site(kind=SiteKind.LOADER, slot=0, callee="DataLoader", places=(place,), direct=direct)
    sites = Sites(sites=(made,))
    for name in ("loader_workers", "pinned_memory"):
        assert turn_own_knob(editor(text), sites, name, {"num_workers": 2}, {}) is None


SET_UP = "lightning.pytorch.trainer.trainer.Trainer"
_SETUPS = {
    "one of two in the source": (
        "import lightning as L\nif long:\n    trainer = L.Trainer(max_epochs=9)\nelse:\n"
        "    trainer = L.Trainer(max_epochs=1)\n",
        [("L.Trainer(max_epochs=1)", 0)],
        "import lightning as L\nif long:\n    trainer = L.Trainer(max_epochs=9)\nelse:\n"
        '    trainer = L.Trainer(max_epochs=1, precision="bf16-mixed")\n',
    ),
    "in an heir's own initializer": (
        "import lightning as L\nclass Mine(L.Trainer):\n    def __init__(self):\n"
        "        super().__init__(max_epochs=1)\ntrainer = Mine()\n",
        [("super().__init__(max_epochs=1)", 1), ("Mine()", 0)],
        "import lightning as L\nclass Mine(L.Trainer):\n    def __init__(self):\n"
        '        super().__init__(max_epochs=1, precision="bf16-mixed")\ntrainer = Mine()\n',
    ),
    "in a factory": (
        "def make(cls, **settings):\n    return cls(**settings)\ntrainer = make(kinds[name], max_epochs=1)\n",
        [("cls(**settings)", 0)],
        'def make(cls, **settings):\n    return cls(**{**settings, "precision": "bf16-mixed"})\n'
        "trainer = make(kinds[name], max_epochs=1)\n",
    ),
    "through a partial": (
        "make = partial(lightning.Trainer, logger=False)\ntrainer = make(max_epochs=1)\n",
        [("make(max_epochs=1)", 0)],
        "make = partial(lightning.Trainer, logger=False)\n"
        'trainer = make(max_epochs=1, precision="bf16-mixed")\n',
    ),
}


def _place(text: str, call: str) -> Place:
    at = text.index(call)
    line, column = text[:at].count("\n") + 1, at - (text.rfind("\n", 0, at) + 1)
    return Place(path="train.py", line=line, column=column, end_line=line, end_column=column + len(call))


def _set_up(text: str, calls: list[tuple[str, int]], *, direct: bool = True) -> tuple[Editor, Sites]:
    """A run in which a Trainer was set up in one of a text's calls, or in several, innermost first."""
    places = tuple(_place(text, call) for call, _ in calls)
    num_own = sum(own for _, own in calls)
    site = Site(kind=SiteKind.TRAINER, slot=0, callee=SET_UP, places=places, num_own=num_own, direct=direct)
    return Editor({"train.py": text.encode()}, places), Sites(sites=(site,))


@pytest.mark.parametrize("name", _SETUPS)
def test_what_was_seen_to_be_set_up_is_edited_however_it_is_written(name: str) -> None:
    before, calls, after = _SETUPS[name]
    source, sites = _set_up(before, calls)
    outcome = turn_own_knob(source, sites, "autocast_bf16", {}, {})
    assert isinstance(outcome, Edited)
    assert outcome.safety is Safety.SAFE
    assert source.content("train.py").decode() == after
    assert isinstance(turn_own_knob(source, sites, "autocast_bf16", {}, {}), AlreadySo)


def test_what_a_library_sets_up_is_not_edited_at_the_call_of_that_library() -> None:
    text = "from hydra.utils import instantiate\ntrainer = instantiate(settings.trainer)\n"
    source, sites = _set_up(text, [("instantiate(settings.trainer)", 0)], direct=False)
    assert turn_own_knob(source, sites, "autocast_bf16", {}, {}) is None
    assert source.content("train.py").decode() == text
