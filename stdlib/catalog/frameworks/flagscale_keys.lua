-- SPDX-License-Identifier: Apache-2.0
-- flagscale_keys.lua: what of FlagScale only who reads or writes its files asks for: its keys and rules that no plan breaks. Names of files as
-- in flagscale.lua.

local layers = require "pipeplan.catalog.frameworks.megatron_layers"
local lists = require "pipeplan.base.lists"
local megatron = require "pipeplan.catalog.frameworks.megatron"

local function at(where) return "https://github.com/flagos-ai/FlagScale/tree/16a2dd5b, " .. where end

local two_directions = "https://github.com/flagos-ai/FlagScale/pull/1157, its description"

local function is_deepep(f)
  local kernel, p = f.plan.alltoall_kernel and f.plan.alltoall_kernel.name, f.plan.parallelism
  return (kernel == "deepep" or kernel == "deepep_v1") and p.tensor * (p.expert or 1) > 1
end

-- Layers of each rank, or nil where Megatron refuses their split anyway.
local function ranks_of(f)
  if f.layout or layers.problem(f) then return nil end
  local list, ranks = layers.built(f), {}
  for i, held in ipairs(list) do
    local r = (i - 1) % f.pipeline_parallel + 1
    ranks[r] = (ranks[r] or 0) + held
  end
  return ranks
end

