"""What the names of torch's own functions, methods and classes tell about their results."""

from hotloop.lint.name_lists import words

FACTORIES = words(
    """
    zeros ones empty full rand randn randint randperm arange linspace logspace eye tensor as_tensor
    from_numpy normal scalar_tensor tril_indices triu_indices
    """,
    prefix="torch.",
)
"""Make a tensor on the host unless they are told a device."""

OPERATIONS = words(
    """
    abs add addmm all any argmax argmin argsort baddbmm bernoulli bincount bmm bucketize cat cdist ceil
    chunk clamp clip concat concatenate conj cos cosh cov cross cumprod cumsum diag diff div dot einsum
    eq erf exp expm1 flatten flip floor fmod gather ge gt histc hstack isfinite isinf isnan isclose kron
    le lerp log log10 log1p log2 logical_and logical_not logical_or logsumexp lt masked_select matmul
    max mean median min minimum maximum mm mul multinomial mv nan_to_num ne neg nonzero norm outer
    permute pow prod quantile reciprocal relu reshape roll round rsqrt scatter select sigmoid sign sin
    softmax log_softmax sort split sqrt square squeeze stack std sub sum swapaxes swapdims t tanh
    tensordot tile topk trace transpose tril triu unbind unique unsqueeze var vstack where zeros_like
    ones_like empty_like full_like rand_like randn_like randint_like clone
    """,
    prefix="torch.",
)
"""Give a tensor (or a tuple of tensors) where their arguments are."""

TENSOR_METHODS = words(
    """
    abs add add_ addmm all any argmax argmin argsort backward bfloat16 bmm bool ceil chunk clamp clamp_
    clamp_min clamp_max clip clone conj contiguous cos cpu cuda cumprod cumsum detach detach_ diag
    diagonal div div_ dot double eq erf exp expand expand_as fill_ flatten flip float floor gather ge gt
    half index_select int isfinite isinf isnan item le lerp log log1p log2 log_softmax logical_and
    logical_not logical_or logsumexp long lt masked_fill masked_fill_ masked_select matmul max mean
    median min mm mul mul_ mv narrow ne neg new_full new_ones new_zeros new_tensor nonzero norm numpy
    permute pow prod reciprocal repeat repeat_interleave requires_grad_ reshape roll round rsqrt scatter
    scatter_ scatter_add select sigmoid sign sin softmax sort split sqrt square squeeze squeeze_ std sub
    sub_ sum swapaxes t tanh tile to tolist topk transpose tril triu type_as unbind unfold unique
    unsqueeze unsqueeze_ var view view_as where zero_
    """
)
"""Methods that a tensor has; on the output of a module they can only mean a tensor's."""

PIECES = frozenset({"chunk", "split", "unbind", "tensor_split"})
"""Give a tuple of tensors; going through it is no loop over rows."""


PLAIN_METHODS = words(
    """
    size dim numel nelement element_size stride ndimension is_contiguous get_device data_ptr type
    backward register_hook storage_offset is_floating_point is_complex
    """
)
"""Answer from the host's own record of the tensor: no waiting."""

TENSOR_ATTRIBUTES = frozenset({"data", "grad", "T", "mT", "H", "mH", "real", "imag"})
"""Attributes that are tensors themselves; all others are plain."""

MODULE_EVIDENCE = words(
    """
    parameters named_parameters train eval load_state_dict named_modules
    """
)
"""Methods that only a module has among the things a training script calls."""

STRUCTURED_MODULES = words(
    """
    RNN LSTM GRU LSTMCell MultiheadAttention Sequential ModuleList ModuleDict Module DataParallel
    ParameterList ParameterDict
    """,
    prefix="torch.nn.",
)
"""Modules of torch.nn whose output need not be one tensor."""

LOADERS = frozenset({"torch.utils.data.DataLoader", "torch_geometric.loader.DataLoader"})

MODULE_BASES = words(
    """
    torch.nn.Module torch.nn.Sequential lightning.pytorch.LightningModule transformers.PreTrainedModel
    torch.nn.ModuleList
    """
)

OPTIMIZERS = "torch.optim."
