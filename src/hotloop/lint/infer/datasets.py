"""What the source shows about data sets: which classes are ones, and which of them only index memory."""

import libcst as cst

from hotloop.lint.infer.moves import moves_to_device, names_device
from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.name_lists import words
from hotloop.lint.read.syntax import argument, keyword

_IN_MEMORY = frozenset({"torch.utils.data.TensorDataset"})
_WRAPPERS = frozenset({"torch.utils.data.Subset", "torch.utils.data.random_split"})
# What a __getitem__ may call and still cost next to nothing.
_CHEAP_CALLS = words(
    """
    len int float min max tuple list dict tensor as_tensor from_numpy long float unsqueeze zeros
    """
)


def dataset_class(program: Program, node: cst.CSTNode) -> cst.ClassDef | None:
    """The class of this file around the node, if it has a `__getitem__` and looks like a data set."""
    owner = program.file.enclosing(node, cst.ClassDef)
    if owner is None or item_method(owner) is None:
        return None
    bases = [dotted(base.value) or "" for base in owner.bases]
    return owner if any("Dataset" in base for base in bases) or owner.name.value.endswith("Dataset") else None


def item_method(owner: cst.ClassDef) -> cst.FunctionDef | None:
    """The class's own `__getitem__`."""
    for statement in owner.body.body:
        if isinstance(statement, cst.FunctionDef) and statement.name.value == "__getitem__":
            return statement
    return None


def in_getitem(program: Program, node: cst.CSTNode) -> bool:
    """Whether the node stands in the `__getitem__` of a data set, or in a method that it calls on itself."""
    owner = dataset_class(program, node)
    function = program.file.enclosing(node, cst.FunctionDef)
    if owner is None or function is None:
        return False
    item = item_method(owner)
    if item is None or function is item:
        return item is not None
    called = {dotted(call.func) for call in program.file.under(item, cst.Call)}
    return f"self.{function.name.value}" in called


def is_cheap_dataset(program: Program, dataset: cst.BaseExpression) -> bool:
    """Whether the data set surely holds finished samples in memory."""
    return any(_cheap(program, value) for value in _definitions(program, dataset))


def gives_device_tensors(program: Program, loader: cst.Call) -> bool:
    """Whether samples or batches are on a device already: nothing can be pinned, and no worker can make them."""
    collate = argument(loader, 6, "collate_fn")
    if isinstance(collate, cst.Lambda) and _moves(program, collate):
        return True
    named = program.steps.functions.get((dotted(collate) or "").rpartition(".")[2], []) if collate else []
    dataset = argument(loader, 0, "dataset")
    made = _definitions(program, dataset) if dataset is not None else []
    return any(_moves(program, function) for function in named) or any(
        _on_device(program, each) for each in made
    )


def _on_device(program: Program, dataset: cst.BaseExpression) -> bool:
    if not isinstance(dataset, cst.Call):
        return False
    owners = [owner for owner in program.file.all(cst.ClassDef) if owner.name.value == dotted(dataset.func)]
    return any(_moves(program, owner) for owner in owners) or any(
        program.values.is_device_tensor(arg.value) or (dotted(arg.value) or "").endswith("device")
        for arg in dataset.args
    )


def _moves(program: Program, code: cst.CSTNode) -> bool:
    return any(
        moves_to_device(call) or ((device := keyword(call, "device")) is not None and names_device(device))
        for call in program.file.under(code, cst.Call)
    )


def _definitions(program: Program, node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What the expression may have been made from: itself, or the assignments to its name in this file."""
    name = dotted(node)
    if name is None:
        return [node]
    found: list[cst.BaseExpression] = []
    for assign in program.file.all(cst.Assign):
        for target in assign.targets:
            parts = target.target.elements if isinstance(target.target, cst.Tuple) else [target.target]
            if any(dotted(p.value if isinstance(p, cst.Element) else p) == name for p in parts):
                found.append(assign.value)
    return found


def _cheap(program: Program, value: cst.BaseExpression) -> bool:
    if isinstance(value, (cst.List, cst.ListComp)):
        return True
    if not isinstance(value, cst.Call):
        return False
    full = program.names.call(value)
    if full in _IN_MEMORY or (
        isinstance(value.func, cst.Name) and value.func.value in {"list", "range", "zip"}
    ):
        return True
    if full in _WRAPPERS and value.args:
        return is_cheap_dataset(program, value.args[0].value)
    return isinstance(value.func, cst.Name) and _only_indexes(program, value.func.value)


def _only_indexes(program: Program, class_name: str) -> bool:
    for owner in program.file.all(cst.ClassDef):
        if owner.name.value == class_name:
            item = item_method(owner)
            return item is not None and _calls_nothing_dear(program, item)
    return False


def _calls_nothing_dear(program: Program, item: cst.FunctionDef) -> bool:
    if program.file.under(item, cst.For):
        return False
    called = [(dotted(call.func) or "?").rpartition(".")[2] for call in program.file.under(item, cst.Call)]
    return all(name in _CHEAP_CALLS for name in called)
