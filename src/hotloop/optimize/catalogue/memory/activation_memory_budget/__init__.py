"""activation_memory_budget: compiled code keeps a part of its activations and computes the rest again."""
