# SPDX-License-Identifier: Apache-2.0
"""What DeepSpeed's own code says of a configuration and of the arguments of PipelineModule, without a GPU and without processes: it makes the
module over the topology, of empty layers, and deepspeed.initialize makes the engine, on a process group that sends nothing. What DeepSpeed
counts by itself is read from the engine that it made."""
import contextlib
import io
import os
import sys
import tempfile
import warnings

SOURCES = ("deepspeed", "hjson", "pydantic")


def missing():
    """A name of what is not installed, or None."""
    import importlib.util
    for name in SOURCES:
        if importlib.util.find_spec(name) is None: return name
    return None


@contextlib.contextmanager
def quiet():
    sink = io.StringIO()
    with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink): yield


def load():
    """Imports DeepSpeed; what would compile, and what would measure this machine's memory, is left out: half a minute of nothing asked here."""
    import logging
    os.environ.update(DS_ACCELERATOR="cpu", LOCAL_RANK="0", RANK="0", WORLD_SIZE="1", CUDA_VISIBLE_DEVICES="", DS_IGNORE_CUDA_DETECTION="1")
    warnings.simplefilter("ignore")
    import torch
    torch.compile = lambda function=None, **_: function if function else lambda given: given
    for name in ("__init__", "add_param_group", "zero_grad", "state_dict", "load_state_dict"):
        inner = getattr(vars(torch.optim.Optimizer)[name], "__wrapped__", None)
        if inner is not None: inner.__dynamo_disable = inner
    with quiet():
        import deepspeed
        import deepspeed.runtime.bf16_optimizer
        import deepspeed.runtime.zero.stage3
        import deepspeed.runtime.zero.stage_1_and_2  # noqa: F401
        from deepspeed.accelerator import get_accelerator
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("deepspeed") and hasattr(module, "see_memory_usage"):
            module.see_memory_usage = lambda *_, **__: None
    get_accelerator().is_fp16_supported = lambda: True   # of a GPU
    logging.disable(logging.CRITICAL)
    return deepspeed.__version__


def _start(gpus):
    """A world of so many ranks, of which this is the first; and no group of the one before."""
    import deepspeed
    from deepspeed.comm import comm
    from deepspeed.utils import groups
    from torch import distributed
    from torch.testing._internal.distributed.fake_pg import FakeStore
    if distributed.is_initialized(): distributed.destroy_process_group()
    comm.cdb = None
    for name, value in list(vars(groups).items()):
        if name.startswith("_") and name.isupper(): setattr(groups, name, {} if isinstance(value, dict) else None)
    groups.mpu = groups.mesh_device = None
    distributed.init_process_group("fake", rank=0, world_size=gpus, store=FakeStore())
    deepspeed.init_distributed(dist_backend="gloo", auto_mpi_discovery=False, verbose=False)


def _classes():
    from torch import nn, zeros

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(zeros(2, 2))

        def forward(self, x): return x

    class ExpertDecoderLayer(Layer):
        def __init__(self, experts, options):
            from deepspeed.moe.layer import MoE
            super().__init__()
            self.experts = MoE(2, nn.Linear(2, 2), num_experts=experts, **options)
    return (type("Embedding", (Layer,), {}), type("SomeDecoderLayer", (Layer,), {}), ExpertDecoderLayer, type("Norm", (Layer,), {}),
            type("Head", (Layer,), {}))


def _model(layers, pipeline, options):
    """Embedding, decoder layers, norm and head: a PipelineModule, or one after the other."""
    from deepspeed.pipe import LayerSpec, PipelineModule
    from torch import nn
    embedding, plain, expert, norm, head = _classes()
    made = (lambda: LayerSpec(expert, 8 if 8 % options["ep_size"] == 0 else options["ep_size"], options)) if options else (lambda: LayerSpec(plain))
    specs = [LayerSpec(embedding), *[made() for _ in range(layers)], LayerSpec(norm), LayerSpec(head)]
    if pipeline is None: return nn.Sequential(*[spec.build() for spec in specs])
    return PipelineModule(layers=specs, **pipeline)


def _parameters(model, options):
    if not options: return list(model.parameters())
    from deepspeed.moe.utils import split_params_into_different_moe_groups_for_optimizer
    return split_params_into_different_moe_groups_for_optimizer({"params": list(model.parameters()), "name": "all"})


def _build(out, gpus, path, pipeline, options, layers, check):
    import deepspeed
    import torch
    _start(gpus)
    if pipeline is not None: pipeline = pipeline()
    model = _model(layers, pipeline, options)
    if check: check(model)
    optimizer = torch.optim.AdamW(_parameters(model, options), foreach=False)
    engine, *_ = deepspeed.initialize(model=model, config=path, optimizer=optimizer)
    types = {"torch.float32": "fp32", "torch.bfloat16": "bf16", "torch.float16": "fp16"}
    precision, gradients = (types[str(each)] for each in engine.get_data_types())
    out.update(M=engine.gradient_accumulation_steps(), micro=engine.train_micro_batch_size_per_gpu(), batch=engine.train_batch_size(),
               DP=engine.dp_world_size, CP=engine.sequence_parallel_size, zero=engine.zero_optimization_stage(), precision=precision,
               gradients=gradients, optimizer=type(engine.optimizer).__name__, engine=type(engine).__name__, P=1, TP=1)
    if pipeline is None:
        out["TP"] = max(1, engine.autotp_size())
        out["layers"] = [layers]
        return
    names = [spec.typename.__name__.lower() for spec in model._layer_specs]
    out["layers"] = [sum("decoderlayer" in name for name in names[a:b]) for a, b in zip(model.parts, model.parts[1:])]
    out.update(P=engine.num_stages, TP=engine.grid.model_parallel_size, DP=engine.grid.data_parallel_size, M=engine.micro_batches,
               recompute=int(model.activation_checkpoint_interval), items=[int(b - a) for a, b in zip(model.parts, model.parts[1:])],
               EP=options["ep_size"] if options else 1)
    if sum(out["layers"]) != layers: raise ValueError("not all layers are in a stage")


def judge(gpus, configuration, pipeline=None, options=None, layers=32, check=None):
    """{ ok, error or what is built }. pipeline: a function that makes the arguments of PipelineModule, None: there is none; options: those
    of MoE."""
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ds_config.json")
        with open(path, "w") as file: file.write(configuration)
        try:
            with quiet(): _build(out, gpus, path, pipeline, options, layers, check)
            out["ok"] = True
        except (Exception, SystemExit) as problem:  # whatever it ends with is its verdict
            out = {"ok": False, "error": f"{type(problem).__name__}: {problem}"[:300]}
    return out
