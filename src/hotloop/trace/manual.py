"""Manual pages of what is found in traces, for `hotloop explain`."""

from __future__ import annotations

from typing import NamedTuple


class TracePage(NamedTuple):
    """What is said of one code."""

    title: str
    seen: str
    """What in a trace counts as this."""
    why: str
    """Why it is slow."""
    fix: str


PAGES: dict[str, TracePage] = {
    "input-bound": TracePage(
        "The device waits for data",
        "The device is idle while the training thread stands in a DataLoader's `__next__`.",
        "The next batch is not ready: it is made in the training process itself, or by workers that are too slow.",
        "With `num_workers=0`, load in workers. With workers, find what limits them: decoding, storage, their number.",
    ),
    "sync-in-step": TracePage(
        "The host waits for the device in the middle of a step",
        "A call of the runtime that waits (`cudaStreamSynchronize`, a blocking copy), with the operator and the line "
        "that led to it where the trace has Python stacks. The profiler's own two are left out.",
        "Kernels are queued ahead of the device; who waits for a value empties the queue, and the device then idles "
        "until new kernels arrive.",
        "Keep the value on the device, or read it every N steps.",
    ),
    "pageable-copy": TracePage(
        "Copies to the device from memory that is not pinned",
        "Copies to the device that the trace names `Pageable`. Those to the host are under `sync-in-step`.",
        "The driver copies such memory in pieces through a buffer of its own, and the host waits meanwhile.",
        "`DataLoader(pin_memory=True)` together with `tensor.to(device, non_blocking=True)`.",
    ),
    "tiny-kernels": TracePage(
        "Kernels are shorter than it takes to launch them",
        "The device is idle while operators are dispatched, and its kernels take less than 15 us on average.",
        "Python and the dispatcher need some tens of microseconds for each kernel: no device can be kept busy by such.",
        "Compile the model, capture the step as a graph, or use a larger batch.",
    ),
    "launch-bound": TracePage(
        "The host cannot launch kernels as fast as the device finishes them",
        "The device is idle for much of the span while operators are dispatched.",
        "The host's own work for each operator takes longer than the device's.",
        "Compile the model, capture the step as a graph, or use a larger batch.",
    ),
    "exposed-communication": TracePage(
        "Collectives are not hidden behind computation",
        "Time in which the device runs a collective and nothing else.",
        "Gradients are exchanged after the backward instead of during it, or a late rank lets all others wait.",
        "Accumulate under `no_sync()`, tune the bucket size, compress gradients, or find the late rank.",
    ),
    "fp32-matmul": TracePage(
        "Matrix products in float32 on a device with matrix units",
        "Products and convolutions in float32 that did not run on the matrix units.",
        "In half precision or TF32 the same device computes them several times as fast.",
        "Autocast to bfloat16 (float16 with scaling on older devices), or allow TF32.",
    ),
    "odd-matmul-size": TracePage(
        "Matrix sizes are not multiples of 8",
        "Half-precision products with a size that the matrix units do not take whole.",
        "The library pads, or takes a slower kernel.",
        "Pad sequences, vocabulary or channels to multiples of 8.",
    ),
    "layout-conversion": TracePage(
        "Tensors are converted between memory layouts",
        "Kernels that only turn NCHW into NHWC or back, around convolutions.",
        "The convolution's kernel wants another layout than the tensors have.",
        "Keep the model and its input in `channels_last`.",
    ),
    "extra-copies": TracePage(
        "Much of the device's time only copies tensors",
        "Device time under operators that copy: `copy_`, `contiguous`, `clone`, conversions of type. "
        "Copies from and to the host do not count.",
        "A copy reads and writes every byte and computes nothing.",
        "Drop what is not needed, or let `torch.compile` fuse it into its neighbours.",
    ),
    "unfused-optimizer": TracePage(
        "The optimizer works in many small kernels",
        "Under `Optimizer.step`, 32 kernels and more a step, in `foreach` form.",
        "Each operation of the update is a kernel of its own over all parameters.",
        "Pass `fused=True` to the optimizer.",
    ),
    "single-tensor-loop": TracePage(
        "The optimizer works tensor by tensor",
        "Under `Optimizer.step`, 32 kernels and more a step, several for each parameter.",
        "A model of hundreds of parameters pays for thousands of launches in each step.",
        "Pass `fused=True` to the optimizer, or else `foreach=True`.",
    ),
    "memset-gradients": TracePage(
        "Gradients are zeroed instead of dropped",
        "Kernels and memsets under `zero_grad`.",
        "Every gradient is written once more, and then read and added to.",
        "`optimizer.zero_grad(set_to_none=True)`, which is torch's default.",
    ),
    "recompilation": TracePage(
        "A model is compiled inside the measured window",
        "Frames of torch.compile in the trace.",
        "Compiling takes seconds; it belongs to the start, and comes again where shapes or Python values change.",
        "Warm up before profiling. Where it recurs, mark changing sizes as dynamic.",
    ),
}


def page(code: str) -> str | None:
    """Return a page as Markdown; None where no pattern has the code."""
    found = PAGES.get(code)
    if found is None:
        return None
    return (
        f"# {code}\n\n{found.title}.\n\n- found by: `hotloop trace analyze`\n\n## What counts\n{found.seen}\n\n"
        f"## Why it is slow\n{found.why}\n\n## What to do\n{found.fix}\n"
    )
