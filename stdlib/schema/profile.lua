-- SPDX-License-Identifier: Apache-2.0
-- profile.lua: the JSON Schema of a profile (draft 2020-12): what a few steps on the machine itself measured, in place of what pipeplan
-- computes. Everything is optional but F and B of one temperature a stage. Times in milliseconds or microseconds, as their names say.
-- luacheck: no max line length

local most_stages = require("pipeplan.vocabulary").most.layers  -- and ranks: a stage holds a layer

-- Limits far beyond anything measured, in any of the units here.
local function number(description, maximum) return { type = "number", minimum = 0, maximum = maximum or 1e12, description = description } end
local function positive(description, minimum, maximum)
  return { type = "number", minimum = minimum or 1e-9, maximum = maximum or 1e12, description = description }
end
-- Nothing, or what takes time at all: times in between are noise of a subtraction.
local function none_or(description)
  local schema = number(description)
  schema["not"] = { exclusiveMinimum = 0, exclusiveMaximum = 1e-9 }
  return schema
end
local function whole(description, minimum, maximum)
  return { type = "integer", minimum = minimum or 1, maximum = maximum or 1000000, description = description }
end
local function boolean(description) return { type = "boolean", description = description } end
local function text(description) return { type = "string", description = description } end
local function list(items, description, most)
  return { type = "array", minItems = 1, maxItems = most or 1000, items = items, description = description }
end
local function object(properties, description, required)
  return { type = "object", properties = properties, required = required, additionalProperties = false, description = description }
end
-- A number, or one a stage.
local function each(description) return { anyOf = { number(description), list(number(description), nil, most_stages) }, description = description } end

local function kinds(description)
  return object({
    F = positive "forward", B = positive "whole backward", I = none_or "backward for inputs", W = none_or "backward for weights",
    FB = positive "a forward and a backward at once",
    FB_in_turn = positive "one after the other on one stream: told, not used", FB_two_streams = positive "on two streams: told, not used",
  }, description .. ", ms of one microbatch, each timed directly: never as a difference of two timings", { "F", "B" })
end

local function host_kinds(description)
  return object({ F = none_or "forward", B = none_or "whole backward", I = none_or "backward for inputs", W = none_or "backward for weights" },
                description, { "F", "B" })
end

local function bytes_by_kind(description)
  return { anyOf = { number(description), object({ F = number "in F", B = number "in B", I = number "in I", W = number "in W" }) }, description = description }
end

local function by_state(description)
  return object({ cold = number "in kind_ms_cold", hot = number "in kind_ms_hot", alone = number "in kind_ms_alone", shadowed = number "in kind_ms_shadowed" }, description)
end

-- A collective of a group of ranks.
local function collective(description)
  return list(object({ bytes = positive "that a rank gives", us = positive "one of them", ranks = whole "of the group" }, "one size", { "bytes", "us" }), description)
end

local stage = object({
  layers = whole("decoder layers it holds; default: as an even split of the model has", 0, 1024),
  dense = whole("of them without experts; default: as the model has, where the stages are all of it, else 0", 0, 1024),
  embedding = boolean "does it hold the embedding? default: the first of several",
  head = boolean "does it hold head and loss? default: the last of several",
  rank = whole("pipeline rank on whose card it was measured: its speed is in the times; default: a card of mean speed", 0, most_stages - 1),
  kind_ms = kinds "at whatever temperature",
  kind_ms_cold = kinds "at most half of the time busy (sleep between), median of 20 or more",
  kind_ms_hot = kinds "back to back, after two seconds of load on all cards",
  kind_ms_shadowed = kinds "with a receive that nobody answers posted on the communication stream",
  host_ms = host_kinds "host time to hand an action to a card that has nothing else to do, ms: where it is longer than the card is busy, the card waits; of a pair both",
  kind_ms_alone = kinds "as cold, but without the host ahead: from when it begins to hand an action over to a card that has nothing to do until the card is done",
  host_ms_behind = host_kinds "the same while the card is busy for behind_ms: longer by more than half of that where the host waits for its card in the action, as for the row counts of experts; default: it does nowhere",
  clock_mhz = by_state "of the card while it worked: told, not used", power_w = by_state "of the card while it worked: told, not used",
  mem = object({
    act_bytes = number "kept of a microbatch from F to I or B", wgrad_pending_bytes = number "kept of it from I to W: all of it, not what I adds; without the gradient that goes to the stage before",
    weights = number "bytes of weights", grads = number "bytes of gradients", transient_bytes = bytes_by_kind "largest temporary",
    deferred_bytes = number "kept from I to W where I frees what F stored (runtime pipeplan); default act_bytes",
    output_bytes = number "of its result; default message_bytes",
  }, "memory of this stage; before the profile's own `mem`"),
}, "one stage, first to last")