return {
  facts = { use_dualpipev = "use_dualpipev", use_dualpipe = "use_dualpipe", fb_overlap = "moe_fb_overlap" },
  writes = lists.with(megatron.writes, {
    -- its Megatron-LM, core 0.15.0rc5, may not have --moe-flex-dispatcher-backend yet
    ["--moe-token-dispatcher-type"] = function(f) return (f.shape.experts or 0) > 0 and (is_deepep(f) and "flex" or "alltoall") or nil end,
    ["--moe-flex-dispatcher-backend"] = function() return nil end,
    ["--moe-enable-deepep"] = function(f) return (f.shape.experts or 0) > 0 and is_deepep(f) end,
    use_dualpipev = function(f) return f.plan.schedule == "dualpipev" end,
    use_dualpipe = function(f) return f.plan.schedule == "dualpipe" end,
    moe_fb_overlap = function(f) return f.plan.schedule == "dualpipev" end,   -- the planned pairs hide the all-to-all
  }),
  dropped = { "--step-batch-size-schedule", "--hybrid-layer-pattern" },
  keys = {
    { key = "rampup_batch_size", field = "training.global_batch_size", type = "list", written = "never" },
    { key = "use_dualpipev", field = "parallelism.schedule", type = "flag", present = "dualpipev", written = "differs" },
    { key = "use_dualpipe", field = "parallelism.schedule", type = "flag", present = "dualpipe", written = "differs",
      note = "known to https://github.com/flagos-ai/FlagScale/pull/1157 only: before it argparse refuses the key" },
    { key = "moe_fb_overlap", type = "flag", present = true, default = false, written = "differs" },
    { key = "multiple_of", type = "integer", written = "never", note = "ffn from it and hidden_dim_multiplier (arguments.py.patch:186)" },
    { key = "hidden_dim_multiplier", type = "number", written = "never" },
    { key = "enable_hetero", type = "flag", present = true, default = false, written = "never", note = "heterogeneous: not judged (arguments.py:80-225)" },
    { key = "hetero_process_meshes", type = "list", written = "never" },
    { key = "hetero_device_types", type = "list", written = "never" },
    { key = "hetero_pipeline_layer_split", type = "list", written = "never" },
    { key = "recompute_granularity_per_stage_micro_batch", type = "list", written = "never", note = "arguments.py:231-290" },
    { key = "recompute_method_per_stage_micro_batch", type = "list", written = "never" },
    { key = "recompute_num_layers_per_stage_micro_batch", type = "list", written = "never" },
  },
  rules = {
    { id = "flagscale.dualpipev_depth", by = "engine", use_dualpipev = "dualpipev", pipeline_parallel = 1,
      message = "{framework} runs DualPipeV only with a pipeline: P is 1", source = at "arguments.py.patch:209-264" },
    { id = "flagscale.dualpipev_mtp_given", by = "engine", use_dualpipev = "dualpipev",
      when = function(f) return f.mtp_given_said and f.mtp_given == 0 end,
      message = "{framework} runs DualPipeV only without mtp_num_layers: 0 is refused too", source = at "arguments.py.patch:209-264" },
    { id = "flagscale.dualpipev_layers", by = "engine", use_dualpipev = "dualpipev",
      when = function(f)
        local ranks = ranks_of(f)
        for _, held in ipairs(ranks or {}) do
          if held % 2 ~= 0 or held < 2 then return true end
        end
        return false
      end,
      message = "{framework} gives every rank of DualPipeV an even number of layers, half to each of its chunks: {layers} layers on "
                .. "{pipeline_parallel} ranks are not so", source = at "arguments.py.patch:209-264" },
    { id = "flagscale.dualpipev_shared", by = "engine", use_dualpipev = "dualpipev", shared_overlap = true,
      message = "{framework} runs DualPipeV only without moe_shared_expert_overlap", source = at "arguments.py.patch:209-264" },
    { id = "flagscale.dualpipev_overlap", by = "engine", use_dualpipev = "dualpipev", fb_overlap = true,
      when = function(f) return f.overlap_gradients or f.overlap_parameters end,
      message = "{framework}: moe_fb_overlap goes with neither overlap_grad_reduce nor overlap_param_gather",
      source = at "arguments.py.patch:209-264" },
    { id = "flagscale.dualpipev_virtual", by = "engine", use_dualpipev = "dualpipev",
      when = function(f) return f.virtual_given ~= nil or f.layers_a_chunk ~= nil end,
      message = "{framework} takes virtual stages beside DualPipeV and its schedule ignores them: a V has two chunks a rank",
      source = "https://github.com/deepseek-ai/DualPipe, dualpipev.py; " .. at "dualpipev_schedules.py" },
    { id = "flagscale.dualpipev_microbatches", by = "engine", use_dualpipev = "dualpipev",
      when = function(f) return f.microbatches < 2 * f.pipeline_parallel end,
      message = "{framework} takes M {microbatches}, and its table of DualPipeV is wrong under M = 2 P, P is {pipeline_parallel}",
      source = "https://github.com/deepseek-ai/DualPipe, dualpipev.py: step; " .. at "dualpipev_schedules.py:345" },
    { id = "flagscale.dualpipe_unverified", by = "engine", severity = "note", use_dualpipe = "dualpipe",
      message = "use_dualpipe is known from the description of an open pull request: no release of {framework} takes it, and nothing of it "
                .. "was run", source = two_directions },
    { id = "flagscale.dualpipe_even", by = "engine", use_dualpipe = "dualpipe",
      when = function(f) return f.pipeline_parallel % 2 == 1 end,
      message = "{framework} runs DualPipe with an even P over 1: P is {pipeline_parallel} (unverified)", source = two_directions },
    { id = "flagscale.dualpipe_microbatches", by = "engine", use_dualpipe = "dualpipe",
      when = function(f) return f.microbatches % 2 == 1 or f.microbatches < 2 * f.pipeline_parallel end,
      message = "{framework} runs DualPipe with an even M of at least 2 P: M is {microbatches}, P {pipeline_parallel} (unverified)",
      source = two_directions },
    { id = "flagscale.dualpipe_virtual", by = "engine", use_dualpipe = "dualpipe",
      when = function(f) return f.virtual_given ~= nil or f.layers_a_chunk ~= nil or f.use_dualpipev ~= nil end,
      message = "{framework} runs DualPipe with neither virtual stages nor use_dualpipev (unverified)", source = two_directions },
  },
}
