"""autocast_fp16: the forward in float16, with gradient scaling."""
