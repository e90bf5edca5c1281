# SPDX-License-Identifier: Apache-2.0
"""Runs training steps as a plan lays them out: stages on their ranks, microbatches through them in the schedule's order, gradients summed.

    pipeplan plan SPEC.json --format json --output plan.json
    pipeplan plan SPEC.json --format csv --output schedule.csv
    torchrun --nproc-per-node 2 examples/torch/train_step.py plan.json --schedule schedule.csv --model config.json --check

A process is a pipeline rank of a replica: as many as the plan's pipeline × data, each with a GPU where there are any. Without --schedule
PyTorch's own class of the plan's schedule runs, if it has one. The model is the small one of pipeline/model.py, of the sizes given; replace it
by yours there. One iteration line a step is printed, as Megatron-LM's, which `pipeplan monitor` reads.
"""
import argparse
import dataclasses
import json
import logging
import os
import sys
import time
import traceback

import torch
import torch.distributed as dist

from pipeline import dualpipe, faults, gradients, grid as processes, metrics, model, options as types, program as programs, torch_runtime
from pipeline.program import Mismatch
from pipeline.timeline import Timeline
from pipeline.watchdog import Watchdog, say

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64}
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", metavar="PLAN.json", help="what `pipeplan plan --format json` writes")
    parser.add_argument("--schedule", metavar="FILE.csv", help="its program, what `pipeplan plan --format csv` writes")
    parser.add_argument("--model", metavar="FILE", type=types.config, default={}, help="a Hugging Face config.json, for its sizes")
    names = ", ".join(field.name for field in dataclasses.fields(model.Shape))
    parser.add_argument("--shape", metavar="NAME=N,…", type=types.sizes, default={}, help=f"sizes, over those of --model: {names}")
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="adamw")
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where there is any")
    parser.add_argument("--dtype", choices=DTYPES, help="default: bf16 on GPUs, else fp32")
    parser.add_argument("--check", action="store_true", help="compare the first step with one of the model without a pipeline")
    parser.add_argument("--metrics", metavar="FILE", help="add the iteration lines to this file")
    parser.add_argument("--runs", metavar="FILE", help="write times, memory and a timeline, for compare.py")
    parser.add_argument("--profile", metavar="FILE", help="of --runs: the stages, as profile_stage.py measured them; compare.py wants it")
    parser.add_argument("--warmup", type=int, default=2, metavar="N", help="of --runs: steps that do not count (default 2)")
    parser.add_argument("--runtime", choices=("torch-single", "torch-multi", "ours"), help="default: PyTorch's; ours where it cannot")
    parser.add_argument("--pairs", choices=("in_turn", "split"), default="in_turn", help="a pair of F and B as one action or two (default in_turn)")
    parser.add_argument("--queues", choices=("one", "per_peer", "per_direction"), default="one", help="communicators of a rank (default one)")
    parser.add_argument("--watchdog", type=float, default=30, metavar="SECONDS", help="end all if nothing moves for so long; 0: never (default 30)")
    parser.add_argument("--straggler", metavar="RANK:FACTOR,…", help="slow processes down: 2:1.5, or 2:5ms for each action")
    parser.add_argument("--fault", metavar="KIND:RANK:STEP", help="kill, stall or nan: let one process fail, to see that it is noticed")
    return parser.parse_args()


def main():
    options = arguments()
    if "RANK" not in os.environ:
        raise SystemExit(f"train_step.py: run it as torchrun --nproc-per-node N {sys.argv[0]} …")
    # At an error it prints the whole program; the watchdog says where it was.
    logging.getLogger("torch.distributed.pipelining").setLevel(logging.CRITICAL)
    device = processes.start(options.device)
    watchdog = Watchdog(options.watchdog, dist.get_rank(), device)
    try:
        train(options, device, watchdog)
        watchdog.at("the end of all processes")
        dist.barrier()
    except Mismatch as error:
        say(f"train_step.py: rank {dist.get_rank()}: {error}")
        dist.barrier()                          # torchrun stops all when one has ended: only after all have said so
        os._exit(2)
    except Exception as error:                  # whatever it is, the others wait for this process
        say(f"{traceback.format_exc()}{watchdog.where()}: {str(error).strip().splitlines()[0] if str(error) else type(error).__name__}")
        os._exit(1)
    watchdog.stop()
    dist.destroy_process_group()


def agreed(device, work, *args):
    """work(*args), or Mismatch on every process if it is one on any."""
    result = error = None
    try:
        result = work(*args)
    except (Mismatch, ValueError, OSError) as found:
        error = str(found)
    errors = metrics.gathered(error, device)
    if any(errors):
        raise Mismatch(error or next(filter(None, errors)))
    return result


@dataclasses.dataclass
class Job:
    plan: programs.Plan
    program: programs.Program
    own: str              # PyTorch's own class runs the schedule of this name; None: the program
    shape: model.Shape
    stragglers: dict      # process → factor, ms
    fault: tuple          # kind, process, step


