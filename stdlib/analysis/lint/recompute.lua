-- SPDX-License-Identifier: Apache-2.0
-- recompute.lua: what a launch computes again, in a spec's words; and what of it no spec says, for that is one recipe for all layers alike.
-- Files are those of megatron-core 0.19.2.

local fields = require "pipeplan.input.fields"
local format = require "pipeplan.base.format"

local recompute = {}

local words = "a spec's recompute is none, selective, full, or modules (" .. table.concat(fields.recompute_modules, ", ")
              .. ") of all layers alike (--recompute)"

local function value_of(result, name)
  local value, good = result.trace.run(function() return result.record[name] end)
  return good and value or nil, good
end

-- { base: the key that says it, shown: its words, message }.
local function problem(result, base, shown, how)
  local found = result.get(base)
  return { base = base, shown = shown, field = "training.recompute",
           setting = found.setting or { file = result.file, line = result.launch.line or 1 },
           message = string.format("%s %s: %s", result.entry.title, how, words) }
end

-- core/recompute.py: checkpointed_forward: "uniform" goes over a chunk's layers in steps of so many, of which the first input is kept;
-- "block" computes again the first so many layers of each chunk, and none of MTP (transformer/multi_token_prediction.py:1424).
-- chunks: layers of each chunk, nil: not known.
local function full(result, chunks)
  local number, method = result.get "--recompute-num-layers", result.get "--recompute-method"
  if not number.key then return "full" end
  local N, shown = number.value, tostring(method.value or "?") .. " " .. tostring(number.value or "?") .. " layers"
  if number.unknown or method.unknown or N == nil or method.value == nil then
    return nil, problem(result, "--recompute-num-layers", "full, " .. shown, "recomputes whole layers, and how many is not known")
  end
  local most
  for _, count in ipairs(chunks or {}) do most = math.max(most or 0, count) end
  local key, how = number.key.key, method.key.key
  if method.value == "uniform" then
    if N <= 1 or most and most <= 1 then return "full" end
    return nil, problem(result, "--recompute-num-layers", "full, " .. shown,
                        string.format("with %s uniform and %s %d recomputes %d layers at once, and holds what all of them need", how, key,
                                      N, N))
  end
  if N <= 0 then return "none" end
  local mtp = value_of(result, "mtp_layers") or 0
  if most and N >= most and mtp == 0 then return "full" end
  local among = most and N < most and string.format(" of the %d of a chunk", most) or ""
  return nil, problem(result, "--recompute-num-layers", "full, " .. shown,
                      string.format("with %s block and %s %d recomputes the first %s%s%s", how, key, N, format.plural(N, "layer"), among,
                                    mtp > 0 and ", and none of MTP" or ""))
end

-- Keys that say it layer by layer, beside those of Megatron-LM.
local by_layer = { "recompute_granularity_per_stage_micro_batch", "recompute_method_per_stage_micro_batch",
                   "recompute_num_layers_per_stage_micro_batch", "recompute_layer_ids" }

local function apart(result)
  for _, key in ipairs(by_layer) do
    local found = result.get(key)
    if found.unknown or type(found.value) == "table" and #found.value > 0 then
      return problem(result, key, key, string.format("with %s recomputes some layers otherwise than others", key))
    end
  end
  for _, key in ipairs { "pipeline.activation_checkpoint_interval", "PipelineModule.activation_checkpoint_interval" } do
    local found = result.get(key)
    if math.type(found.value) and found.value > 1 and value_of(result, "pipeline_parallel") ~= 1 then   -- else nobody reads it
      return problem(result, key, key .. " " .. found.value,
                     string.format("with %s %d recomputes %d layers at once", key, found.value, found.value))
    end
  end
end

-- → none, full, a list of modules, or nil: not known; and what is not a spec's, where that is why. With `whole`, modules for which a spec
-- has no word stand in the list under the framework's name. Such a thing is { field, message, setting, base, shown }, or,
-- where the plan may choose, { field, value, why }.
function recompute.of(result, chunks, whole)
  if not result.record then return nil end
  local other = apart(result)
  if other then return nil, other end
  local kind, known = value_of(result, "recompute_granularity")
  if not known then
    return nil, { field = "training.recompute", value = "chosen", why = "what the launch recomputes is not known" }
  end
  if kind == "full" then return full(result, chunks) end
  if kind ~= "selective" then return not whole and "none" or nil end
  local class = result.get "activation_checkpoint"
  if class.key then
    return nil, { field = "training.recompute", value = "chosen",
                  why = string.format("%s %s keeps results of single operations, which no spec says", class.key.key,
                                      tostring(class.value)) }
  end
  local ours, list = {}, {}
  for name, law in pairs((result.entry.recompute or {}).modules or {}) do ours[law.key] = name end
  local modules, listed = value_of(result, "recompute_modules")
  if not listed then
    return nil, { field = "training.recompute", value = "chosen", why = "which modules the launch recomputes is not known" }
  end
  for _, name in ipairs(modules) do
    if not ours[name] and not whole then
      return nil, problem(result, "--recompute-modules", name, string.format("with %s %s recomputes what a spec has no word for",
                                                                             result.get("--recompute-modules").key.key, name))
    end
    list[#list + 1] = ours[name] or name
  end
  return (whole or #list > 0) and list or nil
end

return recompute
