"""What a value can be, and what comes of combining values."""

from enum import Enum, auto

from hotloop.lint.infer import torch_names as known


class Kind(Enum):
    """What a value is, as far as the source shows."""

    TENSOR = auto()
    """One tensor, on a device if the program uses one."""
    TENSORS = auto()
    """A tensor or a structure of tensors, such as a model's output."""
    HOST_TENSOR = auto()
    """One tensor that is surely in host memory."""
    BATCH = auto()
    """What a loader gives: tensors in host memory, perhaps among other things."""
    NUMPY = auto()
    PLAIN = auto()
    """Numbers, strings, lists, sizes, devices."""
    MODULE = auto()
    LAYER = auto()
    """A module that gives exactly one tensor, such as a loss of torch.nn."""
    LOADER = auto()
    OPTIMIZER = auto()
    UNKNOWN = auto()


HOST_SIDE = frozenset({Kind.HOST_TENSOR, Kind.PLAIN, Kind.NUMPY, Kind.BATCH})


def after_method(name: str, owner: Kind) -> Kind:
    """What a tensor's method gives."""
    if name in {"item", "tolist"} or name in known.PLAIN_METHODS:
        return Kind.PLAIN
    if name == "numpy":
        return Kind.NUMPY
    if name in known.PIECES:
        return Kind.TENSORS
    if name == "cpu":
        return Kind.HOST_TENSOR
    return Kind.HOST_TENSOR if owner in {Kind.HOST_TENSOR, Kind.BATCH} else Kind.TENSOR


def combined(kinds: list[Kind]) -> Kind:
    """What arithmetic between values of these kinds gives."""
    if Kind.TENSOR in kinds and Kind.NUMPY not in kinds:
        return Kind.TENSOR
    if all(kind is Kind.PLAIN for kind in kinds):
        return Kind.PLAIN
    if Kind.NUMPY in kinds and all(kind in {Kind.NUMPY, Kind.PLAIN} for kind in kinds):
        return Kind.NUMPY
    if Kind.HOST_TENSOR in kinds and all(kind in HOST_SIDE for kind in kinds):
        return Kind.HOST_TENSOR
    return Kind.UNKNOWN


def merged(kinds: list[Kind]) -> Kind:
    """What a name is that may hold any of these."""
    distinct = set(kinds)
    if len(distinct) == 1:
        return kinds[0]
    if distinct <= {Kind.TENSOR, Kind.TENSORS}:
        return Kind.TENSORS
    return Kind.MODULE if distinct <= {Kind.MODULE, Kind.LAYER} else Kind.UNKNOWN
