"""For generated programs: the patch parses, twice is once, and what no edit names is the same bytes.

The sites are made up: those of a program are wherever its calls stand, so no program has to be run.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Collection
from difflib import SequenceMatcher

from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.model.safety import Safety
from hotloop.model.sites import Argument, Place, Site, SiteKind, Sites
from hotloop.model.tuning import PlanStep
from hotloop.patch.rewrite_plan import rewrite_plan

from .spec_files import read_specs

KINDS = {
    "DataLoader": (SiteKind.LOADER, "torch.utils.data.DataLoader"),
    "AdamW": (SiteKind.OPTIMIZER, "torch.optim.adamw.AdamW"),
    "Net": (SiteKind.MODEL, "__main__.Net"),
    "model": (SiteKind.FORWARD, "Net"),
    "backward": (SiteKind.BACKWARD, "backward"),
    "step": (SiteKind.STEP, "torch.optim.adamw.AdamW.step"),
}
STEPS = [
    PlanStep(name=name, params=params, ratio=1, low=1, high=1)
    for name, params in {
        "loader_workers": {"num_workers": 2, "persistent_workers": True},
        "fused_optimizer": {"implementation": "fused"},
        "autocast_bf16": {},
        "channels_last": {},
        "compile": {"mode": "max-autotune"},
        "kernel_autotune": {},
        "tf32_matmul": {},
    }.items()
]
PAGES = {spec.optimization: spec.params for spec in read_specs()}
ALL = [PlanStep(name=name, params=params, ratio=1, low=1, high=1) for name, params in PAGES.items()]
"""Each alone: those that need what these programs do not have leave them as they are."""
WORDS = [
    "batch_size=4",
    "shuffle=True",
    "num_workers=0",
    "**extra",
    "drop_last = False",
    "pin_memory=(1 > 0)",
]
NEVER_EDITED = ("batch_size=4", "shuffle=True", "drop_last = False")


@st.composite
def calls(draw: st.DrawFn, callee: str, first: str) -> str:
    """A call over one line or many, with comments, blanks and a trailing comma or without."""
    words = [first, *draw(st.lists(st.sampled_from(WORDS), unique=True, max_size=4))]
    words.sort(key=lambda word: word.startswith("**"))
    if draw(st.booleans()):
        return f"{callee}({', '.join(words)}{draw(st.sampled_from(['', ',']))})"
    comment = draw(st.sampled_from(["", "  # why", "  # größer"]))
    lines = f",{comment}\n            ".join(words)
    return f"{callee}(\n            {lines}{draw(st.sampled_from(['', ',']))}{comment}\n        )"


@st.composite
def programs(draw: st.DrawFn) -> str:
    noise = st.sampled_from(["", "# a comment\n", "x = 1;  y = '🙂'\n", "\n\n"])
    indent = draw(st.sampled_from(["    ", "\t", "  "]))
    move = draw(st.sampled_from(["", ".to(device)", ".cuda().train()"]))
    body = [
        f"loader = {draw(calls('DataLoader', 'data'))}",
        f"model = Net(4){move}",
        f"optimizer = {draw(calls('torch.optim.AdamW', 'model.parameters()'))}",
        "for x, y in loader:",
        f"{indent}output = model(x)",
        f"{indent}{draw(st.sampled_from(['pass', 'optimizer.zero_grad()', '# nothing']))}",
        f"{indent}loss = criterion(output, y)",
        f"{indent}loss.backward()",
        f"{indent}optimizer.step()",
    ]
    head = f"import torch\n{draw(noise)}from torch.utils.data import DataLoader\n{draw(noise)}"
    if draw(st.booleans()):
        lines = [f"{indent}{line}" for line in body]
        return f"{head}\n\ndef main():\n" + "\n".join(lines) + "\n\n\nmain()\n"
    return head + "\n".join(body) + draw(st.sampled_from(["", "\n"]))


def sites_of(text: str) -> Sites:
    """Return where the program calls what matters, as Python itself counts lines and columns."""
    tree = ast.parse(text)
    function = "main" if "def main" in text else "<module>"
    sites = []
    for node in ast.walk(tree):
        name = getattr(getattr(node, "func", None), "attr", None) or getattr(
            getattr(node, "func", None), "id", ""
        )
        if isinstance(node, ast.Call) and name in KINDS:
            kind, callee = KINDS[name]
            place = Place(
                path="train.py",
                line=node.lineno,
                column=node.col_offset,
                end_line=node.end_lineno,
                end_column=node.end_col_offset,
                function=function,
            )
            image = Argument(rank=4, floating=True)
            inputs = (image,) if kind is SiteKind.FORWARD else ()
            sites.append(Site(kind=kind, slot=0, callee=callee, places=(place,), arguments=inputs))
    return Sites(sites=tuple(sites), sources={"train.py": ""})


def comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [each.string for each in tokens if each.type == tokenize.COMMENT]


def check_what_no_edit_names(before: bytes, after: bytes, sites: Sites, steps: Collection[PlanStep]) -> None:
    """A line that changes is part of an observed call, or is the same one further to the right."""
    ends = {line[-1:] == b"\r" for line in after.split(b"\n")[:-1]}
    assert len(ends) <= 1, "line ends are those of the file"
    places = [place for site in sites.sites for place in site.places]
    edited = {line for place in places for line in range(place.line, (place.end_line or place.line) + 1)}
    old, new = before.split(b"\n"), after.split(b"\n")
    for tag, first, last, begin, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        moved = {line.strip() for line in new[begin:end]}
        for at in range(first, last) if tag != "equal" else ():
            assert at + 1 in edited or old[at].strip() in moved, old[at]
    resized = any(step.name == "larger_batch" for step in steps)  # the one whose edit is the batch size
    for word in NEVER_EDITED[1:] if resized else NEVER_EDITED:
        assert after.count(word.encode()) >= before.count(word.encode()), word
    kept = iter(comments(after.decode()))
    assert all(comment in kept for comment in comments(before.decode())), "comments stay, in their order"


@settings(max_examples=25, deadline=None)
@given(programs(), st.sampled_from(["\n", "\r\n"]))
def test_a_patch_parses_is_applied_once_and_leaves_the_rest(text: str, end: str) -> None:
    before = text.replace("\n", end).encode()
    once = rewrite_plan(STEPS, sites_of(text), {"train.py": before}, Safety.UNSAFE)
    after = once.after["train.py"]
    ast.parse(after)
    assert rewrite_plan(STEPS, once.sites, once.after, Safety.UNSAFE).after == once.after
    check_what_no_edit_names(before, after, sites_of(text), STEPS)


@settings(max_examples=60, deadline=None)
@given(programs(), st.sampled_from(["\n", "\r\n"]), st.sampled_from(ALL))
def test_each_rewrite_alone_parses_is_applied_once_and_leaves_the_rest(
    text: str, end: str, step: PlanStep
) -> None:
    before = text.replace("\n", end).encode()
    once = rewrite_plan([step], sites_of(text), {"train.py": before}, Safety.UNSAFE)
    ast.parse(once.after["train.py"])
    assert rewrite_plan([step], once.sites, once.after, Safety.UNSAFE).after == once.after
    check_what_no_edit_names(before, once.after["train.py"], sites_of(text), [step])


@settings(max_examples=10, deadline=None)
@given(programs(), st.sets(st.sampled_from([step.name for step in STEPS])))
def test_any_subset_of_a_plan_can_be_written(text: str, names: set[str]) -> None:
    steps = [step for step in STEPS if step.name in names]
    patch = rewrite_plan(steps, sites_of(text), {"train.py": text.encode()})
    ast.parse(patch.after["train.py"])
    assert bool(patch.diff) == bool(patch.changed)
