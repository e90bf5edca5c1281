# SPDX-License-Identifier: Apache-2.0
"""Random arguments of Megatron-LM, from a seed: (GPUs, flags). Sizes are small and mostly divide, so that half of them are legal."""
import random

BASE = ("--hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --lr 1e-4 --train-iters 10 --mock-data "
        "--vocab-size 32000 --tokenizer-type NullTokenizer --transformer-impl local --position-embedding-type rope --no-rope-fusion").split()


def layout(draw, pipeline, layers, mtp):
    """A layout string: mostly of so many layers, on a multiple of P stages."""
    stages = pipeline * draw.choice([1, 1, 2, 2, 3])
    counts = [layers // stages] * stages
    for _ in range(layers - sum(counts) if draw.random() < 0.9 else draw.randrange(3)):
        counts[draw.randrange(stages)] += 1
    parts = ["t" * count if draw.random() < 0.5 or count == 0 else f"t*{count}" for count in counts]
    parts[0] = "E" + parts[0]
    parts[-1] += ("m" * mtp if draw.random() < 0.9 else "") + "L"
    text = "|".join(parts)
    return text if draw.random() < 0.97 else text.replace("E", "", 1)


def others_of(draw, say, maybe, experts, step):
    """What is about neither layout nor schedule, and refused all the same."""
    pick = draw.choice
    maybe(0.02, "--save", "/nowhere")
    if draw.random() < 0.04: say("--save", "/nowhere", "--save-interval", pick([0, 10, 100, 1000]))
    maybe(0.01, "--train-samples", 1000)
    maybe(0.01, pick(["--lr-decay-samples", "--lr-warmup-samples"]), 100)
    maybe(0.04, "--lr-decay-iters", 8)
    maybe(0.04, "--lr-warmup-fraction", 0.01)
    maybe(0.03, "--lr-warmup-iters", pick([0, 2]))
    maybe(0.04, "--min-lr", pick([1e-5, 1e-4, 1e-3]))
    maybe(0.01, "--data-path", "/nowhere")
    maybe(0.03, "--eval-global-batch-size", step * pick([1, 2, 4]) + pick([0, 0, 1]))
    maybe(0.02, "--eval-micro-batch-size", pick([1, 1, 2, 3]))
    maybe(0.02, "--tp-comm-overlap")
    maybe(0.02, "--accumulate-allreduce-grads-in-fp32")
    maybe(0.02, "--no-position-embedding")
    maybe(0.02, "--cpu-offloading-num-layers", 1)
    maybe(0.02, "--distribute-saved-activations")
    maybe(0.02, "--ckpt-format", pick(["torch", "torch_dist", "torch_dist", "fsdp_dtensor"]))
    maybe(0.01, "--moe-ffn-hidden-size", 512)
    maybe(0.02, "--multi-latent-attention")
    if not experts: return
    maybe(0.1, "--moe-router-topk", pick([1, 2, 4]))
    maybe(0.05, "--moe-router-pre-softmax")
    maybe(0.05, "--moe-router-load-balancing-type", pick(["aux_loss", "sinkhorn", "none"]))
    maybe(0.08, "--moe-router-score-function", pick(["sigmoid", "softmax"]))
    maybe(0.05, "--moe-router-enable-expert-bias")
    maybe(0.05, "--moe-router-num-groups", pick([2, 3, 4]))
    maybe(0.05, "--moe-router-group-topk", pick([1, 2, 4]))
    maybe(0.02, "--moe-shared-expert-intermediate-size", 512)
    maybe(0.03, "--moe-shared-expert-overlap")
    maybe(0.02, "--moe-enable-deepep")


def later_of(draw, say, maybe, experts, step, flags):
    """What came to be tried after others were: drawn last."""
    pick = draw.choice
    maybe(0.04, "--optimizer", pick(["muon", "dist_muon", "sgd", "lion"]))
    maybe(0.02, "--use-precision-aware-optimizer", "--main-grads-dtype", pick(["fp32", "bf16"]))
    if draw.random() < 0.04:
        if "--global-batch-size" in flags and draw.random() < 0.8:
            at = flags.index("--global-batch-size")
            del flags[at:at + 2]
        first = step * pick([1, 2, 4, 8]) + pick([0, 0, 0, 1])
        say("--step-batch-size-schedule", f"{pick(['0', '0', '0', '1B'])}:{first} {pick(['1B', '2.5M', '100'])}:{step * pick([8, 16])}")
    maybe(0.05, "--moe-layer-freq", pick([1, 2, "([0]*2+[1]*2)"]))
    if draw.random() < 0.1: say("--num-query-groups", pick([1, 2, 3, 16]))
    if experts and draw.random() < 0.05:
        say("--moe-token-dispatcher-type", "flex", "--moe-flex-dispatcher-backend", pick(["deepep", "hybridep"]))


def case(seed):
    draw = random.Random(seed)
    flags, pick = list(BASE), draw.choice
    tensor, pipeline, context = pick([1, 1, 1, 2, 2, 4]), pick([1, 2, 2, 2, 3, 4, 4, 4, 6, 8]), pick([1] * 12 + [2, 2, 3])
    experts = pick([0, 0, 0, 8, 16])
    expert = pick([1, 2, 2, 4]) if experts or draw.random() < 0.05 else 1
    world = tensor * pipeline * context * pick([1, 2, 2, 4, 4, 8]) * (1 if draw.random() < 0.97 else 3) + (0 if draw.random() < 0.98 else 1)

    def say(flag, *values):
        flags.append(flag)
        flags.extend(str(value) for value in values)

    def maybe(share, *words):
        if draw.random() < share:
            say(*words)

    say("--tensor-model-parallel-size", tensor)
    say("--pipeline-model-parallel-size", pipeline)
    if context > 1: say("--context-parallel-size", context)
    layers = pipeline * pick([2, 4, 4, 6, 8]) + pick([0] * 20 + [1, -1, -2])
    layers = max(1, layers)
    mtp = pick([0] * 10 + [1, 1, 2])
    say("--num-layers", layers)
    if mtp: say("--mtp-num-layers", mtp)
    if experts:
        say("--num-experts", experts)
        if draw.random() < 0.95: flags.append("--disable-bias-linear")
        if draw.random() < 0.7: say("--expert-tensor-parallel-size", pick([1, 1, 1, 2]))
        maybe(0.6, "--moe-token-dispatcher-type", pick(["alltoall", "alltoall", "allgather"]))
    if expert > 1: say("--expert-model-parallel-size", expert)
    if tensor > 1 and (experts or draw.random() < 0.5): flags.append("--sequence-parallel")
    way = pick(["", "", "", "", "virtual", "virtual", "chunk", "layout", "layout", "ends", "accounts"] * 2 + ["two", "mixed"])
    if way in ("virtual", "two", "accounts") and draw.random() < (0.5 if way == "accounts" else 1):
        say("--num-virtual-stages-per-pipeline-rank", pick([1, 2, 2, 2, 3, 4]))
    if way in ("chunk", "two"): say("--num-layers-per-virtual-pipeline-stage", pick([1, 1, 2, 3]))
    if way == "layout": say("--pipeline-model-parallel-layout", layout(draw, pipeline, layers, mtp))
    if way in ("ends", "mixed"):
        if draw.random() < 0.8: say("--decoder-first-pipeline-num-layers", max(0, layers // pipeline + pick([0, 0, -1, 1, -2])))
        if draw.random() < 0.6: say("--decoder-last-pipeline-num-layers", max(0, layers // pipeline + pick([0, 0, -1, 1, 2])))
        if draw.random() < 0.3: say("--num-virtual-stages-per-pipeline-rank", 2)
    if way in ("accounts", "mixed"):
        maybe(0.7, "--account-for-embedding-in-pipeline-split")
        maybe(0.7, "--account-for-loss-in-pipeline-split")
    others = tensor * pipeline * context
    data = max(1, world // others)
    micro = pick([1, 1, 1, 2])
    say("--micro-batch-size", micro)
    if draw.random() < 0.95: say("--global-batch-size", max(1, micro * data * pick([1, 2, 4, 4, 8, 8, 16]) + pick([0] * 30 + [1, -1])))
    maybe(0.05, "--microbatch-group-size-per-virtual-pipeline-stage", pick([2, 4, 5, 8]))
    maybe(0.85, pick(["--bf16", "--bf16", "--bf16", "--fp16"]))
    maybe(0.3 if expert > 1 else 0.01, "--overlap-moe-expert-parallel-comm")
    maybe(0.01, "--delay-wgrad-compute")
    if draw.random() < 0.3:
        kind = pick(["full", "selective"])
        say("--recompute-granularity", kind)
        if draw.random() < (0.95 if kind == "full" else 0.04): say("--recompute-method", pick(["uniform", "block"]), "--recompute-num-layers", 1)
        if kind == "selective" and draw.random() < 0.4: say("--recompute-modules", *pick([["core_attn"], ["moe_act"], ["layernorm"], ["mlp"], ["moe", "core_attn"]]))
    maybe(0.04, "--no-overlap-p2p-communication")
    maybe(0.4, "--use-distributed-optimizer")
    maybe(0.2, "--overlap-grad-reduce")
    maybe(0.06, "--overlap-param-gather")
    maybe(0.02, "--overlap-param-gather-with-optimizer-step")
    if draw.random() < 0.2: say("--group-query-attention", "--num-query-groups", pick([1, 2, 4, 8, 16]))
    maybe(0.01, "--defer-embedding-wgrad-compute")
    maybe(0.02, "--hidden-size", pick([1000, 1024, 2048]))
    maybe(0.02, pick(["--DDP-impl", "--checkpoint-activations", "--no-such-flag", "--pipeline-model-parallel-siz", "--bf17"]))
    maybe(0.01, "--model-parallel-size", 2)
    maybe(0.02, "--max-position-embeddings", pick([1024, 4096]))
    maybe(0.02, "--untie-embeddings-and-output-weights")
    others_of(draw, say, maybe, experts, micro * data)
    later_of(draw, say, maybe, experts, micro * data, flags)
    return world, flags
