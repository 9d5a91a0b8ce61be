"""The optimizations of what is computed and how, in the order in which they are shown."""

from hotloop.optimize.catalogue.compute.channels_last import ChannelsLast, ChannelsLast3d
from hotloop.optimize.catalogue.compute.compile import Compile
from hotloop.optimize.catalogue.compute.compiled_chains import CompiledChains
from hotloop.optimize.catalogue.compute.conv_bias_off import ConvBiasOff
from hotloop.optimize.catalogue.compute.created_on_device import CreatedOnDevice
from hotloop.optimize.catalogue.compute.cuda_graphs import CudaGraphs
from hotloop.optimize.catalogue.compute.debug_apis_off import DebugApisOff
from hotloop.optimize.catalogue.compute.deferred_sync import DeferredSync
from hotloop.optimize.catalogue.compute.flash_attention import FlashAttention
from hotloop.optimize.catalogue.compute.foreach_clipping import ForeachClipping
from hotloop.optimize.catalogue.compute.frozen_inference import FrozenInference
from hotloop.optimize.catalogue.compute.fused_layers import FusedLayers
from hotloop.optimize.catalogue.compute.fused_optimizer import FusedOptimizer
from hotloop.optimize.catalogue.compute.fused_pointwise import FusedPointwise
from hotloop.optimize.catalogue.compute.fused_recurrence import FusedRecurrence
from hotloop.optimize.catalogue.compute.kernel_autotune import KernelAutotune
from hotloop.optimize.catalogue.compute.liger_kernels import LigerKernels
from hotloop.optimize.catalogue.compute.no_grad_evaluation import NoGradEvaluation
from hotloop.optimize.catalogue.compute.vectorized_loop import VectorizedLoop
from hotloop.optimize.catalogue.compute.zero_grad_none import ZeroGradNone
from hotloop.optimize.optimization import Optimization

FAMILY: tuple[type[Optimization], ...] = (
    Compile,
    CudaGraphs,
    FlashAttention,
    FusedPointwise,
    CompiledChains,
    FusedLayers,
    LigerKernels,
    ChannelsLast,
    ChannelsLast3d,
    KernelAutotune,
    ConvBiasOff,
    FusedOptimizer,
    ForeachClipping,
    ZeroGradNone,
    DeferredSync,
    FrozenInference,
    CreatedOnDevice,
    VectorizedLoop,
    FusedRecurrence,
    NoGradEvaluation,
    DebugApisOff,
)
