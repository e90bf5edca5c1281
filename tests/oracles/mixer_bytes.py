# SPDX-License-Identifier: Apache-2.0
"""Counts the bytes that PyTorch's autograd keeps for the backward of one mixer, between the projections' input and its output, by
torch.autograd.graph.saved_tensors_hooks on the CPU, in bf16. Kernels that need a GPU are stand-ins that keep what the kernels keep:

  causal_conv1d           its input (Dao-AILab/causal-conv1d causal_conv1d_interface.py, CausalConv1dFn)
  chunk_gated_delta_rule  q and k normalised, their inverse norms, v, decay, beta, and a chunk of 64 columns a token and head (A)
                          (fla-org/flash-linear-attention 0.6.0, fla/ops/gated_delta_rule/chunk.py, save_for_backward)
  chunk_kda               the same with the raw gate of each channel and two such chunks (fla/ops/kda/chunk.py, use_gate_in_kernel)
  mamba_split_conv1d_scan_combined   what the projection gave, the scan's output, inverse norms (state-spaces/mamba
                          mamba_ssm/ops/triton/ssd_combined.py, MambaSplitConv1dScanCombinedFn); called as Megatron-LM's mamba_mixer.py does,
                          with an output projection of its own
  selective_scan          its input, steps, B, C, gate and output before the gate, and of each 2,048 tokens a state and a product of decays
                          (state-spaces/mamba mamba_ssm/ops/selective_scan_interface.py, SelectiveScanFn; csrc/selective_scan)
  mamba_inner             what the first two projections gave, B and C once more, the output before the gate, and the states; the rest it computes
                          again (the same file, MambaInnerFn with its checkpoint_lvl of 1): classes without weights in their norms call it
  flash attention         q, k, v, the output and a sum of each row (Dao-AILab/flash-attention flash_attn_interface.py, FlashAttnFunc)
  lightning attention     q, k, v (fla/ops/simple_gla/chunk.py)
  norms                   their input, a gate, inverse norms (fla/modules/norm/fused_norm_gate.py)

What stands between them is as in the classes of transformers 5.24.0 (qwen3_next, kimi_linear, minimax, lfm2, mamba, jamba, deepseek_v4, for whose
attention, pooling, scorer, rotations and streams no public kernel trains: fused ones are taken to keep what they read and what attention gives). `parallel` is a
layer of falcon_h1 without its MLP, with the norm before it: attention and Mamba-2 read what that gives, each scaled by a number of its own.

    pip install torch && python3 tests/oracles/mixer_bytes.py tests/oracles/mixer_bytes.json
"""
import json
import sys

import torch
from torch import nn

TOKENS, HIDDEN, CHUNK = 128, 256, 64
LIKE_16_BITS, LIKE_32_BITS = torch.bfloat16, torch.float32


class Kernel(torch.autograd.Function):
    """A kernel that keeps `kept` and makes one tensor of that shape."""

    @staticmethod
    def forward(ctx, shape, kept, *inputs):
        ctx.save_for_backward(*kept)
        return torch.zeros(shape, dtype=LIKE_16_BITS)

    @staticmethod
    def backward(ctx, gradient):
        raise NotImplementedError


def fresh(*shape, dtype=LIKE_16_BITS):
    return torch.zeros(shape, dtype=dtype)


def linear(n, k):
    return nn.Linear(k, n, bias=False, dtype=LIKE_16_BITS)


def convolved(x):
    return Kernel.apply(x.shape, (x,), x)


def normed(x, heads, gate=None):
    kept = (x, fresh(TOKENS, heads, dtype=LIKE_32_BITS)) + (() if gate is None else (gate,))
    return Kernel.apply(x.shape, kept, x, *(() if gate is None else (gate,)))


def gated_delta(x, key_heads, key_dim, value_heads, value_dim):
    keys, values = key_heads * key_dim, value_heads * value_dim
    qkv, z, b, a = linear(2 * keys + values, HIDDEN)(x), linear(values, HIDDEN)(x), linear(value_heads, HIDDEN)(x), linear(value_heads, HIDDEN)(x)
    mixed = convolved(qkv)
    beta, decay = b.sigmoid(), a.float()
    kept = (fresh(TOKENS, keys), fresh(TOKENS, keys), fresh(TOKENS, values), fresh(TOKENS, key_heads, dtype=LIKE_32_BITS),
            fresh(TOKENS, key_heads, dtype=LIKE_32_BITS), fresh(TOKENS, value_heads, dtype=LIKE_32_BITS), beta,
            fresh(TOKENS, value_heads, CHUNK))
    out = Kernel.apply((TOKENS, values), kept, mixed, beta, decay)
    return linear(HIDDEN, values)(normed(out, value_heads, z))


