-- SPDX-License-Identifier: Apache-2.0
-- megatron_unread.lua: keys of Megatron-LM that change what a run holds or takes and that no field of a spec says, beside those of
-- megatron_keys.lua. Who plans a launch refuses `unread` by name, and names `assumed`. Of PyPI megatron-core 0.19.2: training/arguments.py,
-- core/transformer/transformer_config.py.

local function key(name, type, more)
  local entry = { key = name, type = type, written = "never" }
  if type == "flag" then entry.present, entry.default = true, false end
  for field, value in pairs(more) do entry[field] = value end
  return entry
end

local function training(what) return { unread = { field = "training", what = what } } end

local function assumed(field, value, why) return { assumed = { field = "training." .. field, value = value, why = why } } end

local function model(what) return { unread = { field = "model", what = what } } end

return {
  -- core/transformer/transformer_config.py: moe_latent_size, mtp_use_repeated_layer; heterogeneous_config.py; training/arguments.py:3478
  key("--moe-latent-size", "integer", model "experts in a latent space"),
  key("--heterogeneous-layers-config-path", "string", model "layers of several kinds"),
  key("--heterogeneous-layers-config-encoded-json", "string", model "layers of several kinds"),
  key("--window-attn-skip-freq", "string", model "windows in some layers and not in others"),
  key("--mtp-use-repeated-layer", "flag", model "MTP layers that share their weights"),
  key("--mtp-hybrid-override-pattern", "string", model "MTP layers of other kinds"),
  key("--spec", "list", { assumed = { field = "model", value = "layers as the other flags say them", why = "may build others" } }),
  -- read by analysis/lint/reads.lua
  key("--window-size", "string", {}),
  key("--attention-output-gate", "flag", {}),
  key("--softmax-type", "choice", { values = { "vanilla", "off-by-one", "learnable" }, default = "vanilla" }),
  key("--quick-geglu", "flag", {}),
  key("--moe-shared-expert-gate", "flag", {}),
  key("--padded-vocab-size", "integer", {}),
  key("--make-vocab-size-divisible-by", "integer", { default = 128 }),
  key("--fine-grained-activation-offloading", "flag", training("activations of some modules in host memory")),
  key("--fp32-residual-connection", "flag", training("a residual stream in fp32")),
  key("--first-last-layers-bf16", "flag", assumed("precision", "fp8 in all layers", "computes some layers in bf16")),
  -- read by analysis/lint/training.lua
  key("--attention-backend", "choice", { values = { "flash", "fused", "unfused", "local", "auto" }, default = "auto" }),
  key("--transformer-impl", "choice", { values = { "local", "transformer_engine", "inference_optimized" }, default = "transformer_engine" }),
  key("--torch-fsdp2-no-reshard-after-forward", "flag", {}),
  key("--ddp-bucket-size", "integer", {}),
  key("--cuda-graph-impl", "choice", { values = { "none", "local", "transformer_engine", "full_iteration" }, default = "none" }),
  key("--enable-cuda-graph", "flag", {}),
  key("--external-cuda-graph", "flag", {}),
}
