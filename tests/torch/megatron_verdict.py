# SPDX-License-Identifier: Apache-2.0
"""Would Megatron-LM start with these arguments, and what layers would it build? Its own code decides, on a processor, without a GPU, Transformer
Engine or other processes: parse_args, validate_args, TransformerConfig, groups of a world of that size on a fake backend, the layers of every rank
and chunk, and the interleaved schedule's check of M."""
import argparse, contextlib, gc, importlib.machinery, io, json, os, sys, types, typing, warnings

warnings.simplefilter("ignore")


def load(folder):
    """Makes megatron-core of that folder importable under Python 3.11 and without triton, of which its configuration needs a name only."""
    sys.path[:0] = [folder]
    import typing_extensions
    if not hasattr(typing, "override"): typing.override = typing_extensions.override
    import torch, torch._dynamo, torch._inductor.runtime.autotune_cache, torch._inductor.codecache  # noqa: before the stub, which they would take for triton

    class Anything:
        def __init__(self, *_, **__): pass
        def __call__(self, *words, **names): return words[0] if len(words) == 1 and callable(words[0]) and not names else Anything()
        def __getattr__(self, name):
            if name.startswith("__"): raise AttributeError(name)
            return Anything()
        def __mul__(self, _): return self
        def __or__(self, _): return self

    class Stub(types.ModuleType):
        def __getattr__(self, name):
            if name.startswith("__"): raise AttributeError(name)
            return Anything()

    try: import triton  # noqa
    except ImportError:
        for name in ("triton", "triton.language"):
            module = Stub(name)
            module.__spec__, module.__path__, module.__version__ = importlib.machinery.ModuleSpec(name, None), [], "0"
            sys.modules[name] = module
        sys.modules["triton"].language = sys.modules["triton.language"]

    class Properties: major, minor, name, total_memory = 9, 0, "none", 80 << 30
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.get_device_properties = lambda *_: Properties
    torch.cuda.current_device = lambda *_: torch.device("cpu")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        from megatron.training import argument_utils, arguments
        from torch.testing._internal.distributed import fake_pg  # noqa: here once, not in every child
    # texts of the help, which cost a case most of its time: read from the source once
    factory, texts = argument_utils.ArgumentGroupFactory, {}
    read = factory._get_field_docstrings

    def read_once(self, kind, *rest):
        if kind not in texts: texts[kind] = read(self, kind, *rest)
        return dict(texts[kind])
    factory._get_field_docstrings = read_once
    arguments.add_megatron_arguments(argparse.ArgumentParser())
    gc.collect()
    gc.freeze()   # children copy no page that the collector would touch


def built(args):
    """The same of Megatron's arguments; raises where it would not start."""
    import torch
    from megatron.core import parallel_state
    from megatron.core.transformer.transformer_block import get_num_layers_to_build
    from megatron.training import arguments
    try: from megatron.training.argument_utils import core_transformer_config_from_args
    except ImportError: from megatron.training.arguments import core_transformer_config_from_args   # up to core 0.16
    from torch.testing._internal.distributed.fake_pg import FakeStore
    arguments.validate_args(args, {})
    config = core_transformer_config_from_args(args)
    from megatron.core import num_microbatches_calculator as batches
    step = args.micro_batch_size * args.data_parallel_size
    first = last = args.global_batch_size
    if getattr(args, "step_batch_size_schedule", None):   # of core 0.17 on
        batches.init_num_microbatches_calculator(0, None, args.global_batch_size, args.micro_batch_size, args.data_parallel_size, False,
                                                 args.step_batch_size_schedule, args.seq_length)
        first = batches.get_current_global_batch_size()
        batches.update_num_microbatches(10 ** 15, consistency_check=False)
        last = batches.get_current_global_batch_size()
    if first % step or last % step: raise AssertionError("the batch does not divide")
    microbatches = first // step
    torch.distributed.init_process_group("fake", rank=0, world_size=args.world_size, store=FakeStore())
    parallel_state.initialize_model_parallel(
        args.tensor_model_parallel_size, args.pipeline_model_parallel_size, args.virtual_pipeline_model_parallel_size,
        context_parallel_size=args.context_parallel_size, expert_model_parallel_size=args.expert_model_parallel_size,
        expert_tensor_parallel_size=args.expert_tensor_parallel_size, create_gloo_process_groups=False)
    chunks, ranks = config.virtual_pipeline_model_parallel_size, config.pipeline_model_parallel_size
    layers = []
    for chunk in range(chunks or 1):
        for rank in range(ranks):
            parallel_state.set_pipeline_model_parallel_rank(rank)
            layers.append(get_num_layers_to_build(config, chunk if chunks else None, rank))
    if sum(layers) != args.num_layers: raise AssertionError(f"{sum(layers)} of {args.num_layers} layers built")
    if (chunks or 1) > 1 and not getattr(args, "patch_zero_bubble", False):   # schedules.py, forward_backward_pipelining_with_interleaving
        group = config.microbatch_group_size_per_vp_stage
        if group > microbatches or group < ranks or 0 < microbatches % group < ranks: raise AssertionError(f"groups of {group} of {microbatches}")
    return {"ok": True, "layers": layers, "M": last // step, "first M": first // step, "DP": args.data_parallel_size, "TP": config.tensor_model_parallel_size, "P": ranks,
            "CP": config.context_parallel_size, "EP": config.expert_model_parallel_size, "ETP": config.expert_tensor_parallel_size,
            "V": chunks or 1, "microbatch size": args.micro_batch_size, "batch": last,
            "sequence": args.seq_length, "precision": str(args.params_dtype), "sharded": args.use_distributed_optimizer or getattr(args, "use_layer_wise_distributed_optimizer", False),
            "sequence parallel": config.sequence_parallel, "recompute": config.recompute_granularity or "none",
            "experts": config.num_moe_experts or 0, "MTP": config.mtp_num_layers or 0,
            "dropout": [config.hidden_dropout, config.attention_dropout],
            "offloaded": args.optimizer_offload_fraction if getattr(args, "optimizer_cpu_offload", False) else 0}


def judge(world, flags, connections):
    """{ ok, layers by stages, M, DP, … } or { ok: False, error }; in a process of its own."""
    os.environ.update(WORLD_SIZE=str(world), RANK="0", LOCAL_RANK="0")
    os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
    if connections: os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = connections
    sink = io.StringIO()
    try:
        with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            from megatron.training import arguments
            sys.argv = ["pretrain_gpt.py", *flags]
            return built(arguments.parse_args())
    except SystemExit as problem:
        return {"ok": False, "error": " ".join(sink.getvalue().strip().splitlines()[-1:]) or str(problem)}
    except Exception as problem:  # noqa: whatever it is, it would not have started
        return {"ok": False, "error": f"{type(problem).__name__}: {problem}"[:300]}


def forked(world, flags, connections="1"):
    """judge in a child: Megatron keeps its groups in globals. connections: CUDA_DEVICE_MAX_CONNECTIONS."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.write(write, json.dumps(judge(world, flags, connections)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe: text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"ok": False, "error": "died"}