def kimi_delta(x, key_heads, key_dim, value_heads, value_dim):
    keys, values = key_heads * key_dim, value_heads * value_dim
    mixed = convolved(linear(2 * keys + values, HIDDEN)(x))
    forget = linear(keys, key_dim)(linear(key_dim, HIDDEN)(x))
    gate = linear(values, key_dim)(linear(key_dim, HIDDEN)(x))
    beta = linear(value_heads, HIDDEN)(x).sigmoid()
    kept = (fresh(TOKENS, keys), fresh(TOKENS, keys), fresh(TOKENS, values), fresh(TOKENS, key_heads, dtype=LIKE_32_BITS),
            fresh(TOKENS, key_heads, dtype=LIKE_32_BITS), forget, beta, fresh(TOKENS, value_heads, CHUNK), fresh(TOKENS, value_heads, CHUNK))
    out = Kernel.apply((TOKENS, values), kept, mixed, forget, beta)
    return linear(HIDDEN, values)(normed(out, value_heads, gate))


def mamba2(x, key_heads, key_dim, value_heads, value_dim):
    keys, values = key_heads * key_dim, value_heads * value_dim
    projected = linear(2 * keys + 2 * values + value_heads, HIDDEN)(x)
    kept = (projected, fresh(TOKENS, values), fresh(TOKENS, key_heads, dtype=LIKE_32_BITS))
    return linear(HIDDEN, values)(Kernel.apply((TOKENS, values), kept, projected))


