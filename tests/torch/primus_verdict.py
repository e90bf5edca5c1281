# SPDX-License-Identifier: Apache-2.0
"""Would Primus start with this experiment, and what layers would it build? Its own code decides, on a processor: its parser with its presets, its
builder of Megatron's arguments and patches of them, and validate_args, TransformerConfig and layers of the Megatron-LM that it has under it, on
a fake backend (megatron_verdict.py). Its runtime of zero bubble patches schedules on a GPU, and is not asked."""
import contextlib, io, json, logging, os, sys, tempfile, types

import megatron_verdict


def load(folder, more):
    """Makes Primus of `folder` importable, with its third_party/Megatron-LM; more: folders with what they import."""
    sys.path.extend(more)
    megatron_verdict.load(os.path.join(folder, "third_party", "Megatron-LM"))
    sys.path.insert(0, folder)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        import primus.backends.megatron.argument_builder  # noqa
        import primus.core.launcher.parser  # noqa
        from primus.backends.megatron.patches.args import moe_layer_freq_patches, rocm_arg_validation, sequence_parallel_tp1_patches  # noqa
        from primus.core.utils import logger
    logger._logger = logging.getLogger("primus")   # which its runtime makes, of a package that is not wanted here


def arguments_of(text):
    """Megatron's arguments of an experiment, as primus/core/runtime/train_runtime.py has them: what Megatron does not know stays beside them."""
    from primus.backends.megatron.argument_builder import MegatronArgBuilder
    from primus.backends.megatron.patches.args import moe_layer_freq_patches, sequence_parallel_tp1_patches
    from primus.core.launcher.parser import PrimusParser
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "experiment.yaml")
        with open(path, "w") as file: file.write(text.replace("workspace: ./output", "workspace: " + folder))
        module = PrimusParser().parse(types.SimpleNamespace(config=path)).get_module_config("pre_trainer")
    args = MegatronArgBuilder().update(module).finalize()
    for name, value in vars(module).items():
        if not hasattr(args, name): setattr(args, name, value)
    context = types.SimpleNamespace(extra={"backend_args": args})
    for patch in (moe_layer_freq_patches.patch_moe_layer_freq, sequence_parallel_tp1_patches.patch_sequence_parallel_tp1): patch(context)
    return args


def judge(world, text):
    os.environ.update(WORLD_SIZE=str(world), RANK="0", LOCAL_RANK="0", CUDA_DEVICE_MAX_CONNECTIONS="1")
    if "use_megatron_fsdp: true" in text: os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS")   # which wants more
    sink = io.StringIO()
    try:
        with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            from primus.backends.megatron.patches.args import rocm_arg_validation
            args = arguments_of(text)
            out = megatron_verdict.built(args)
            rocm_arg_validation.validate_args_on_rocm(args)
            runtime = "none" if not args.patch_zero_bubble else "V " + args.zero_bubble_v_schedule_mem_setup if args.zero_bubble_v_schedule else "ZB"
            return {**out, "runtime": runtime, "bias": args.add_bias_linear, "gated": args.swiglu, "tied": not args.untie_embeddings_and_output_weights}
    except SystemExit as problem:
        return {"ok": False, "error": " ".join(sink.getvalue().strip().splitlines()[-1:]) or str(problem)}
    except Exception as problem:  # noqa: whatever it is, it would not have started
        return {"ok": False, "error": f"{type(problem).__name__}: {problem}"[:300]}


def forked(world, text):
    """judge in a child: Megatron keeps its groups in globals."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.write(write, json.dumps(judge(world, text)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe: found = pipe.read()
    os.waitpid(child, 0)
    return json.loads(found) if found else {"ok": False, "error": "died"}
