"""flash_attention: attention that is written out becomes one call."""