def mamba1(x, key_dim, value_heads, step_rank, mixer_norm, **_):
    states = fresh(2 * value_heads * key_dim * TOKENS // 2048, dtype=LIKE_32_BITS)
    projected = linear(2 * value_heads, HIDDEN)(x)
    if not mixer_norm:
        kept = (projected, fresh(TOKENS, step_rank + 2 * key_dim), fresh(TOKENS, key_dim), fresh(TOKENS, key_dim), fresh(TOKENS, value_heads), states)
        return Kernel.apply((TOKENS, HIDDEN), kept, projected)
    convolved_half, gate = projected.chunk(2, dim=-1)
    u = convolved(convolved_half)
    parts = linear(step_rank + 2 * key_dim, value_heads)(u).split([step_rank, key_dim, key_dim], dim=-1)
    step, b, c = (normed(part, 1) for part in parts)
    delta = linear(value_heads, step_rank)(step)
    kept = (u, delta, b, c, gate, fresh(TOKENS, value_heads), states)
    return linear(HIDDEN, value_heads)(Kernel.apply((TOKENS, value_heads), kept, u, delta, b, c, gate))


def attention(x, heads, kv_heads, head_dim):
    q, k, v = linear(heads * head_dim, HIDDEN)(x), linear(kv_heads * head_dim, HIDDEN)(x), linear(kv_heads * head_dim, HIDDEN)(x)
    kept = (q, k, v, fresh(TOKENS, heads, dtype=LIKE_32_BITS))
    return linear(HIDDEN, heads * head_dim)(Kernel.apply((TOKENS, heads * head_dim), kept, q, k, v))


def parallel(x, heads, kv_heads, head_dim, **sizes):
    read = normed(x, 1)
    return mamba2(read * 0.5, **sizes) + attention(read * 0.25, heads, kv_heads, head_dim)


def rotated(x):
    return Kernel.apply(x.shape, (), x)


def compressed(x, heads, head_dim, q_lora_rank, output_groups, output_rank, compression, index_heads=0, index_dim=0, index_topk=0):
    query, series, rows = heads * head_dim, 2 if index_heads else 1, TOKENS // compression
    latent = normed(linear(q_lora_rank, HIDDEN)(x), 1)
    q = rotated(normed(linear(query, q_lora_rank)(latent), heads))
    kv = rotated(normed(linear(head_dim, HIDDEN)(x), 1))
    values, weights = linear(series * head_dim, HIDDEN)(x), linear(series * head_dim, HIDDEN)(x)
    pooled = Kernel.apply((rows, head_dim), (values, weights), values, weights)
    entries = rotated(Kernel.apply(pooled.shape, (pooled, fresh(rows, dtype=LIKE_32_BITS)), pooled))
    kept = [q, kv, entries, fresh(TOKENS, query), fresh(TOKENS, heads, dtype=LIKE_32_BITS)]
    if index_heads:
        indexer = [linear(index_heads * index_dim, q_lora_rank)(latent), linear(2 * index_dim, HIDDEN)(x), linear(2 * index_dim, HIDDEN)(x),
                   linear(index_heads, HIDDEN)(x)]
        kept += indexer + [fresh(TOKENS, min(index_topk, rows), dtype=torch.int32)]
    out = rotated(Kernel.apply((TOKENS, query), tuple(kept), q, kv, entries))
    groups = nn.Parameter(fresh(output_groups, query // output_groups, output_rank))
    columns = torch.bmm(out.view(TOKENS, output_groups, -1).transpose(0, 1), groups).transpose(0, 1).reshape(TOKENS, -1)
    return linear(HIDDEN, output_groups * output_rank)(columns)


def streams(x, streams):
    width = streams * HIDDEN
    carried = Kernel.apply((TOKENS, width), (), x)
    for _ in "attention", "feed-forward":
        weights = fresh(TOKENS, (2 + streams) * streams, dtype=LIKE_32_BITS)
        read = Kernel.apply((TOKENS, HIDDEN), (carried, weights), carried)
        given = Kernel.apply((TOKENS, HIDDEN), (), read)
        carried = Kernel.apply((TOKENS, width), (given, carried, weights), given, carried)
    return carried


def lightning(x, key_heads, key_dim, value_heads, value_dim):
    keys, values = key_heads * key_dim, value_heads * value_dim
    qkv = nn.functional.silu(linear(2 * keys + values, HIDDEN)(x))
    out = normed(Kernel.apply((TOKENS, values), (qkv,), qkv), 1)
    return linear(HIDDEN, values)(linear(values, HIDDEN)(x).sigmoid() * out)


def conv(x, **_):
    b, c, value = linear(3 * HIDDEN, HIDDEN)(x).chunk(3, dim=-1)
    return linear(HIDDEN, HIDDEN)(c * convolved(b * value))


def kept_bytes(build, sizes):
    """Bytes of each storage that is kept once, without weights and the input."""
    storages, x = {}, fresh(TOKENS, HIDDEN).requires_grad_()

    def pack(tensor):
        base = tensor
        while base._base is not None:
            base = base._base
        if not isinstance(base, nn.Parameter) and tensor.untyped_storage().data_ptr() != x.untyped_storage().data_ptr():
            storages[tensor.untyped_storage().data_ptr()] = (tensor.untyped_storage().nbytes(), tensor)   # held: no address comes twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = build(x, **sizes)
    del out
    return sum(size for size, _ in storages.values())


def main():
    few = dict(key_heads=4, key_dim=32, value_heads=8, value_dim=48)
    alike = dict(key_heads=8, key_dim=32, value_heads=8, value_dim=32)
    scan = dict(key_heads=1, key_dim=16, value_heads=512, value_dim=1, step_rank=24)
    latent = dict(heads=8, head_dim=32, q_lora_rank=48, output_groups=4, output_rank=24)
    cases = [(gated_delta, few), (gated_delta, alike), (kimi_delta, alike), (mamba2, dict(few, key_heads=2)), (mamba2, few), (lightning, alike),
             (conv, {}), (mamba1, dict(scan, mixer_norm=False)), (mamba1, dict(scan, mixer_norm=True)),
             (parallel, dict(few, heads=8, kv_heads=2, head_dim=32)), (compressed, dict(latent, compression=32)),
             (compressed, dict(latent, compression=4, index_heads=4, index_dim=24, index_topk=16)), (streams, dict(streams=4))]
    rows = [{"mixer": build.__name__, "sizes": sizes, "bytes": kept_bytes(build, sizes) / TOKENS} for build, sizes in cases]
    with open(sys.argv[1], "w") as out:
        json.dump({"source": "PyTorch %s, saved_tensors_hooks" % torch.__version__, "hidden": HIDDEN, "cases": rows}, out, indent=1)
        out.write("\n")


main()
