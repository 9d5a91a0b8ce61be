"""channels_last and channels_last_3d: convolutions on tensors whose channels are innermost."""
