# SPDX-License-Identifier: Apache-2.0
"""Would Megatron-Bridge start with these overrides of its bare recipe, and what layers would it build? Its own code decides, on a processor: the
recipe, its parser of overrides, ConfigContainer.validate, and megatron-core's classes under them. What it imports beside (transformers,
datasets, vision models, conversion of checkpoints) is not wanted for that and stands as names without content."""
import contextlib, importlib.abc, importlib.machinery, io, json, os, sys, types

import megatron_verdict

NOTHING = ("transformers", "datasets", "PIL", "megatron.energon", "megatron.bridge.models.conversion")
# Packages of which single modules are imported, without what their __init__ does.
BARE = ("", ".models", ".models.hf_pretrained", ".models.common", ".models.gpt", ".models.hybrid", ".models.megatron_mimo", ".data",
        ".data.builders", ".data.datasets", ".data.energon", ".data.sources", ".recipes", ".recipes.gpt", ".recipes.gpt.h100", ".recipes.utils",
        ".training")


class Nothing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if any(name == each or name.startswith(each + ".") for each in NOTHING):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = type(sys.modules["triton"])(spec.name)   # any name of it is there
        module.__path__, module.__version__ = [], "0"
        return module

    def exec_module(self, module): pass


def load(core, folder):
    """Makes Bridge of `folder` importable beside megatron-core of `core` (megatron_verdict.load)."""
    sys.path.insert(0, folder)   # omegaconf, hydra: megatron-core looks for them when it is imported
    megatron_verdict.load(core)
    import megatron
    own = os.path.join(folder, "megatron")
    if own not in megatron.__path__: megatron.__path__.append(own)
    for name in BARE:
        module = types.ModuleType("megatron.bridge" + name)
        module.__path__ = [os.path.join(own, "bridge", *name.split(".")[1:])]
        module.__spec__ = importlib.machinery.ModuleSpec(module.__name__, None, is_package=True)
        sys.modules[module.__name__] = module
    sys.meta_path.insert(0, Nothing())
    import transformers
    transformers.GenerationConfig, transformers.PretrainedConfig = type("GenerationConfig", (), {}), type("PretrainedConfig", (), {})
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        from megatron.bridge.models.gpt_provider import GPTModelProvider
        models = sys.modules["megatron.bridge.models"]
        models.GPTModelProvider = GPTModelProvider
        from megatron.bridge.models.t5_provider import T5ModelProvider
        models.T5ModelProvider = T5ModelProvider
        import megatron.bridge.models.mla_provider, megatron.bridge.recipes.gpt.vanilla_gpt  # noqa
        import megatron.bridge.training.config, megatron.bridge.training.utils.omegaconf_utils  # noqa
        from torch.testing._internal.distributed import fake_pg  # noqa


def layers_of(model, world):
    import torch
    from megatron.core import parallel_state
    from megatron.core.transformer.transformer_block import get_num_layers_to_build
    from torch.testing._internal.distributed.fake_pg import FakeStore
    torch.distributed.init_process_group("fake", rank=0, world_size=world, store=FakeStore())
    chunks, ranks = model.virtual_pipeline_model_parallel_size, model.pipeline_model_parallel_size
    parallel_state.initialize_model_parallel(
        model.tensor_model_parallel_size, ranks, chunks, context_parallel_size=model.context_parallel_size,
        expert_model_parallel_size=model.expert_model_parallel_size, expert_tensor_parallel_size=model.expert_tensor_parallel_size,
        create_gloo_process_groups=False)
    layers = []
    for chunk in range(chunks or 1):
        for rank in range(ranks):
            parallel_state.set_pipeline_model_parallel_rank(rank)
            layers.append(get_num_layers_to_build(model, chunk if chunks else None, rank))
    if sum(layers) != model.num_layers: raise AssertionError(f"{sum(layers)} of {model.num_layers} layers built")
    return layers


def judge(world, overrides, connections):
    os.environ.update(WORLD_SIZE=str(world), RANK="0", LOCAL_RANK="0")
    os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
    if connections: os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = connections
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            from megatron.bridge.recipes.gpt.vanilla_gpt import vanilla_gpt_pretrain_config
            from megatron.bridge.training.config import runtime_config_update
            from megatron.bridge.training.utils.omegaconf_utils import process_config_with_overrides
            config = process_config_with_overrides(vanilla_gpt_pretrain_config(), cli_overrides=overrides)
            # the runner's: the sequence is the data set's (scripts/training/recipe_runner.py: sync_model_dataset_sequence_length)
            config.model.seq_length = config.dataset.seq_length
            runtime_config_update(config)
            model, train = config.model, config.train
            step = train.micro_batch_size * config.data_parallel_size
            if train.global_batch_size % step: raise AssertionError("the batch does not divide")
            M, V, P = train.global_batch_size // step, model.virtual_pipeline_model_parallel_size or 1, model.pipeline_model_parallel_size
            layers = layers_of(model, world)
            if V > 1:   # schedules.py, forward_backward_pipelining_with_interleaving
                group = model.microbatch_group_size_per_vp_stage
                if group > M or group < P or 0 < M % group < P: raise AssertionError(f"groups of {group} of {M}")
            if model.vocab_size and model.vocab_size % model.tensor_model_parallel_size: raise AssertionError("the vocabulary does not divide")
            return {"ok": True, "layers": layers, "M": M, "DP": config.data_parallel_size, "TP": model.tensor_model_parallel_size, "P": P, "V": V,
                    "CP": model.context_parallel_size, "EP": model.expert_model_parallel_size, "ETP": model.expert_tensor_parallel_size,
                    "microbatch size": train.micro_batch_size, "batch": train.global_batch_size, "sequence": model.seq_length,
                    "precision": str(model.params_dtype), "sharded": config.optimizer.use_distributed_optimizer,
                    "sequence parallel": model.sequence_parallel, "recompute": model.recompute_granularity or "none",
                    "experts": model.num_moe_experts or 0, "MTP": model.mtp_num_layers or 0,
                    "dropout": [model.hidden_dropout, model.attention_dropout],
                    "offloaded": config.optimizer.optimizer_offload_fraction if config.optimizer.optimizer_cpu_offload else 0,
                    "class": type(model).__name__, "activation": getattr(model.activation_func, "__name__", str(model.activation_func))}
    except Exception as problem:  # noqa: whatever it is, it would not have started
        return {"ok": False, "error": f"{type(problem).__name__}: {problem}"[:300]}


def forked(world, overrides, connections=None):
    """judge in a child: Megatron keeps its groups in globals."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.write(write, json.dumps(judge(world, overrides, connections)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe: text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"ok": False, "error": "died"}
