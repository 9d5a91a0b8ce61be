"""What the functions and classes of known libraries give."""

import libcst as cst

from hotloop.lint.infer import torch_names as known
from hotloop.lint.infer.kinds import HOST_SIDE, Kind
from hotloop.lint.read.syntax import keyword, string


def result_of(full: str, call: cst.Call, given: list[Kind]) -> Kind:
    """What a call of a library's function or class gives.

    Args:
        full: the full name of what is called.
        call: the call.
        given: the kinds of its arguments.
    """
    if full in known.FACTORIES:
        return _made(call)
    if full in known.OPERATIONS and full.rpartition(".")[2] in known.PIECES:
        return Kind.TENSORS
    if full in known.OPERATIONS:
        return Kind.HOST_TENSOR if given and all(k in HOST_SIDE for k in given) else Kind.TENSOR
    if full.startswith("torch.nn.functional."):
        return Kind.TENSOR
    if full.startswith("numpy."):
        return Kind.NUMPY
    if full in known.LOADERS:
        return Kind.LOADER
    if full.startswith(known.OPTIMIZERS) and full.count(".") == 2 and full[12:13].isupper():
        return Kind.OPTIMIZER
    last = full.rpartition(".")[2]
    if full.startswith("torch.nn.") and last[:1].isupper():
        return Kind.MODULE if full in known.STRUCTURED_MODULES or "parallel" in full else Kind.LAYER
    if full.startswith("torchvision.models.") or full == "torch.compile":
        return Kind.MODULE
    if full.startswith("transformers.AutoModel"):
        return Kind.MODULE
    return Kind.UNKNOWN


def _made(call: cst.Call) -> Kind:
    device = keyword(call, "device")
    if device is None:
        return Kind.HOST_TENSOR
    return Kind.HOST_TENSOR if string(device) == "cpu" else Kind.TENSOR
