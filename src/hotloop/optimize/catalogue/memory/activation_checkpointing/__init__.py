"""activation_checkpointing: blocks of the model are computed again in the backward."""