def read_job(options):
    plan = programs.load_plan(options.plan)
    own = None
    if options.schedule:
        program = programs.load(options.schedule, plan.directions)
    elif plan.schedule in torch_runtime.CLASSES:
        own = plan.schedule
        program = torch_runtime.own_program(own, plan.pipeline, plan.microbatches, max(2, plan.virtual))
    elif plan.schedule == "none":
        program = torch_runtime.own_program("1f1b", 1, plan.microbatches)
    else:
        raise Mismatch(f"{plan.source}: PyTorch has no class for {plan.schedule}: expected --schedule FILE.csv, which `{plan.simulate}` writes")
    programs.check(plan, program, dist.get_world_size())
    if options.runs and options.steps <= options.warmup:
        raise Mismatch(f"--runs with {options.steps} steps, of which {options.warmup} are --warmup: expected more")
    if options.runtime == "ours":
        own = None
    return Job(plan, program, own, shape_of(options, plan), faults.parse_stragglers(options.straggler) if options.straggler else {},
               faults.parse_fault(options.fault) if options.fault else (None, 0, 0))


def shape_of(options, plan):
    """Sizes of the model: --model, the plan's sequence length and microbatch size, then --shape."""
    if not options.model and not options.shape:
        raise Mismatch(f"{plan.source} has no sizes of the model: expected --model config.json, or --shape hidden=64,heads=4,…")
    shape = model.Shape(**{"layers": sum(plan.layers_per_stage), **options.model, "sequence_length": plan.sequence_length,
                           "micro_batch_size": plan.micro_batch_size, **options.shape})
    if shape.layers != sum(plan.layers_per_stage):
        raise Mismatch(f"the model has {shape.layers} layers: expected {sum(plan.layers_per_stage)}, as {plan.source} says "
                       f"(layers_per_stage {list(plan.layers_per_stage)})")
    if shape.hidden % shape.heads:
        raise Mismatch(f"the model has hidden {shape.hidden} and {shape.heads} heads: expected a multiple")
    if shape.experts % plan.expert or (plan.expert > 1 and not shape.experts):
        raise Mismatch(f"the model has {shape.experts} experts: expected a multiple of {plan.expert}, as {plan.source} spreads them")
    return shape


