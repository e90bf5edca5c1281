# SPDX-License-Identifier: Apache-2.0
"""Runs training steps as a plan lays them out: stages on their ranks, microbatches through them in the schedule's order, gradients summed.

    pipeplan plan SPEC.json --format json --output plan.json
    pipeplan plan SPEC.json --format csv --output schedule.csv
    torchrun --nproc-per-node 2 examples/torch/train_step.py plan.json --schedule schedule.csv --model config.json --check

On one host `python3 examples/torch/train_step.py --processes 2 …` does it without torchrun. A process is a pipeline rank of a replica: as many as
the plan's pipeline × data, each with a GPU where there are any. Without --schedule PyTorch's own class of the plan's schedule runs, if it has one.
The model is the small one of pipeline/model.py, of the sizes given; --module FILE.py trains yours (pipeline/user_model.py says what such a file
has). One iteration line a step is printed, as Megatron-LM's, which `pipeplan monitor` reads.

Weights of bf16 have main weights and gradients of fp32 beside them, and the optimizer is sharded over replicas, as the plan takes it; what is
otherwise is said after the first step. Exit status: 0; 2: what was given does not fit together, or a loss or gradient is no number, said by every
process before anything is updated; 1: all else.
"""
import argparse
import logging
import os
import sys
import time
import traceback

import torch.distributed as dist

from pipeline import failure, grid as processes, job as jobs, launch, metrics, options as types, trace
from pipeline.program import Mismatch
from pipeline.trainer import Trainer, agreed
from pipeline.watchdog import Watchdog, last_words, say


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", metavar="PLAN.json", help="what `pipeplan plan --format json` writes")
    parser.add_argument("--schedule", metavar="FILE.csv", help="its program, what `pipeplan plan --format csv` writes")
    parser.add_argument("--module", metavar="FILE.py", help="your model, batches and loss (default: pipeline/model.py)")
    parser.add_argument("--model", metavar="FILE", help="a Hugging Face config.json, for its sizes")
    parser.add_argument("--shape", metavar="NAME=N,…", type=types.named_numbers, default={}, help="sizes, over those of --model: fields of Shape")
    parser.add_argument("--processes", type=types.count, metavar="N", help="start so many on this host, without torchrun")
    parser.add_argument("--steps", type=types.count, default=1)
    parser.add_argument("--optimizer", choices=jobs.OPTIMIZERS, help="default: the plan's")
    parser.add_argument("--lr", type=types.not_negative, default=1e-4)
    parser.add_argument("--clip", type=types.not_negative, default=1.0, metavar="NORM", help="most that the gradient's norm may be; 0: any (default 1)")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where there is any")
    parser.add_argument("--dtype", choices=jobs.DTYPES, help="of weights; default: bf16 on GPUs, else fp32")
    parser.add_argument("--autocast", choices=("bf16",), help="products in bf16 of weights in fp32 (torch.autocast)")
    parser.add_argument("--check", action="store_true", help="compare the first step with one of the model without a pipeline")
    parser.add_argument("--metrics", metavar="FILE", help="add the iteration lines to this file")
    parser.add_argument("--runs", metavar="FILE", help="write times, memory and a timeline, for compare.py")
    parser.add_argument("--trace", metavar="FILE", help="write one further step as a trace for Perfetto, as `pipeplan simulate --format trace`")
    parser.add_argument("--profile", metavar="FILE", help="of --runs: the stages, as profile_stage.py measured them; compare.py wants it")
    parser.add_argument("--warmup", type=types.whole, default=2, metavar="N", help="of --runs: steps that do not count (default 2)")
    parser.add_argument("--runtime", choices=("torch-single", "torch-multi", "ours"), help="default: PyTorch's; ours where it cannot")
    parser.add_argument("--pairs", choices=("in_turn", "split"), default="in_turn", help="a pair of F and B as one action or two (default in_turn)")
    parser.add_argument("--queues", choices=("one", "per_peer", "per_direction"), default="one", help="communicators of a rank (default one)")
    parser.add_argument("--watchdog", type=types.seconds, default=30, metavar="SECONDS",
                        help="end all if nothing moves in a step for so long; 0: never (default 30)")
    parser.add_argument("--limits", type=types.limits, default=types.LIMITS, metavar="NAME=SECONDS,…",
                        help="the same for what hosts do outside of steps: load (model and data), compile (the first step), check "
                             f"(default {','.join(f'{name}={limit:g}' for name, limit in types.LIMITS.items())})")
    parser.add_argument("--straggler", metavar="RANK:FACTOR,…", help="slow processes down: 2:1.5, or 2:5ms for each action")
    parser.add_argument("--fault", metavar="KIND:RANK:STEP", help="kill, stall or nan: let one process fail, to see that it is noticed")
    parser.add_argument("--traceback", action="store_true", help="at an error, the whole of where it came from")
    return parser.parse_args()


