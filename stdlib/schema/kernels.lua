-- SPDX-License-Identifier: Apache-2.0
-- kernels.lua: the JSON Schema of measured kernels (draft 2020-12): what one card's kernels take by their shapes, as
-- examples/torch/profile_kernels.py writes them. Everything is optional: what is missing stays as the catalogue has it. Times in seconds,
-- of one kernel, without its launch.

-- luacheck: no max line length

local function positive(description) return { type = "number", minimum = 1e-9, maximum = 1e12, description = description } end
local function launched(description) return { type = "number", minimum = 1e-9, maximum = 1e3, description = description } end
local function whole(description) return { type = "integer", minimum = 1, maximum = 1 << 31, description = description } end
local function text(description) return { type = "string", description = description } end
local function object(properties, description, required)
  return { type = "object", properties = properties, required = required, additionalProperties = false, description = description }
end
local function list(items, description) return { type = "array", minItems = 1, maxItems = 10000, items = items, description = description } end

local precision = { enum = { "bf16", "fp8", "fp16" }, description = "of the product" }

local schema = object({
  ["$schema"] = text "urn:pipeplan:kernels:1",
  device = text "the card, as its driver names it",
  source = text "where and how it was measured: shown with what comes from it",
  products = list(object({ m = whole "rows", n = whole "columns", k = whole "inner size", precision = precision, seconds = positive "one product" },
                         "y[m, n] = x[m, k] w[k, n]", { "m", "n", "k", "precision", "seconds" }), "dense products"),
  grouped = list(object({ experts = whole "of them", rows = whole "tokens, of all experts", n = whole "columns", k = whole "inner size",
                          precision = precision, seconds = positive "all experts' products in one kernel" },
                        "one grouped product", { "experts", "rows", "n", "k", "precision", "seconds" }), "experts' grouped products"),
  attention = list(object({ length = whole "tokens of a sequence", heads = whole "of queries", sequences = whole "in the batch; default 1",
                            head_dim = whole "of a head", forward = positive "forward", backward = positive "backward" },
                          "fused causal attention", { "length", "heads", "head_dim", "forward", "backward" }), "attention"),
  moved = list(object({ bytes = positive "read and written", seconds = positive "one kernel" }, "one element-wise kernel", { "bytes", "seconds" }),
               "element-wise kernels"),
  host = object({ forward = launched "forward", backward = launched "backward" },
                "what launching one dense layer takes the host, with an idle card", { "forward", "backward" }),
  collectives = list(object({ kind = { enum = { "all_gather", "reduce_scatter", "all_reduce", "all_to_all" }, description = "of it" },
                              ranks = whole "GPUs", bytes = positive "of the column `size` of nccl-tests", seconds = positive "one" },
                            "told, not used: cluster.network.measured reads nccl-tests", { "kind", "ranks", "bytes", "seconds" }),
                     "collectives inside the node"),
}, "kernels measured on one card", { "device" })

schema["$schema"], schema["$id"] = "https://json-schema.org/draft/2020-12/schema", require("pipeplan.base.documents").id "kernels"
schema.title = "pipeplan kernels"
return schema
