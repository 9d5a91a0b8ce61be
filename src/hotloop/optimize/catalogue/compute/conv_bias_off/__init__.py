"""conv_bias_off: no bias where batch norm takes it away again."""
