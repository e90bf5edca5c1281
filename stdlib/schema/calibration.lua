-- SPDX-License-Identifier: Apache-2.0
-- calibration.lua: the JSON Schema of a site's calibration (draft 2020-12): what measured runs say of the price of a step, as
-- `pipeplan plan --measured … --keep FILE` writes it and cluster.calibration reads it. docs/measuring.md: what may be corrected, and why.

-- luacheck: no max line length

local function text(description) return { type = "string", description = description } end
local function seconds(description) return { type = "number", minimum = 1e-6, maximum = 1e9, description = description } end
local function factor(description) return { type = "number", minimum = 0.05, maximum = 20, description = description } end
local function whole(description) return { type = "integer", minimum = 1, maximum = 1 << 53, description = description } end
local function object(properties, description, required)
  return { type = "object", properties = properties, required = required, additionalProperties = false, description = description }
end
local function list(items, description, least) return { type = "array", minItems = least or 1, maxItems = 1000, items = items, description = description } end

local families = { compute = "kernels, the host and the update", tensor = "TP's collectives", context = "CP's ring", expert = "all-to-all",
                   data = "gradients and parameters on their way", pipeline = "hand-overs between stages" }

local factors, responses = { all = factor "of everything: each family has its own beside it" }, {}
for name, words in pairs(families) do
  factors[name] = factor("of " .. words)
  responses[name] = list(object({ factor = factor "of the family", seconds = seconds "the step then" }, "one", { "factor", "seconds" }),
                         "the predicted step with that factor on " .. words, 2)
end

local schema = object({
  ["$schema"] = text "urn:pipeplan:calibration:1",
  accelerator = text "the GPU that the runs were on: no other is corrected",
  source = text "how it came about: shown with what comes from it",
  factors = object(factors, "what is multiplied, the seconds of a family by its own factor and by that of all; 1 where there is none"),
  runs = list(object({
    name = text "the log", job = text "digest of the spec", model = text "its name", gpus = whole "of the cluster", layout = text "in words",
    steps = whole "that count", measured_seconds = seconds "median step", low_seconds = seconds "nine of ten steps took more",
    high_seconds = seconds "nine of ten took less", predicted_seconds = seconds "without a factor",
    responses = object(responses, "by family: for a fit together with runs to come"),
  }, "one run", { "name", "layout", "measured_seconds", "predicted_seconds", "responses" }), "what the factors come from", 0),
}, "a site's measured runs and the factors that they give", { "accelerator", "factors" })

schema["$schema"], schema["$id"] = "https://json-schema.org/draft/2020-12/schema", require("pipeplan.base.documents").id "calibration"
schema.title = "pipeplan calibration"
return schema
