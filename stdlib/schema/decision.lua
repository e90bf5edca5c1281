-- SPDX-License-Identifier: Apache-2.0
-- decision.lua: the JSON Schema of a line of `plan --record` (draft 2020-12), as a Lua table.

local documents = require "pipeplan.base.documents"
local lists = require "pipeplan.base.lists"

local function text(description) return { type = "string", description = description } end
local function maybe(type, description) return { type = { type, "null" }, description = description } end
local function list(items, description) return { type = "array", items = items, description = description } end

local function object(properties, description)
  return { type = "object", properties = properties, required = lists.sorted_keys(properties), additionalProperties = false,
           description = description }
end

local function optional(schema) return { anyOf = { schema, { type = "null" } }, description = schema.description } end

local schema = object({
  ["$schema"] = { const = documents.id "decision", description = "what this is, and in which version" },
  time = text "when it was decided: UTC, YYYY-MM-DDThh:mm:ssZ",
  user = text "whose process decided, by the system's name; the number of one that has none",
  ["for"] = maybe("string", "for whom, by the words of --record-for"),
  verdict = { type = "string", enum = { "planned", "refused", "rejected", "error" }, description = "the outcome; error: there is no plan" },
  exit_status = { type = "integer", description = "what the process ended with; of a stream, what this line counts as" },
  problem = maybe("string", "of an error: what was said"),
  reasons = list(object({ id = text "rule", message = text "what it says about this plan" }, "one reason"), "the plan's reasons"),
  verified = optional(object({
    file = text "the plan that was handed in", equal = { type = "boolean", description = "is it what was planned?" },
    differ = list(text "engine, policy, spec or figures", "what differs"),
  }, "of --verify: the verdict is that of the plan as derived")),
  schedule = maybe("string", "the planned schedule"), gpus_used = maybe("integer", "GPUs of the layout"),
  run = maybe("string", "the spec's name of the run"), line = maybe("integer", "of --jsonl: the line of its spec"),
  spec = optional(object({ digest = text "of every field, the model and the profile", files = list(text "path", "spec files") },
                         "the spec; null where it cannot be read")),
  policy = optional(object({
    digest = text "of everything loaded", stack = text "of the layers alone", date = text "YYYY-MM-DD that expiry was judged at",
    layers = list(text "layer", "in order"),
  }, "the policy in force; null where it cannot be loaded")),
  engine = object({ version = text "of pipeplan", build = optional(text "digest of its sources"),
                    library = text "digest of its Lua", catalogue = text "digest of its fact tables" },
                  "what decided"),
}, "A decision: one line of a record")

schema["$schema"], schema["$id"] = "https://json-schema.org/draft/2020-12/schema", documents.id "decision"
schema.title = "pipeplan decision"
return schema
