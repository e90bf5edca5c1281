-- SPDX-License-Identifier: Apache-2.0
-- untold.lua: what of a spec's recipe decides memory or time and is written in no key of the framework: "training.lora_rank 16: adapters";
-- nil: nothing. A framework says what it has another way for (catalog/frameworks: told).

local kernels = require("pipeplan.input.fields").unfused_kernels

local function off(_, value) return not value or value == 0 end

-- Field of the recipe; what it is; holds: function(f, value), is it what the framework does when nobody says?
local fields = {
  { "lora_rank", what = "adapters" },
  { "dropout", what = "masks behind embedding, attention and MLP", holds = off },
  { "cuda_graphs", what = "nothing of CUDA graphs is written here", holds = off },
  { "reduction", what = "what a rank gets of reduced gradients",
    holds = function(f, value) return f.training.zero == 0 or value == "scatter" end },
  { "reduced_gradients", what = "what gradients are sent in, beside what they are added up in",
    holds = function(f, value) return value == f.request.training.gradients end },
  { "weight_gradients", what = "temporaries of weight gradients",
    holds = function(f, value) return value == ((f.entry.weight_gradients or {}).how or "kept") end },
  { "bucket", what = "no size of a bucket is written here", holds = function(f, value) return value == f.entry.sharding.bucket end },
  { "tensor_overlap", what = "no overlap of TP is written here", holds = off },
  { "activations", what = "what is kept beside fp8 products",
    holds = function(f, value) return f.request.training.precision ~= "fp8" or value == (f.entry.defaults.linear_inputs or "fp8") end },
}

-- In words, of what settings.lua hands to a framework's own `unsaid`.
return function(f)
  local told, training = f.entry.told or {}, f.request.training
  for _, field in ipairs(fields) do
    local name = field[1]
    local value = training[name]
    if value ~= nil and not told[name] and not (field.holds and field.holds(f, value)) then
      return string.format("training.%s %s: %s", name, value, field.what)
    end
  end
  for _, kernel in ipairs(kernels) do
    if (training.unfused or {})[kernel] and not (told.unfused or {})[kernel] then
      return string.format("training.unfused %s: how kernels are fused is not written here", kernel)
    end
  end
end
