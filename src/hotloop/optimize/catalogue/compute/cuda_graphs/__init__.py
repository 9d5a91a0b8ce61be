"""cuda_graphs: the forward and backward of a model replayed as graphs, without compiling it."""