def main():
    options = arguments()
    if "RANK" not in os.environ:
        if not options.processes:
            raise SystemExit(f"train_step.py: run it as torchrun --nproc-per-node N {sys.argv[0]} …, or with --processes N on one host")
        if (status := launch.start(options.processes)) is not None:
            sys.exit(status)
    # At an error it prints the whole program; the watchdog says where it was.
    logging.getLogger("torch.distributed.pipelining").setLevel(logging.CRITICAL)
    device = processes.start(options.device)
    watchdog = Watchdog(options.watchdog, dist.get_rank(), device)
    try:
        train(options, device, watchdog)
        watchdog.at("the end of all processes")
        dist.barrier()
    except Mismatch as error:
        whole(options)
        last_words(f"train_step.py: rank {dist.get_rank()}: {error}")
        dist.barrier()                          # torchrun stops all when one has ended: only after all have said so
        os._exit(2)
    except (Exception, KeyboardInterrupt) as error:                  # whatever it is, the others wait for this process
        whole(options)
        last_words(f"train_step.py: {watchdog.where()}: {failure.in_words(error)}")
        os._exit(1)
    watchdog.stop()
    dist.destroy_process_group()


def whole(options):
    if options.traceback:
        say(traceback.format_exc())


class Outputs:
    """Files that are to be written, each by one process, open before anything runs, and none that is read. Collective, as `agreed` has it."""

    def __init__(self, options):
        rank, last = dist.get_rank(), dist.get_world_size() - 1
        given = [(name, getattr(options, name)) for name in ("metrics", "runs", "trace") if getattr(options, name)]
        paths = [os.path.realpath(path) for _, path in given]
        for (name, path), real in zip(given, paths):
            if paths.count(real) > 1:
                raise Mismatch(f"--{name} {path}: another output is the same file; expected one each")
            for read in filter(None, (options.plan, options.schedule, options.module, options.model, options.profile)):
                if os.path.exists(real) and os.path.exists(read) and os.path.samefile(real, read):
                    raise Mismatch(f"--{name} {path}: it is read as {read}; expected another file")
        self.metrics = None
        for name, path in given:
            if rank == (last if name == "metrics" else 0):
                try:
                    file = open(path, "a")
                except OSError as error:
                    raise Mismatch(f"--{name} {path}: cannot be written: {error.strerror}; expected a file in a folder that there is") from error
                if name == "metrics":
                    self.metrics = file
                else:
                    file.close()

    def line(self, text):
        print(text, flush=True)
        if self.metrics:
            self.metrics.write(text + "\n")
            self.metrics.flush()


def train(options, device, watchdog):
    with watchdog.phase("reading the plan", options.limits["load"]):
        job = agreed(device, jobs.read, options, dist.get_world_size(), device)
        outputs = agreed(device, Outputs, options)
    with watchdog.phase("building the stages", options.limits["load"]):
        trainer = Trainer(options, job, device, watchdog)
        agreed(device, trainer.stages)
        trainer.prepare()
    record = metrics.Record(device) if options.runs else None
    for step in range(1, options.steps + 1):
        if record and step == options.warmup + 1:
            record.begin()
        if step == 1:
            with watchdog.phase("the first step", options.limits["compile"]):
                one_step(options, trainer, outputs, step)
            say_state(trainer, watchdog)
        else:
            one_step(options, trainer, outputs, step)
        if record and step > options.warmup:
            record.milliseconds.append(trainer.pipeline_ms)
    if record:
        record.end()
    if record or options.trace:
        write_step(options, job, trainer, record)


def one_step(options, trainer, outputs, step):
    begin = time.perf_counter()
    loss = trainer.forward_backward(step)
    norm = trainer.finite_norm(step, loss)
    if options.check and step == 1:
        with trainer.watchdog.phase("the model without a pipeline", options.limits["check"]):
            report = trainer.check(step, loss)
        if is_last():
            print(report, flush=True)
    trainer.optimize(norm)
    if is_last():
        outputs.line(iteration_line(options, trainer.job, step, loss, norm, (time.perf_counter() - begin) * 1000))


def is_last():
    """The last process speaks for all, as Megatron-LM's."""
    return dist.get_rank() == dist.get_world_size() - 1


def say_state(trainer, watchdog):
    watchdog.at("what weights and optimizer take")
    state = trainer.state()
    if is_last():
        print(state, flush=True)
    if names := trainer.not_deferred():
        say(f"train_step.py: rank {dist.get_rank()}: gradients of weights in I and not in W: {', '.join(names)}")


def iteration_line(options, job, step, loss, norm, ms):
    batch = job.plan.global_batch_size
    flops = (job.model.flops_of_sequence or metrics.flops_of_sequence)(job.shape)
    tflops = flops * batch / dist.get_world_size() / ms / 1e9 if flops else 0.0
    return metrics.iteration_line(step, options.steps, step * batch, ms, tflops, options.lr, batch, loss, norm)


def write_step(options, job, trainer, record):
    """One further step, with the times of its actions."""
    timeline = trainer.record(options.steps + 1)
    by_rank = metrics.gathered(timeline, trainer.device)[::trainer.grid.data]
    if options.trace and dist.get_rank() == 0:
        title = f"{job.plan.schedule}, {job.program.ranks} ranks, {job.program.microbatches} microbatches: measured on {metrics.source(trainer.device)}"
        trace.write(options.trace, by_rank, title, job.program.slices, job.program.microbatches)
    if record:
        entry = record.entry(trainer.grid, timeline, **trainer.run_fields())
        if dist.get_rank() == 0:
            metrics.write_runs(options.runs, trainer.device, "torchrun " + " ".join(sys.argv), job.profiles, [entry])


if __name__ == "__main__":
    main()
