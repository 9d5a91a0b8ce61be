"""Where tensors are fake and where they are real: what is on the device is fake, the rest is as it is.

A fake tensor that was copied from the CPU, or computed from such copies alone, keeps its values beside it as long as
it is small: lengths, masks and indices decide over shapes.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, MutableMapping
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._C import DispatchKey
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass_type
from torch.utils.data import dataloader
from torch.utils.weak import WeakTensorKeyDictionary

from hotloop.probe.virtual_gpu.checks import passing_answer
from hotloop.probe.virtual_gpu.sparse import is_sparse, stand_in
from hotloop.probe.virtual_gpu.storages import Storages
from hotloop.probe.virtual_gpu.unknown_sizes import largest_output, said_of

VALUES_UP_TO = 1 << 18
"""Elements: more are not kept beside a fake tensor."""
_CUDA = torch.device("cuda", 0)
_UNKNOWN = ("rand", "bernoulli", "dropout", "normal", "uniform", "multinomial", "exponential", "empty")
_INDEXING = frozenset(
    {"index", "_unsafe_index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put"}
)
_SHAPED_BY_NUMBERS = frozenset({"_ctc_loss"})
"""Operators that torch takes to be shaped by values of tensors; they are by the lengths that are given (`ctc`)."""
_STAYS_SPARSE = frozenset(
    {torch.ops.aten._to_copy.default, torch.ops.aten.clone.default, torch.ops.aten.new_empty_strided.default}
)
"""Copies: the second and third are what a gradient is copied by, where a parameter takes it over."""
_KEEPS_VALUES = "_amp_foreach_non_finite_check_and_unscale_"
"""Gradients are taken to be finite: what says so stays zero."""


class World(TorchDispatchMode):  # type: ignore[misc]  # torch has no types here
    """Decides for each operator whether it computes or only says what it would give.

    Args:
        storages: told what is allocated.
        resize: what to make of a real tensor that is copied to the device (`configurations`).
    """

    def __init__(self, storages: Storages, resize: Callable[[Any], Any]) -> None:
        super().__init__()
        self._storages = storages
        self._resize = resize
        self._fake = FakeTensorMode(allow_non_fake_inputs=True, allow_fallback_kernels=False)
        self.assumptions: set[str] = set()
        """What values nobody has were taken to be."""
        self.one_device = False
        """The program never asks for a device: what meets a tensor of its model is taken to be there, too."""
        self.num_epochs = 0
        """Times that a loader had nothing more to give for training."""
        self._gave_last = False
        """One has given its last batch; a trainer that counts does not ask for more, and begins anew."""
        self._one_at_a_time = threading.RLock()
        """Torch's fake mode is entered by one thread at a time."""
        self._adopted: WeakTensorKeyDictionary = WeakTensorKeyDictionary()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operator."""
        kwargs = kwargs or {}
        if kwargs.get("pin_memory"):  # as for `Tensor.pin_memory`: memory of the host is memory of the host
            kwargs = {**kwargs, "pin_memory": False}
        if any(is_traceable_wrapper_subclass_type(each) for each in types):
            return NotImplemented  # it computes with what it wraps
        if torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None:
            return func(
                *args, **kwargs
            )  # shapes alone are asked for, as distributed tensors do before they compute
        tensors = [each for each in pytree.tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        on_device = any(isinstance(each, FakeTensor) for each in tensors)
        device = kwargs.get("device")
        name = func.__name__.partition(".")[0]
        if not on_device and not (isinstance(device, torch.device) and device.type == "cuda"):
            return func(*args, **kwargs)
        if _is_composed(func):  # under `torch.inference_mode` nobody has taken it apart
            with self:
                return func.decompose(*args, **kwargs)
        with self._one_at_a_time:
            return self._run(func, name, args, kwargs, on_device)

    def _run(self, func: Any, name: str, args: Any, kwargs: Any, on_device: bool) -> Any:
        """Return what an operator of the device gives."""
        if on_device and _leaves(name, args, kwargs.get("device")):
            return self._values(args[0], name, kwargs)
        if self.one_device and on_device:
            args, kwargs = pytree.tree_map(self._adopt, (args, kwargs))
        if name == "_to_copy" and not on_device:
            args = (self._resized(args[0]), *args[1:])
        if name.startswith("_thnn_fused"):
            self.assumptions.add(
                "recurrent layers are counted cell by cell: cuDNN keeps about as much in its reserve"
            )
        values = self._computed(func, name, args, kwargs)
        if name in _INDEXING:
            args = (args[0], self._without_masks(args[1]), *args[2:])
        try:
            out = self._faked(func, args, kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException):
            if name in _SHAPED_BY_NUMBERS:
                out = self._as_on_cpu(func, args, kwargs, values)
            else:
                out = self._of_unknown_shape(func, name, args, kwargs, values)
        except UnsupportedOperatorException:
            out = self._as_on_cpu(func, args, kwargs, values)
        self._keep(name, out, values)
        for each in pytree.tree_leaves(out):
            if isinstance(each, FakeTensor) and each.fake_device.type == "cuda":
                self._storages.saw(each, name)
        return out

    def adopt(self, module: Any) -> None:
        """Move a model to the device whose program leaves everything on the CPU; its parameters stay the same objects.

        Nothing is done where the program has something on the device: it knows what it does.
        """
        if not self.one_device and self._storages.records:
            return
        self.one_device = True
        if any(not isinstance(each, FakeTensor) for each in (*module.parameters(), *module.buffers())):
            module.to("cuda")
            module.register_forward_pre_hook(self._adopt_inputs, with_kwargs=True)

    def follow_threads(self) -> None:
        """Have threads that the program starts be in this world: a mode is in force in one thread alone."""
        cls: Any = threading.Thread
        original = cls._bootstrap_inner

        @functools.wraps(original)
        def begin(thread: Any) -> None:
            with self:
                original(thread)

        cls._bootstrap_inner = begin

    def give_arrays(self) -> None:
        """Have `.numpy()` of what was left on the CPU by the program, and taken to the device, give its values."""
        original = torch.Tensor.numpy

        @functools.wraps(original)
        def numpy(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            is_ours = isinstance(tensor, FakeTensor) and self.one_device
            return original(tensor.detach().cpu() if is_ours else tensor, *args, **kwargs)

        whole: Any = torch.Tensor
        whole.numpy = numpy

    def adopt_batches(self) -> None:
        """Move what loaders give, from the first forward on, as a program for a device would."""
        iterator: Any = dataloader._BaseDataLoaderIter
        original = iterator.__next__

        @functools.wraps(original)
        def following(loader: Any) -> Any:
            if not loader._num_yielded and torch.is_grad_enabled():
                self._epoch_is_over(self._gave_last)
            try:
                batch = original(loader)
            except StopIteration:
                self._epoch_is_over(torch.is_grad_enabled())
                raise
            self._gave_last = self._gave_last or (torch.is_grad_enabled() and _is_at_end(loader))
            return self._adopt_batch(batch) if self.one_device else batch

        iterator.__next__ = following

    def _epoch_is_over(self, is_over: bool) -> None:
        if is_over:
            self.num_epochs += 1
            self._gave_last = False

    def adopt_labels(self) -> None:
        """Move labels that are given to a loss: torch compares their number with that of the outputs before it runs."""
        functions: Any = torch._C._nn
        for name in ("cross_entropy_loss", "nll_loss_nd"):
            setattr(functions, name, self._adopting(getattr(functions, name)))

    def _adopting(self, original: Any) -> Any:
        @functools.wraps(original)
        def loss(outputs: Any, labels: Any, *args: Any, **kwargs: Any) -> Any:
            is_ours = self.one_device and isinstance(outputs, FakeTensor)
            return original(outputs, self._adopt(labels) if is_ours else labels, *args, **kwargs)

        return loss

    def _adopt_batch(self, batch: Any) -> Any:
        if isinstance(batch, MutableMapping) and not isinstance(batch, dict):  # transformers' BatchEncoding
            for name, value in batch.items():
                batch[name] = pytree.tree_map(self._adopt, value)
            return batch
        return pytree.tree_map(self._adopt, batch)

    def _adopt_inputs(self, module: Any, args: Any, kwargs: Any) -> Any:  # noqa: ARG002 - torch's signature
        """Move what a model is given: autocast looks at the device of a tensor, not of the weights."""
        return pytree.tree_map(self._adopt, (args, kwargs))

    def _adopt(self, each: Any) -> Any:
        """Return a tensor on the device for one on the CPU; a number stays where it is."""
        if not isinstance(each, torch.Tensor) or isinstance(each, FakeTensor) or not each.dim():
            return each
        if each not in self._adopted:
            real = self._resized(each)
            there = self._on_device(real)
            # Another object with the same values: one that holds its own key would live for ever.
            self._keep("_to_copy", there, real.detach())
            self._storages.saw(there, "_to_copy")
            self._adopted[each] = there
        return self._adopted[each]

    def _resized(self, each: Any) -> Any:
        """Return a batch as the configuration wants it; one of an evaluation stays, and so does a graph's matrix."""
        is_batch = torch.is_grad_enabled() and each.layout is torch.strided
        return self._resize(each) if is_batch else each

    def _faked(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func in _STAYS_SPARSE and is_sparse(args[0]):
            return self._stand_in(args[0], _CUDA, kwargs.get("dtype"))
        args, kwargs = pytree.tree_map(self._fake_of, (args, kwargs))
        with self._fake:
            out = func(*args, **kwargs)
            return pytree.tree_map_only(FakeTensor, self._without_layout, out)

    def _without_layout(self, each: Any) -> Any:
        return each if each.layout is torch.strided else self._stand_in(each, each.fake_device)

    def _fake_of(self, each: Any) -> Any:
        if not isinstance(each, torch.Tensor) or isinstance(each, FakeTensor):
            return each
        if is_sparse(each):
            return self._stand_in(each, each.device)
        meta = torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device="meta")
        return FakeTensor(self._fake, meta, each.device)

    def _computed(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Return what the operator gives for the values that are known; None: not all are.

        Numbers that nobody knows are taken to be finite: programs ask for NaN to stop, and anomaly mode does.
        """
        finite = _as_finite(name, args)
        if finite is not None and _known(args[0]) is None:
            return torch.tensor(finite).expand(args[0].shape)
        if any(word in name for word in _UNKNOWN) or name == _KEEPS_VALUES:
            return None
        leaves = [each for each in pytree.tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        known = [_known(each) for each in leaves]
        if any(each is None for each in known) and _is_below(name, args):
            return _assumed(torch.tensor(False))
        if any(getattr(each, "_hotloop_assumed", False) for each in known):
            return None  # it answers a question that is asked of it alone, not one about many numbers
        if any(each is None for each in known) or sum(_held(each) for each in known) > VALUES_UP_TO:
            return None
        if not leaves and _elements(args) > VALUES_UP_TO:
            return None
        real_args, real_kwargs = pytree.tree_map(
            lambda each: _known(each) if isinstance(each, torch.Tensor) else each, (args, kwargs)
        )
        if real_kwargs.get("device") is not None:
            real_kwargs = {**real_kwargs, "device": torch.device("cpu")}
        try:
            with torch.no_grad():
                return func(*real_args, **real_kwargs)
        except (RuntimeError, NotImplementedError):  # an operator for the device alone
            return None

    def _keep(self, name: str, out: Any, values: Any) -> None:
        """Put values beside what has them; take them from what was changed by something unknown."""
        if values is None:
            for each in pytree.tree_leaves(out):
                if _known(each) is not None and isinstance(each, FakeTensor) and name != _KEEPS_VALUES:
                    del each._hotloop_values
            return
        for fake, real in zip(pytree.tree_leaves(out), pytree.tree_leaves(values), strict=False):
            if isinstance(fake, FakeTensor) and isinstance(real, torch.Tensor) and _decides(real):
                fake._hotloop_values = real

    def _values(self, tensor: Any, name: str, kwargs: Any) -> Any:
        """Return real values of a fake tensor: those that are known, else plausible ones."""
        known = _known(tensor)
        is_assumed = getattr(known, "_hotloop_assumed", False)
        if name == "_local_scalar_dense" and tensor.dtype is torch.bool and (known is None or is_assumed):
            passing = passing_answer()
            if passing is not None:
                return passing
        if is_assumed:
            self.assumptions.add("numbers computed on the device are taken not to be below a threshold")
        if known is None:
            dtype = kwargs.get("dtype") or tensor.dtype
            if not dtype.is_floating_point:
                self.assumptions.add("values of whole numbers computed on the device are taken to be 1")
            known = torch.ones(tensor.shape, dtype=dtype)
        if name == "_local_scalar_dense":
            return known.item()
        return known.to(kwargs.get("dtype") or known.dtype)

    def _of_unknown_shape(self, func: Any, name: str, args: Any, kwargs: Any, values: Any) -> Any:
        """Return an operator's output whose shape depends on values: the known one, else the largest."""
        if func.has_kernel_for_dispatch_key(DispatchKey.CompositeExplicitAutograd):
            with self:  # its parts have shapes: sequences are packed by slices and one `cat`
                return func._op_dk(DispatchKey.CompositeExplicitAutograd, *args, **kwargs)
        if values is not None:
            return pytree.tree_map(self._on_device, values)
        self.assumptions.add(said_of(name))
        return pytree.tree_map(self._on_device, largest_output(func, args, kwargs, _known))

    def _as_on_cpu(self, func: Any, args: Any, kwargs: Any, values: Any) -> Any:
        """Return what an operator gives that torch has no shapes for: the same as its kernel for the CPU, run on ones.

        One that gives nothing changes what it is given (an optimizer's fused step), and is not run.
        """
        if not func._schema.returns:
            return None
        if str(func._schema.returns[0].type) == "bool":  # whether a library of the device takes it over
            return False
        if values is None:
            real_args, real_kwargs = pytree.tree_map(_values_or_ones, (args, kwargs))
            values = func(*real_args, **real_kwargs)
        return pytree.tree_map(self._on_device, values)

    def _without_masks(self, indices: Any) -> list[Any]:
        """Return indices with each mask as the positions that it selects: as known, else all."""
        result: list[Any] = []
        for index in indices:
            if not isinstance(index, torch.Tensor) or index.dtype is not torch.bool:
                result.append(index)
                continue
            known = _known(index)
            if known is None:
                self.assumptions.add("a mask is taken to select everything")
                known = torch.ones(index.shape, dtype=torch.bool)
            result += [self._on_device(positions) for positions in known.nonzero(as_tuple=True)]
        return result

    def _on_device(self, each: Any) -> Any:
        if not isinstance(each, torch.Tensor):
            return each
        if is_sparse(each):
            return self._stand_in(each, _CUDA)
        meta = torch.empty_like(each, device="meta")  # what overlaps is spread out, as `.to` does
        return FakeTensor(self._fake, meta, _CUDA)

    def _stand_in(self, tensor: Any, device: Any, dtype: Any = None) -> FakeTensor:
        self.assumptions.add("what is computed of sparse tensors is counted as dense")
        return stand_in(self._fake, tensor, device, dtype or tensor.dtype)


@functools.cache
def _is_composed(func: Any) -> bool:
    """Whether the device has no kernel for an operator, but those of its parts."""
    if func.namespace == "prim":  # a question of its device, say, is no operator
        return False
    of = func.has_kernel_for_dispatch_key
    return bool(of(DispatchKey.CompositeImplicitAutograd) and not of(DispatchKey.CUDA))


def _is_at_end(loader: Any) -> bool:
    """Whether an iterator of a loader has given as many batches as it has; False where it does not know."""
    try:
        return bool(loader._num_yielded >= len(loader))
    except (TypeError, NotImplementedError):
        return False


def _leaves(name: str, args: Any, device: Any) -> bool:
    """Whether values leave the device: `.item()`, `.cpu()`, `.tolist()`, a branch on a tensor."""
    if not args or not isinstance(args[0], FakeTensor) or args[0].fake_device.type != "cuda":
        return False
    to_cpu = name == "_to_copy" and isinstance(device, torch.device) and device.type == "cpu"
    return to_cpu or name == "_local_scalar_dense"


def _as_finite(name: str, args: Any) -> bool | None:
    """Return what a question for NaN or infinity gives for finite numbers; None: it is none.

    `isnan(x)` is `x != x`, `isinf(x)` compares with infinity, `isfinite(x)` is both.
    """
    if name in {"isnan", "isinf", "isposinf", "isneginf"}:
        return False
    if name not in {"eq", "ne"} or not isinstance(args[0], FakeTensor):
        return None
    if args[1] is args[0]:
        return name == "eq"
    return name == "ne" if isinstance(args[1], float) and math.isinf(args[1]) else None


def _is_below(name: str, args: Any) -> bool:
    """Whether one number is asked to be below another: a tolerance that ends a loop is taken not to be reached."""
    return name in {"lt", "le"} and all(
        not isinstance(each, torch.Tensor) or each.numel() == 1 for each in args
    )


def _assumed(value: torch.Tensor) -> torch.Tensor:
    value._hotloop_assumed = True
    return value


def _known(tensor: Any) -> Any:
    return getattr(tensor, "_hotloop_values", None) if isinstance(tensor, FakeTensor) else tensor


def _decides(real: torch.Tensor) -> bool:
    """Whether a program may make shapes or branches of these values: whole numbers, and single ones."""
    return _held(real) == 1 or (_held(real) <= VALUES_UP_TO and not real.dtype.is_floating_point)


def _held(real: torch.Tensor) -> int:
    """Return the number of elements that are in memory: a constant that was expanded has one."""
    if real.layout is not torch.strided:
        return int(real.numel())
    in_storage = real.untyped_storage().nbytes() // max(1, real.element_size())
    return int(min(real.numel(), in_storage))


def _elements(args: Any) -> int:
    sizes = args[0] if args and isinstance(args[0], (list, tuple)) else []
    total = 1
    for size in sizes:
        total *= int(size)
    return total


def _values_or_ones(each: Any) -> Any:
    if isinstance(each, torch.device):
        return torch.device("cpu")
    known = _known(each)
    return (
        torch.ones(each.shape, dtype=each.dtype) if isinstance(each, FakeTensor) and known is None else known
    )
