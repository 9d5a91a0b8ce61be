"""The table of scripts: where each one is found, how it is made short, and what data it gets."""

from __future__ import annotations

from typing import Any

import msgspec

from benchmarks.tune.tuned import ByHand


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One published script."""

    name: str
    repository: str
    """`owner/name` on github.com."""
    commit: str
    script: str
    """Path in the repository; the program runs in its folder, or in `folder`."""
    arguments: tuple[str, ...] = ()
    """What makes it short; `{data}` is the folder of its data."""
    data: str | None = None
    """A function of `data.py`, called with the folder named `at`."""
    at: str = "data"
    """Where the data goes: a path in the repository, relative to the folder that the program runs in."""
    folder: str | None = None
    packages: tuple[str, ...] = ()
    """Modules it imports beside torch, numpy and what hotloop's tests need."""
    environment: dict[str, str] = {}
    constants: dict[str, Any] = {}
    """`module.object.NAME` to a value, set before it runs: what has no option (epochs)."""
    seeded: bool = False
    """Two runs of it print the same losses."""
    loss: str = r"[Ll]oss[^0-9\-]{0,20}(-?[0-9]+\.[0-9]+(?:e-?[0-9]+)?)"
    """Finds losses in its output; the last one counts."""
    by_hand: tuple[ByHand, ...] = ()
    or_by_hand: tuple[tuple[ByHand, ...], ...] = ()
    """Other plans that somebody may come to by hand; the fastest of all counts."""
    long: dict[str, str] = {}
    """Arguments, or values of options, in place of those that made it short: tuning needs a program that goes on."""


_EXAMPLES = ("pytorch/examples", "77f55b912142e11fcfdf5b530231fb9c52f181e8")
_TUTORIAL = ("yunjey/pytorch-tutorial", "0500d3df5a2a8080ccfccbc00aca0eacc21818db")
_THREADS = ByHand("thread_count", {"num_threads": 1})
_FUSED = ByHand("fused_optimizer")
_WORKERS = ByHand("loader_workers", {"num_workers": 2})
_BF16 = ByHand("autocast_bf16")
_COMPILE = ByHand("compile", {"mode": "default"})
_IN_MEMORY = ByHand("dataset_in_memory")
_WAIT = ByHand("openmp_wait_policy")
_OLD_NUMPY = {"numpy.Inf": float("inf")}
"""What NumPy 2 no longer has."""

