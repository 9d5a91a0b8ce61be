"""Everything the rules know about one file: its syntax, its names, its values and its steps."""

import re
from functools import cached_property

import libcst as cst

from hotloop.lint.infer.bindings import Bindings
from hotloop.lint.infer.guards import in_test
from hotloop.lint.infer.names import Names, dotted
from hotloop.lint.infer.steps import Steps
from hotloop.lint.infer.values import Values
from hotloop.lint.read.syntax import argument, is_literal
from hotloop.source.source_file import SourceFile

# What a program that runs on an accelerator says somewhere in its source.
_EVALUATES = re.compile(r"val|test|eval")
_DEVICE = re.compile(r"cuda|\bdevice\b|\.to\(|accelerat|\bmps\b|\bxpu\b|\bTrainer\b|[Ff]abric")
_ON_HOST = re.compile(r"accelerator\s*=\s*[\"']cpu[\"']|\bcpu\s*=\s*True")
"""What a framework's trainer is told that is to keep off accelerators."""
_NAMED = re.compile(r"cuda|\bmps\b|\bxpu\b")
_HALF = re.compile(
    r"autocast|bfloat16|float16|\.half\(\)|\bbf16\b|\bfp16\b|GradScaler|\bamp\b|set_float32_matmul|allow_tf32"
)


class Program:
    """One file as the rules see it; each layer is worked out when a rule first asks."""

    def __init__(self, file: SourceFile) -> None:
        self.file = file

    @cached_property
    def names(self) -> Names:
        """What the imports stand for."""
        return Names(self.file)

    @cached_property
    def bindings(self) -> Bindings:
        """Which statements give the names their values."""
        return Bindings(self.file)

    @cached_property
    def values(self) -> Values:
        """What the expressions give."""
        return Values(self.file, self.names, self.bindings)

    @cached_property
    def steps(self) -> Steps:
        """What runs once per training step."""
        return Steps(self.file, self.names, self.values)

    @cached_property
    def on_device(self) -> bool:
        """Whether anything in the source speaks of an accelerator, other than to keep off it."""
        text = self.file.text
        if _ON_HOST.search(text) is not None:
            return _NAMED.search(text) is not None
        return _DEVICE.search(text) is not None

    @cached_property
    def on_cuda(self) -> bool:
        """Whether the source names CUDA itself."""
        return "cuda" in self.file.text

    @cached_property
    def mixed_precision(self) -> bool:
        """Whether anything in the source speaks of reduced precision."""
        return _HALF.search(self.file.text) is not None

    @cached_property
    def no_grad_blocks(self) -> list[cst.CSTNode]:
        """Blocks and functions in which no gradients are recorded."""
        blocks: list[cst.CSTNode] = [
            block
            for block in self.file.all(cst.With)
            if any(self._disables_grad(item.item) for item in block.items)
        ]
        blocks += [
            function
            for function in self.file.all(cst.FunctionDef)
            if any(self._disables_grad(decorator.decorator) for decorator in function.decorators)
        ]
        return blocks

    def without_grad(self, node: cst.CSTNode) -> bool:
        """Whether the node stands where no gradients are recorded."""
        return any(self.file.inside(node, block) for block in self.no_grad_blocks)

    def _disables_grad(self, node: cst.BaseExpression) -> bool:
        target = node.func if isinstance(node, cst.Call) else node
        full = self.names.of(target)
        if full in {"torch.set_grad_enabled", "torch.autograd.set_grad_enabled"}:
            return isinstance(node, cst.Call) and not any(is_literal(arg.value, "True") for arg in node.args)
        return full.rpartition(".")[2] in {"no_grad", "inference_mode"}

    @cached_property
    def loaders(self) -> list[cst.Call]:
        """Every construction of a torch DataLoader."""
        return [
            call for call in self.file.all(cst.Call) if self.names.call(call) == "torch.utils.data.DataLoader"
        ]

    def is_training_loader(self, loader: cst.Call) -> bool:
        """Whether the loader shuffles or samples, is not named for evaluation and stands in no unit test."""
        if in_test(self.file, loader):
            return False
        assign = self.file.enclosing(loader, cst.Assign)
        if assign is not None and _EVALUATES.search(dotted(assign.targets[0].target) or ""):
            return False
        shuffle = argument(loader, 2, "shuffle")
        if shuffle is not None and not is_literal(shuffle, "False"):
            return True
        return any(
            argument(loader, place, name) is not None
            for place, name in ((3, "sampler"), (4, "batch_sampler"))
        )
