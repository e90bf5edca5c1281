# SPDX-License-Identifier: Apache-2.0
"""What torchtitan's own code says of a command line, without a GPU and without processes: it reads it, makes its parallel dimensions, splits
the model, places the stages, and hands them, empty, to the schedule that it chose, which checks them; a CSV is loaded. Where it would build
stages that are not the model, one behind the other, that is refused here: it says nothing of it."""
import contextlib
import io
import os
import warnings

SOURCES = ("torchtitan", "tyro", "datasets", "triton")


class Stage:
    """What the constructor of a schedule reads of a PipelineStage."""
    def __init__(self, index, total, rank, ranks):
        self.stage_index, self.num_stages, self.group_rank, self.group_size = index, total, rank, ranks
        self.is_first, self.is_last, self.has_backward = index == 0, index == total - 1, True
        self.device, self.submod, self.group = "cpu", None, None

    def _prepare_backward_infra(self, *_):
        pass


def missing():
    """A name of what is not installed, or None."""
    import importlib.util
    for name in SOURCES:
        if importlib.util.find_spec(name) is None: return name
    return None


def load():
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    warnings.simplefilter("ignore")
    with quiet(io.StringIO()):
        import torchtitan.config.manager  # noqa: F401
        import torchtitan.distributed.pipeline_parallel  # noqa: F401


def modules(layers):
    """Names of what a model has of so many layers, and such a model, empty."""
    from torch import nn
    from torchtitan.distributed import pipeline_parallel
    model = nn.Module()
    model.tok_embeddings, model.layers = nn.Identity(), pipeline_parallel.ModuleDict({str(i): nn.Identity() for i in range(layers)})
    model.norm, model.lm_head = nn.Identity(), nn.Identity()
    return names_in(model), model


def names_in(model):
    return [name + (f".{key}" if key is not None else "") for name, child in model.named_children()
            for key in (child.keys() if name == "layers" else [None])]


def mesh(dims, gpus):
    from torch import distributed
    from torch.testing._internal.distributed.fake_pg import FakeStore
    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=gpus)
    try:
        dims.build_mesh()
    finally:
        distributed.destroy_process_group()


@contextlib.contextmanager
def quiet(sink):
    import logging
    logging.disable(logging.CRITICAL)
    with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink): yield
    logging.disable(logging.NOTSET)


def parsed(arguments):
    from torchtitan.config.manager import ConfigManager
    return ConfigManager().parse_args(arguments)


def _build(out, gpus, config, layers):
    from torch.distributed.pipelining import schedules
    from torchtitan.distributed import ParallelDims, pipeline_parallel
    p, t = config.parallelism, config.training
    dims = ParallelDims.from_config(p, gpus)
    mesh(dims, gpus)
    data = dims.dp_replicate * dims.dp_shard
    batch = t.global_batch_size if t.global_batch_size > 0 else t.local_batch_size * data
    if batch % (t.local_batch_size * data): raise ValueError("the batch does not divide")   # trainer.py
    out.update(DP=data, batch=batch, TP=dims.tp, CP=dims.cp, EP=dims.ep, P=dims.pp, shards=dims.dp_shard, sequence=t.seq_len)
    out["recompute"] = {"FullAC": "full", "NoneType": "none"}.get(type(config.activation_checkpoint).__qualname__.split(".")[0], "selective")
    out["microbatch size"], out["M"] = t.local_batch_size, batch // (t.local_batch_size * data)
    out["layers"] = [layers]
    if dims.pp == 1: return
    if batch != t.local_batch_size * data: out["accumulated"] = batch // (t.local_batch_size * data)
    model = type("Model", (), {"layers": [None] * layers})()
    own, empty = modules(layers)
    stages, _, first, last = pipeline_parallel._get_pipeline_metadata(dims, p, model)
    parts = p.module_fqns_per_model_part or pipeline_parallel._generate_llm_fqn_per_model_part(stages, layers, first, last)
    built = [names_in(pipeline_parallel._split_module(empty, part)) for part in parts]
    out["layers"] = [sum(name.startswith("layers.") for name in part) for part in built]
    if sum(built, []) != own: raise ValueError(f"the stages are not the model: {built}")
    M = t.local_batch_size // p.pipeline_parallel_microbatch_size
    out["microbatch size"], out["M"] = p.pipeline_parallel_microbatch_size, M
    for rank in range(dims.pp):
        own = pipeline_parallel._get_pp_rank_to_stage_indices_mapping(rank, dims.pp, p.pipeline_parallel_schedule, len(parts))
        made = [Stage(i, len(parts), rank, dims.pp) for i in own]
        csv = p.pipeline_parallel_schedule_csv
        kind = schedules._PipelineScheduleRuntime if csv else schedules.get_schedule_class(p.pipeline_parallel_schedule)
        if kind in (schedules.PipelineScheduleSingle, schedules.PipelineScheduleMulti): raise ValueError(f"{kind.__name__} has no order")
        several = issubclass(kind, schedules.PipelineScheduleMulti)
        if not several and len(made) > 1: raise ValueError("a schedule of one stage a rank runs the first of each")
        built = kind(made if several else made[0], M, loss_fn=lambda *_: 0, scale_grads=False)
        if not csv: continue
        built._load_csv(csv)
        for stage in made:
            there = built.stage_index_to_group_rank[stage.stage_index]
            if there != rank: raise ValueError(f"stage {stage.stage_index} is built on rank {rank}, the CSV runs it on rank {there}")
        if len(own) * dims.pp != len(built.stage_index_to_group_rank): raise ValueError("as many stages in the CSV as are built")


def judge(gpus, arguments, layers=None):
    """{ ok, error or what is built }; layers: of a model that the configuration function does not have."""
    out, sink = {}, io.StringIO()
    try:
        with quiet(sink):
            config = parsed(arguments)
            if not layers: config.model_spec.model.update_from_config(config=config)
            _build(out, gpus, config, layers or len(config.model_spec.model.layers))
        out["ok"] = True
    except (Exception, SystemExit) as problem:  # whatever it ends with is its verdict
        said = " ".join(sink.getvalue().split()) if isinstance(problem, SystemExit) else f"{type(problem).__name__}: {problem}"
        out.update(ok=False, error=said[:300])
    return out
