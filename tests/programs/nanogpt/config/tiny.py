# a configuration file: plain assignments, executed by the script
n_layer = 2
n_head = 2
n_embd = 64
block_size = 64
batch_size = 8