local schema = object({
  ["$schema"] = text "for editors",
  source = text "where and how it was measured: shown with what comes from it",
  runtime = { enum = { "ideal", "torch-single", "torch-multi", "deepseek", "pipeplan", "megatron" }, description = "what runs the schedule: queues, when receives are posted, grouping, the first stage's backward" },
  at = object({
    tensor = whole "TP", context = whole "CP", expert = whole "EP", expert_tensor = whole "ETP", data = whole "DP",
    micro_batch_size = whole "sequences", sequence_length = whole "tokens",
  }, "what it was measured at; degrees default to 1, sizes to the spec's. Other layouts take the cost model's ratio between the two"),
  stage = list(stage, "the stages, first to last", most_stages),
  heat = object({
    onset = { type = "number", minimum = 0, exclusiveMaximum = 1, description = "share of busy time from which cards slow down" },
    tau_ms = positive("time over which busy time is averaged", nil, 1e9),
    slope = number("how much longer a card takes that works all the time, less one; default: of these stages, hot over cold", 9),
    rank_slope = list(number("as slope", 9), "slope of each rank's card; used at that many ranks", most_stages),
    curve = list(object({ duty = positive "share of time busy", slow_down = positive "over a rested card", clock_mhz = number "of the card" }, "one share", { "duty", "slow_down" }), "what onset was fitted to: told, not used"),
  }, "how hot times come about between cold and hot"),
  contention = { type = "number", minimum = 1, maximum = 10, description = "how much longer actions take beside a receive that waits; default: kind_ms_shadowed over kind_ms_cold" },
  p2p = list(object({
    bytes = positive "of the message", us = positive "one message", us_pair = positive "a send and a receive in one group",
    us_beside_compute = positive "one message while both cards compute: told, not used",
    link = { enum = { "scale_up", "scale_out" }, description = "inside a scale-up domain (default) or between them" },
  }, "one size", { "bytes", "us" }), "messages between neighbours"),
  message_bytes = positive "of one hand-over between stages: what `pipeplan simulate` reads the time of from p2p",
  alltoall = collective "all-to-all of an expert group: told, not used, for it is part of F, B and I of stages with experts",
  allreduce = collective "all-reduce of the replicas of a stage: told, not used (cluster.network.measured takes what nccl-tests measured)",
  behind_ms = positive "how long the card was busy with other work when host_ms_behind was measured",
  launch_us = number "host time of an action, as one number: told, not used; stage[].host_ms is",
  step_fixed_us = number "fixed cost of a step: start, zeroing gradients, synchronising",
  rank_speed = list(positive("speed of one card over the mean", 0.001, 1000), "by pipeline rank; used at that many ranks", most_stages),
  clock_mhz = each "beside the timings: told, not used", power_w = each "beside the timings: told, not used",
  mem = object({
    act_bytes = each "as in stage[].mem", wgrad_pending_bytes = each "as in stage[].mem", weights = each "as in stage[].mem", grads = each "as in stage[].mem",
    transient_bytes = bytes_by_kind "as in stage[].mem", deferred_bytes = number "as in stage[].mem", output_bytes = number "as in stage[].mem",
    keeps_outputs = boolean "does a PyTorch runtime keep the last stage's results until the step ends? default: yes; not with return_outputs = False",
    buffers_per_microbatch = number("messages that the runtime allocates up front for each microbatch and stage (PyTorch: 2)", 1000),
  }, "memory: a number for all stages, or one a stage"),
  calibration = list(object({
    schedule = text "schedule (default 1f1b)", microbatches = whole "M", step_ms = positive "measured",
  }, "one run of the profiled stages", { "microbatches", "step_ms" }), "measured steps to hold the plan's model against"),
}, "what was measured of a pipeline's stages on the machine itself", { "stage" })
schema["$schema"], schema["$id"] = "https://json-schema.org/draft/2020-12/schema", require("pipeplan.base.documents").id "profile"
schema.title = "pipeplan profile"
return schema