class Trainer:
    """This process's stages, what runs them, and the optimizer. Collective: all processes make theirs at the same time."""

    def __init__(self, options, job, device, watchdog):
        self.options, self.job, self.device, self.watchdog = options, job, device, watchdog
        self.dtype = DTYPES[options.dtype or ("bf16" if device.type == "cuda" else "fp32")]
        self.grid = processes.Grid(job.plan.pipeline, job.plan.expert)
        self.modules = {stage: model.build_stage(job.shape, list(job.plan.layers_per_stage), job.program.slice_of(stage), self.grid.expert_group,
                                                 device, self.dtype) for stage in job.program.stages_of(self.grid.rank)}
        self.gradients = gradients.Gradients(self.modules, self.grid, job.program.directions)
        factor, ms = job.stragglers.get(dist.get_rank(), (1, 0))
        faulty = options.straggler or options.fault
        self.timeline = faults.FaultyTimeline(device, watchdog, factor, ms) if faulty else Timeline(device, watchdog)
        self.runner, self.share, self.reduce = self._runner()
        self.optimizer = OPTIMIZERS[options.optimizer]([weight for _, _, weight in self.gradients.named()], lr=options.lr)
        self.pipeline_ms = 0

    def _runner(self):
        """→ what runs a step, what of a batch is this process's, what sums gradients over copies and replicas."""
        given = self.job.program, self.modules, self.grid, self.job.shape, self.device
        common = {"timeline": self.timeline, "watchdog": self.watchdog}
        if self.job.program.directions == 2 or self.options.runtime == "ours":
            runner = dualpipe.Executor(*given, **common)
            return runner, runner.share, runner.reduce
        runner = torch_runtime.Runner(*given, runtime=self.options.runtime, pairs=self.options.pairs, queues=self.options.queues,
                                      own=self.job.own, **common)
        return runner, lambda input, target: (input, target), self.gradients.reduce

    def batch(self, step, replica):
        return model.batch(self.job.shape, self.job.plan.microbatches, seed=step * self.grid.data + replica, device=self.device, dtype=self.dtype)

    def forward_backward(self, step, record=False):
        """→ loss of the step, the mean over all microbatches of all replicas, on every process. Gradients are those of that mean."""
        self.gradients.zero()
        batch = self.share(*self.batch(step, self.grid.replica))
        self.fail(step)
        self.runner.record(record)
        begin = time.perf_counter()
        losses = self.runner.step(*batch)
        self.watchdog.at("the end of the pipeline")
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        self.pipeline_ms = (time.perf_counter() - begin) * 1000
        self.watchdog.at("all-reduce of gradients")
        self.reduce()
        self.watchdog.at("all-reduce of the loss")
        total = torch.zeros(1, dtype=torch.float64, device=self.device)
        for loss in losses:
            total += loss.detach()
        dist.all_reduce(total)
        return total.item() / (self.job.plan.microbatches * self.grid.data)

    def fail(self, step):
        kind, process, at = self.job.fault
        if at != step or process != dist.get_rank():
            return
        if kind == "nan":
            faults.spoil(self.modules)
        elif kind:
            self.timeline.fail(kind, len(self.runner.names) // 2)

    def check(self, step, loss):
        """Loss and gradients of a step against those of the model in one piece, on every process."""
        batches = [self.batch(step, replica) for replica in range(self.grid.data)]
        expected, wanted = gradients.reference(self.job.shape, batches, self.device, self.dtype)
        found = gradients.differences(self.gradients, wanted)
        tolerance = gradients.TOLERANCE[self.dtype]
        worst = max(found, key=lambda name: found[name] if found[name] == found[name] else float("inf"))
        everywhere = metrics.gathered([sorted(found), found[worst], worst], self.device)
        missing = sorted(set(wanted) - {name for names, _, _ in everywhere for name in names})
        if missing:
            raise Mismatch(f"--check: no process has {missing[0]}, nor {len(missing) - 1} other weights: expected each weight of the model")
        if not all(value <= tolerance for _, value, _ in everywhere) or not abs(loss - expected) <= tolerance * abs(expected):
            raise Mismatch(f"--check: loss {loss:.12g}, expected {expected:.12g}; this process's worst gradient is that of {worst}, off by "
                           f"{found[worst]:.2g} of it; expected at most {tolerance:g}")
        _, value, worst = max(everywhere, key=lambda one: one[1])
        return (f"checked: loss {loss:.12g} and {len(wanted)} gradients are the unpipelined model's (loss {expected:.12g}; worst: {worst}, "
                f"off by {value:.2g})")


def train(options, device, watchdog):
    watchdog.at("reading the plan")
    job = agreed(device, read_job, options)
    watchdog.at("building the stages")
    trainer = Trainer(options, job, device, watchdog)
    record = metrics.Record(device) if options.runs else None
    last = dist.get_rank() == dist.get_world_size() - 1
    for step in range(1, options.steps + 1):
        if record and step == options.warmup + 1:
            record.begin()
        begin = time.perf_counter()
        loss = trainer.forward_backward(step)
        if loss != loss or abs(loss) == float("inf"):
            raise Mismatch(f"step {step}: the loss is {loss}: expected a number; weights are as before this step")
        watchdog.at("the norm of the gradient")
        norm = trainer.gradients.norm(device)
        if options.check and step == 1:
            watchdog.at("the model without a pipeline")
            report = trainer.check(step, loss)
            if last:
                print(report, flush=True)
        watchdog.at("the optimizer")
        trainer.optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize()
        if record and step > options.warmup:
            record.milliseconds.append(trainer.pipeline_ms)
        if last:
            log(options, job, step, loss, norm, (time.perf_counter() - begin) * 1000)
    if record:
        record.end()
        write_record(options, job, trainer, record)


def log(options, job, step, loss, norm, ms):
    batch = job.plan.global_batch_size
    tflops = metrics.flops_of_sequence(job.shape) * batch / dist.get_world_size() / ms / 1e9
    line = metrics.iteration_line(step, options.steps, step * batch, ms, tflops, options.lr, batch, loss, norm)
    print(line, flush=True)
    if options.metrics:
        with open(options.metrics, "a") as file:
            file.write(line + "\n")


def write_record(options, job, trainer, record):
    trainer.forward_backward(options.steps + 1, record=True)
    profiles = {}
    if options.profile:
        with open(options.profile) as file:
            profiles[os.path.splitext(os.path.basename(options.profile))[0]] = json.load(file)
    ours = not isinstance(trainer.runner, torch_runtime.Runner)
    runtime = "ours" if ours else trainer.runner.runtime
    entry = record.entry(
        trainer.grid, trainer.runner.timeline(), name=job.plan.schedule, schedule=job.plan.schedule,
        program=job.program.text if runtime == "torch-multi" else None,       # the others run but one order of a schedule
        directions=job.program.directions, microbatches=job.program.microbatches, virtual=job.program.slices // job.program.ranks,
        runtime=runtime, pairs=None if ours else options.pairs, queues=None if ours else options.queues,
        model="moe" if job.shape.experts else "dense", profile=next(iter(profiles), None), layers_per_stage=list(job.plan.layers_per_stage))
    if dist.get_rank() == 0:
        metrics.write_runs(options.runs, trainer.device, "torchrun " + " ".join(sys.argv), profiles, [entry])


if __name__ == "__main__":
    main()