CORPUS: tuple[Entry, ...] = (
    Entry(
        name="mnist",
        repository=_EXAMPLES[0], commit=_EXAMPLES[1], script="mnist/main.py",
        arguments=("--epochs", "1", "--no-accel", "--log-interval", "5"),
        data="mnist", at="../data", packages=("torchvision",), seeded=True,
        by_hand=(_BF16, _IN_MEMORY), or_by_hand=((_BF16, ByHand("channels_last")),), long={"--epochs": "1000"},
    ),
    Entry(
        name="vae",
        repository=_EXAMPLES[0], commit=_EXAMPLES[1], script="vae/main.py",
        arguments=("--epochs", "2", "--no-accel", "--log-interval", "5"),
        data="mnist", at="../data", packages=("torchvision",), seeded=True,
        by_hand=(_IN_MEMORY, _BF16), or_by_hand=((_IN_MEMORY,),),
        long={"--epochs": "1000"},
    ),
    Entry(
        name="word_language_model",
        repository=_EXAMPLES[0], commit=_EXAMPLES[1], script="word_language_model/main.py",
        arguments=("--epochs", "1", "--emsize", "64", "--nhid", "64", "--log-interval", "10"),
        data="wikitext", at="data/wikitext-2", seeded=True, loss=r"loss\s+([0-9.]+)",
        long={"--epochs": "1000"},
    ),
    Entry(
        name="imagenet_resnet18",
        repository=_EXAMPLES[0], commit=_EXAMPLES[1], script="imagenet/main.py",
        arguments=("--dummy", "--arch", "resnet18", "--batch-size", "16", "--workers", "2", "--no-accel"),
        packages=("torchvision",), loss=r"Loss ([0-9.]+e[+-][0-9]+)", by_hand=(_BF16, ByHand("channels_last")),
        or_by_hand=((_BF16,), (ByHand("channels_last"),)),
    ),
    Entry(
        name="dcgan",
        repository=_EXAMPLES[0], commit=_EXAMPLES[1], script="dcgan/main.py",
        arguments=("--dataset", "fake", "--manualSeed", "1", "--batchSize", "16", "--niter", "1"),
        packages=("torchvision",), loss=r"Loss_D: ([0-9.]+)", by_hand=(_BF16, ByHand("channels_last")),
        or_by_hand=((ByHand("channels_last"),),), long={"--niter": "1000"},
    ),
    Entry(
        name="siamese_network",
        repository=_EXAMPLES[0], commit=_EXAMPLES[1], script="siamese_network/main.py",
        arguments=("--epochs", "1", "--no-accel", "--log-interval", "5"),
        data="mnist", at="../data", packages=("torchvision",), seeded=True, by_hand=(_BF16, ByHand("channels_last")),
        or_by_hand=((_BF16,), (_WORKERS,)), long={"--epochs": "1000"},
    ),
    Entry(
        name="mnist_rnn",
        repository=_EXAMPLES[0], commit=_EXAMPLES[1], script="mnist_rnn/main.py",
        arguments=("--epochs", "1", "--log-interval", "5"),
        data="mnist", at="../data", packages=("torchvision",), seeded=True,
        by_hand=(_IN_MEMORY, _THREADS), or_by_hand=((_IN_MEMORY,), (_WORKERS,)), long={"--epochs": "1000"},
    ),
    Entry(
        name="gat",
        repository=_EXAMPLES[0], commit=_EXAMPLES[1], script="gat/main.py",
        arguments=("--epochs", "4", "--no-accel", "--val-every", "2"),
        data="cora", at="cora", packages=("requests",), seeded=True, loss=r"Train Loss: ([0-9.]+)",
        by_hand=(ByHand("cpu_allocator", {"allocator": "glibc"}),), or_by_hand=((_COMPILE,), (_FUSED,)),
        long={"--epochs": "100000"},
    ),
    Entry(
        name="forward_forward",
        repository=_EXAMPLES[0], commit=_EXAMPLES[1], script="mnist_forward_forward/main.py",
        arguments=("--epochs", "20", "--no_accel", "--train_size", "1000", "--test_size", "100"),
        data="mnist", packages=("torchvision",), seeded=True, loss=r"Loss: +([0-9.]+)",
        by_hand=(_FUSED, ByHand("cpu_allocator", {"allocator": "glibc"})), or_by_hand=((_FUSED,), (_COMPILE,)),
        long={"--epochs": "1000000"},
    ),
    Entry(
        name="time_sequence_prediction",
        repository=_EXAMPLES[0], commit=_EXAMPLES[1], script="time_sequence_prediction/train.py",
        arguments=("--steps", "1"), data="sines", at=".", packages=("matplotlib",), seeded=True,
        environment={"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"},
        by_hand=(_THREADS,), or_by_hand=((ByHand("cpu_allocator", {"allocator": "glibc"}),),),
        long={"--steps": "1000"},
    ),
    Entry(
        name="actor_critic",
        repository=_EXAMPLES[0], commit=_EXAMPLES[1], script="reinforcement_learning/actor_critic.py",
        packages=("gymnasium",), loss=r"Average reward: ([0-9.]+)", by_hand=(_THREADS, _FUSED),
    ),
    Entry(
        name="wgan_gp",
        repository="eriklindernoren/PyTorch-GAN", commit="36d3c77e5ff20ebe0aeefd322326a134a279b93e",
        script="implementations/wgan_gp/wgan_gp.py", arguments=("--n_epochs", "1"),
        data="mnist", at="../../data/mnist", packages=("torchvision",), loss=r"D loss: (-?[0-9.]+)",
        by_hand=(_IN_MEMORY, _FUSED), or_by_hand=((_IN_MEMORY, _THREADS), (_WORKERS,)), long={"--n_epochs": "1000"},
    ),
    Entry(
        name="mingpt_adder",
        repository="karpathy/minGPT", commit="37baab71b9abea1b76ab957409a1cc2fbfba8a26",
        script="projects/adder/adder.py",
        arguments=("--trainer.max_iters=60", "--trainer.num_workers=0", "--trainer.batch_size=16"),
        environment={"PYTHONPATH": "{repository}"}, seeded=True,
        loss=r"train loss ([0-9.]+)", by_hand=(_FUSED, _BF16), or_by_hand=((_FUSED,),),
        long={"--trainer.max_iters=60": "--trainer.max_iters=1000000"},
    ),
    Entry(
        name="nanogpt",
        repository="karpathy/nanoGPT", commit="3adf61e154c3fe3fca428ad6bc3818b27a3b8291", script="train.py",
        arguments=(
            "--device=cpu", "--compile=False", "--eval_iters=2", "--eval_interval=20", "--log_interval=1",
            "--block_size=64", "--batch_size=8", "--n_layer=2", "--n_head=2", "--n_embd=64", "--max_iters=40",
            "--lr_decay_iters=40", "--dropout=0.0", "--dataset=shakespeare_char", "--gradient_accumulation_steps=1",
        ),
        data="shakespeare", at="data/shakespeare_char", seeded=True,
        loss=r"iter \d+: loss ([0-9.]+)", by_hand=(_FUSED, _BF16, _COMPILE), or_by_hand=((_FUSED, _COMPILE), (_FUSED,)),
        long={"--max_iters=40": "--max_iters=1000000", "--eval_interval=20": "--eval_interval=2000"},
    ),
    Entry(
        name="makemore",
        repository="karpathy/makemore", commit="988aa59e4d8fefa526d06f3b453ad116258398d4", script="makemore.py",
        arguments=(
            "-i", "names.txt", "-o", "out", "--max-steps", "120", "--n-layer", "2", "--n-embd", "32", "--num-workers",
            "0",
        ),
        packages=("tensorboard",), seeded=True, by_hand=(_THREADS, _FUSED),
        or_by_hand=((_FUSED,), (_COMPILE,)),
        long={"--max-steps": "1000000"},
    ),
    Entry(
        name="ignite_mnist",
        repository="pytorch/ignite", commit="de08e799cfb55a6cf4aa778575d6bad725385453",
        script="examples/mnist/mnist.py", arguments=("--epochs", "1"),
        data="mnist", at=".", packages=("torchvision", "ignite", "tqdm"),
        loss=r"Avg loss: ([0-9.]+)", by_hand=(_WORKERS,),
        long={"--epochs": "1000"},
    ),
    Entry(
        name="pytorch_gan",
        repository="eriklindernoren/PyTorch-GAN", commit="36d3c77e5ff20ebe0aeefd322326a134a279b93e",
        script="implementations/gan/gan.py", arguments=("--n_epochs", "1", "--batch_size", "32"),
        data="mnist", at="../../data/mnist", packages=("torchvision",), loss=r"D loss: ([0-9.]+)",
        by_hand=(_FUSED, _WORKERS), or_by_hand=((_IN_MEMORY, _BF16, _FUSED),),
        long={"--n_epochs": "1000"},
    ),
    Entry(
        name="cleanrl_ppo",
        repository="vwxyzjn/cleanrl", commit="fe8d8a03c41a7ef5b523e2e354bd01c363e786bb", script="cleanrl/ppo.py",
        arguments=("--total-timesteps", "3000", "--no-cuda"), packages=("gymnasium", "tyro", "tensorboard"),
        folder=".", loss=r"episodic_return=\D*([0-9.]+)", by_hand=(_THREADS,),
        long={"--total-timesteps": "10000000"},
    ),
    Entry(
        name="cifar100",
        repository="weiaicunzai/pytorch-cifar100", commit="11d8418f415b261e4ae3cb1ffe20d06ec95b98e4",
        script="train.py", arguments=("-net", "squeezenet", "-b", "16"), data="cifar100",
        packages=("torchvision", "tensorboard", "matplotlib"),
        constants={"conf.settings.EPOCH": 1}, loss=r"Loss: ([0-9.]+)",
        by_hand=(ByHand("channels_last"), _BF16, ByHand("cpu_allocator", {"allocator": "glibc"})),
        or_by_hand=((ByHand("channels_last"), _BF16, ByHand("persistent_workers")),),
    ),
    Entry(
        name="unet",
        repository="milesial/Pytorch-UNet", commit="21d7850f2af30a9695bbeea75f3136aa538cfc4a", script="train.py",
        arguments=("--epochs", "1", "--batch-size", "1", "--scale", "0.25"), data="masks",
        packages=("torchvision", "wandb", "matplotlib"), environment={"WANDB_MODE": "disabled"},
        loss=r"loss \(batch\)=([0-9.]+)", by_hand=(ByHand("channels_last"), _BF16),
        or_by_hand=((_BF16,), (_BF16, ByHand("cpu_allocator", {"allocator": "glibc"}))),
        long={"--epochs": "1000"},
    ),
    Entry(
        name="pygcn",
        repository="tkipf/pygcn", commit="1600b5b748b3976413d1e307540ccc62605b4d6d", script="pygcn/train.py",
        arguments=("--no-cuda", "--epochs", "60"), environment={"PYTHONPATH": "{repository}"},
        data="cora", at="../data/cora", packages=("scipy",), seeded=True,
        loss=r"loss= ([0-9.]+)", by_hand=(_FUSED, _THREADS),
        long={"--epochs": "1000000"},
    ),
    Entry(
        name="pygat",
        repository="Diego999/pyGAT", commit="3664f2dc90cbf971564c0bf186dc794f12446d0c", script="train.py",
        arguments=("--no-cuda", "--epochs", "4", "--hidden", "2", "--nb_heads", "2"), packages=("scipy",),
        data="cora", at="data/cora",
        seeded=True, loss=r"loss_train: ([0-9.]+)", by_hand=(ByHand("cpu_allocator", {"allocator": "glibc"}),),
        long={"--epochs": "100000"},
    ),
    Entry(
        name="tutorial_convolution",
        repository="yunjey/pytorch-tutorial", commit="0500d3df5a2a8080ccfccbc00aca0eacc21818db",
        script="tutorials/02-intermediate/convolutional_neural_network/main.py", data="mnist", at="../../data",
        packages=("torchvision",), by_hand=(_WORKERS, ByHand("channels_last")), or_by_hand=((_IN_MEMORY, _FUSED),),
    ),
    Entry(
        name="tcn_adding_problem",
        repository="locuslab/TCN", commit="2f8c2b817050206397458dfd1f5a25ce8a32fe65",
        script="TCN/adding_problem/add_test.py",
        arguments=("--cuda", "--epochs", "1", "--levels", "2", "--seq_len", "24", "--batch_size", "256"),
        environment={"PYTHONPATH": "{repository}"}, by_hand=(_THREADS, _FUSED), or_by_hand=((_BF16,), (_FUSED,)),
        long={"--epochs": "1000"},
    ),
    Entry(
        name="ltsf_linear",
        repository="cure-lab/LTSF-Linear", commit="0c113668a3b88c4c4ee586b8c5ec3e539c4de5a6", script="run_longExp.py",
        arguments=(
            "--is_training", "1", "--model_id", "made", "--model", "DLinear", "--data", "custom", "--root_path",
            "{data}", "--data_path", "series.csv", "--seq_len", "96", "--pred_len", "24", "--enc_in", "7",
            "--train_epochs", "1", "--itr", "1", "--num_workers", "0",
        ),
        data="series", packages=("pandas", "sklearn", "matplotlib"), constants=_OLD_NUMPY, seeded=True,
        loss=r"Train Loss: ([0-9.]+)",
        by_hand=(_THREADS, _FUSED),
        long={"--train_epochs": "1000"},
    ),
    Entry(
        name="informer",
        repository="zhouhaoyi/Informer2020", commit="29f2a739226a509202a092b464163da81fa74960",
        script="main_informer.py",
        arguments=(
            "--model", "informer", "--data", "custom", "--root_path", "{data}", "--data_path", "series.csv",
            "--train_epochs", "1", "--itr", "1", "--d_model", "32", "--d_ff", "64", "--seq_len", "48", "--label_len",
            "24", "--pred_len", "12", "--features", "S", "--enc_in", "1", "--dec_in", "1", "--c_out", "1",
        ),
        data="series", packages=("pandas",), constants=_OLD_NUMPY, loss=r"Train Loss: ([0-9.]+)",
        by_hand=(_BF16, _FUSED),
        long={"--train_epochs": "1000"},
    ),
    Entry(
        name="vae_cvae",
        repository="timbmg/VAE-CVAE-MNIST", commit="4f1b22367a5c5cff88bf97ce78219132aa9fd977", script="train.py",
        arguments=("--epochs", "1", "--print_every", "5", "--conditional"), data="mnist",
        packages=("torchvision", "pandas", "seaborn", "matplotlib"), seeded=True,
        environment={"MPLBACKEND": "Agg"}, by_hand=(_WORKERS, _FUSED),
        long={"--epochs": "1000", "--print_every": "100"},
    ),
    Entry(
        name="dlrm",
        repository="facebookresearch/dlrm", commit="090956ee2319ddd349a42232958aefccfe3f7b0a",
        script="dlrm_s_pytorch.py",
        arguments=("--mini-batch-size=64", "--num-batches=200", "--print-freq=20", "--arch-embedding-size=400-300-200"),
        packages=("sklearn", "onnx", "tensorboard"), seeded=True, loss=r"loss ([0-9.]+)",
        by_hand=(_THREADS,),
        long={"--num-batches=200": "--num-batches=1000000"},
    ),
    Entry(
        name="timm_train",
        repository="huggingface/pytorch-image-models", commit="aa4b5850c1543fa488abf260f18390eda46cf85d",
        script="train.py",
        arguments=(
            "--data-dir", "{data}", "--model", "resnet18", "-b", "8", "--epochs", "1", "--img-size", "64", "--device",
            "cpu", "--num-classes", "3", "--workers", "1", "--log-interval", "1", "--sched", "step",
            "--warmup-epochs", "0",
        ),
        data="image_folder", packages=("torchvision", "timm"), seeded=True, loss=r"Loss: *([0-9.]+)",
        by_hand=(ByHand("channels_last"), _BF16, _WORKERS), or_by_hand=((_BF16, _FUSED), (_FUSED,)),
        long={"--epochs": "1000"},
    ),
    Entry(
        name="fabric_image_classifier",
        repository="Lightning-AI/pytorch-lightning", commit="7f0c3436cd3f6ad3753125672024fc415cbcb414",
        script="examples/fabric/image_classifier/train_fabric.py",
        arguments=("--epochs", "1", "--log-interval", "5"), data="mnist", at="../../../Datasets",
        packages=("torchvision",), seeded=True, by_hand=(_BF16, _IN_MEMORY), or_by_hand=((_IN_MEMORY,),),
        long={"--epochs": "1000"},
    ),
    Entry(
        name="monai_unet",
        repository="Project-MONAI/tutorials", commit="b3c6c998c931d78b61c4d32b37f962a987400f8a",
        script="3d_segmentation/torch/unet_training_array.py",
        packages=("monai", "nibabel", "tensorboard"), loss=r"train_loss: ([0-9.]+)",
        by_hand=(_BF16, ByHand("channels_last_3d")), or_by_hand=((_BF16,),),
    ),
    Entry(
        name="two_layer_net",
        repository="jcjohnson/pytorch-examples",
        commit="0003fcdc606a79951e53bf8f46f8574fa4739f23",
        script="nn/two_layer_net_optim.py",
        loss=r"^\d+ ([0-9.e-]+)$", by_hand=(_FUSED,),
    ),
    Entry(
        name="morvan_optimizers",
        repository="MorvanZhou/PyTorch-Tutorial",
        commit="dbe154a9e56635e51c6b0c2ccea8ae36cfb585a7",
        script="tutorial-contents/306_optimizer.py",
        packages=("matplotlib",), by_hand=(_THREADS,),
    ),
    Entry(
        name="zero_to_all_mnist",
        repository="hunkim/PyTorchZeroToAll",
        commit="e5a260fac0b4ff1e2ec434fc6f0d962ac97fc289",
        script="08_2_dataset_loade_logistic.py",
        by_hand=(_WORKERS,),
    ),
    Entry(
        name="nlp_tutorial_nnlm",
        repository="graykode/nlp-tutorial",
        commit="d05e31ec81d56d70c1db89b99ab07e948f7ebc11",
        script="1-1.NNLM/NNLM.py",
        loss=r"cost = +([0-9.]+)", by_hand=(_THREADS, _FUSED),
    ),
    Entry(
        name="super_resolution",
        repository=_EXAMPLES[0], commit=_EXAMPLES[1], script="super_resolution/main.py",
        arguments=("--upscale_factor", "3", "--batchSize", "4", "--nEpochs", "1", "--lr", "0.001"),
        data="photographs", at="dataset", packages=("torchvision", "six"),
        by_hand=(_BF16, ByHand("channels_last")), or_by_hand=((_WORKERS,), (ByHand("cached_preprocessing"),)),
        long={"--nEpochs": "1000"},
    ),
    Entry(
        name="tutorial_gan",
        repository=_TUTORIAL[0], commit=_TUTORIAL[1],
        script="tutorials/03-advanced/generative_adversarial_network/main.py",
        data="mnist", at="../../data", packages=("torchvision",), loss=r"d_loss: ([0-9.]+)",
        by_hand=(_IN_MEMORY, _FUSED), or_by_hand=((_IN_MEMORY,), (_WORKERS,)),
    ),
    Entry(
        name="tutorial_resnet",
        repository=_TUTORIAL[0], commit=_TUTORIAL[1], script="tutorials/02-intermediate/deep_residual_network/main.py",
        data="cifar10", at="../../data", packages=("torchvision",),
        by_hand=(_BF16, ByHand("channels_last")), or_by_hand=((_BF16,), (ByHand("channels_last"),)),
    ),
    Entry(
        name="tutorial_rnn_language_model",
        repository=_TUTORIAL[0], commit=_TUTORIAL[1], script="tutorials/02-intermediate/language_model/main.py",
        data="penn_treebank", by_hand=(_BF16, _FUSED), or_by_hand=((_BF16,), (_FUSED,)),
    ),
    Entry(
        name="pytorch_cifar",
        repository="kuangliu/pytorch-cifar", commit="49b7aa97b0c12fe0d4054e670403a16b6b834ddd", script="main.py",
        data="cifar10", packages=("torchvision",), loss=r"Loss: ([0-9.]+)",
        by_hand=(_BF16, ByHand("channels_last")), or_by_hand=((_BF16,), (ByHand("channels_last"),)),
    ),
    Entry(
        name="llama2c",
        repository="karpathy/llama2.c", commit="350e04fe35433e6d2941dce5a1f53308f87058eb", script="train.py",
        arguments=(
            "--device=cpu", "--compile=False", "--dtype=float32", "--vocab_source=custom", "--vocab_size=512",
            "--dim=64", "--n_layers=5", "--n_heads=8", "--n_kv_heads=4", "--max_seq_len=128", "--batch_size=16",
            "--eval_interval=20", "--eval_iters=2", "--max_iters=40",
        ),
        data="tokens", at="data/tok512", packages=("sentencepiece", "requests", "tqdm"), seeded=True,
        loss=r"\d+ \| loss ([0-9.]+)", by_hand=(_BF16, _FUSED, _COMPILE), or_by_hand=((_FUSED, _COMPILE), (_FUSED,)),
        long={"--max_iters=40": "--max_iters=1000000", "--eval_interval=20": "--eval_interval=2000"},
    ),
    Entry(
        name="ode_demo",
        repository="rtqichen/torchdiffeq", commit="657943acefa826ef04c025ebeb1ff5e9d60dc268",
        script="examples/ode_demo.py", arguments=("--niters", "40"), environment={"PYTHONPATH": "{repository}"},
        packages=("scipy",), loss=r"Total Loss ([0-9.]+)", by_hand=(_THREADS,), or_by_hand=((_THREADS, _FUSED),),
        long={"--niters": "1000000"},
    ),
    Entry(
        name="simclr",
        repository="sthalles/SimCLR", commit="1848fc934ad844ae630e6c452300433fe99acfd9", script="run.py",
        arguments=(
            "-dataset-name", "cifar10", "-data", "{data}", "--workers", "2", "--epochs", "1", "--batch-size", "64",
            "--disable-cuda",
        ),
        data="cifar10", at="datasets", packages=("torchvision", "tensorboard", "tqdm"),
        by_hand=(_BF16, ByHand("channels_last")), or_by_hand=((ByHand("persistent_workers"),),),
        long={"--epochs": "1000"},
    ),
    Entry(
        name="lightgcn",
        repository="gusye1234/LightGCN-PyTorch", commit="947ca2b3b1d2d3545b114145710cb06c4e57b3d2",
        script="code/main.py",
        arguments=("--dataset", "lastfm", "--epochs", "2", "--layer", "3", "--recdim", "64", "--tensorboard", "0"),
        packages=("scipy", "pandas", "sklearn", "tensorboardX", "tqdm"), seeded=True,
        loss=r"loss([0-9.]+)-", by_hand=(_FUSED, ByHand("cpu_allocator", {"allocator": "glibc"})),
        or_by_hand=((_FUSED,), (_THREADS,)), long={"--epochs": "100000"},
    ),
)  # fmt: skip
