-- SPDX-License-Identifier: Apache-2.0
-- search.lua: what programs have of the engine and no policy: engine.search, its candidates, and masks over their rows; as primitives.lua
-- describes the primitives. The tests of that description are those of this one.

local HUGE_SIZE = 2 ^ 24     -- as the bindings limit it
local MOST_LAYERS = 1024

local function degree(name, meaning) return { name, "integer", meaning, low = 1, high = HUGE_SIZE, optional = true } end
local function flag(name, meaning) return { name, "boolean", meaning, default = false } end
local function bytes(name, meaning) return { name, "number", meaning, low = 0, default = 0 } end
local function share(name, meaning) return { name, "number", meaning, low = 0, high = 1, default = 0 } end
local function quantity(name, meaning, optional)
  return { name, "number", meaning, low = 0, high = 1e18, optional = optional }
end

local classes = {}

-- ---------------------------------------------------------------------------------------------------------------- what they are given

classes.search_fixed = { meaning = "What of a layout is fixed; the rest is searched.", given = true, fields = {
  degree("tensor", "TP"), degree("context", "CP"), degree("expert", "EP"), degree("expert_tensor", "TP of experts"), degree("data", "DP"),
  degree("pipeline", "P"), { "virtual", "integer", "V", low = 1, high = MOST_LAYERS, optional = true },
  { "microbatches", "integer", "M", low = 1, high = 2 ^ 31 - 1, optional = true },
  { "schedule", "pipeplan.schedule", "its name; or none", optional = true },
  { "layers_per_stage", "integer[]", "by slice of the model, first to last", optional = true },
} }

classes.search_choice = { meaning = "A recipe to search with, and on how many GPUs.", given = true, fields = {
  { "training", "pipeplan.engine.training", "the recipe" },
  { "gpus", "integer", "that layouts use; default: those of the search", low = 1, optional = true },
  flag("alone", "only without a pipeline"),
} }

classes.profile_stage = { meaning = "A stage as it was measured, for one microbatch: seconds and bytes.", given = true, fields = {
  { "blocks", "pipeplan.engine.stage", "what it holds" }, quantity("F", "seconds of a forward"), quantity("B", "seconds of a whole backward"),
  quantity("I", "seconds of a backward for input", true), quantity("W", "seconds of a backward for weights", true),
  quantity("FB", "seconds of a pair", true), quantity("parameters", "bytes of weights", true), quantity("gradients", "bytes of gradients", true),
  quantity("stored", "bytes of activations from F to I (or B)", true), quantity("pending", "… from I to W", true),
  quantity("transient", "bytes of the largest temporary", true),
  { "host", "pipeplan.engine.profile_host", "seconds that its actions take the host; in all stages or in none", optional = true },
} }

classes.profile_host = { meaning = "What handing over a stage's actions takes its host.", given = true, fields = {
  quantity("F", "seconds of a forward"), quantity("I", "… of a backward for input"), quantity("W", "… of a backward for weights"),
  quantity("B", "… of a whole backward"),
  { "beyond", "{ F: number, I: number, W: number, B: number }", "what they take beyond both on a card that has nothing to do, seconds", optional = true },
  { "waits", "{ F: boolean?, I: boolean?, W: boolean?, B: boolean? }", "kinds in which the host waits for its card", optional = true },
} }

classes.search_profile = { meaning = "Measured stages, in place of what is computed.", given = true, fields = {
  { "layout", "pipeplan.engine.layout", "at which they were measured" },
  { "stages", "pipeplan.engine.profile_stage[]", "each kind of stage once" },
  { "rank_speed", "number[]", "of each rank, 1: as the times say", optional = true },
  { "runtime", '"ideal"|"torch-single"|"torch-multi"|"deepseek"|"pipeplan"|"megatron"', "whose order of messages", default = "ideal" },
  { "contention", "number", "factor on actions while a batch of messages is under way", low = 1, high = 1e6, default = 1 },
  { "buffered_messages", "number", "that the runtime allocates for each microbatch and stage, up front", low = 0, high = 1e6, default = 0 },
  { "heat", "pipeplan.engine.heat", "of the devices", optional = true },
} }

local operators = '"at_least"|"at_most"|"between"|"equal"|"even"|"multiple_of"|"none_of"|"not_multiple_of"|"odd"|"one_of"|"over"|"under"'
classes.condition = { meaning = "A condition on one column or fact.", fields = {
  { "field", "string", "the column or fact" }, { "op", operators, "" },
  { "value", "number|string|boolean|{ field: string }", "of those with one right side", optional = true },
  { "low", "number|{ field: string }", "of between", optional = true }, { "high", "number|{ field: string }", "of between", optional = true },
  { "values", "(number|string|boolean)[]", "of one_of and none_of", optional = true },
} }

-- ------------------------------------------------------------------------------------------------------------------- what they answer

-- The columns: a test compares with the search's own fields().
classes.candidate = { meaning = "A row: the columns below, and what was set. What is absent or not computed yet is nil.", fields = {
  { "tensor_parallel", "integer", "TP" }, { "context_parallel", "integer", "CP" }, { "expert_parallel", "integer", "EP" },
  { "expert_tensor_parallel", "integer", "TP of experts" }, { "data_parallel", "integer", "DP" },
  { "pipeline_parallel", "integer", "P; 1: no pipeline" }, { "virtual", "integer", "V" }, { "microbatches", "integer", "M" },
  { "microbatches_per_rank", "number", "M/P" }, { "schedule", "string", "its name; none" }, { "schedule_family", "string", "zero_bubble, or the name" },
  { "expert_link", "number", "bytes per second of the slowest link of an expert group", optional = true },
  { "alltoall_kernel", "string|boolean", "as set", optional = true },
  { "alltoall_fraction", "number", "share of a step before overlap", optional = true }, { "stages", "integer", "of all directions" },
  { "one_copy_bytes", "number", "of the fullest rank, were there one copy of the parameters; nil where there is", optional = true },
  { "peak_bytes", "number", "of the fullest rank; filled by memory(), best() and evaluate()", optional = true },
  { "step_seconds", "number", "filled by simulate(), best() and evaluate()", optional = true },
  { "bubble_fraction", "number", "mean idle share; likewise", optional = true },
  { "training_days", "number", "with run_days_per_second", optional = true }, { "gpu_hours", "number", "likewise", optional = true },
  { "cost", "number", "and with price_per_gpu_hour", optional = true },
  { "pipeline_avoidable_seconds", "number", "with alone_seconds, of a pipeline", optional = true },
  { "pipeline_avoidable_fraction", "number", "likewise", optional = true },
} }

classes.engine_rule = { meaning = "A rule of the engine's own, and the rows that it holds for.", fields = {
  { "id", "string", "such as engine.odd_depth" }, { "mask", "pipeplan.engine.mask", "the rows" },
} }

-- -------------------------------------------------------------------------------------------------------------------------- functions

local functions = {
  { "search", "All legal candidates of a problem, as columns.", result = "pipeplan.engine.candidates", arguments = {
      { "model", "pipeplan.engine.shape", "the model" }, { "training", "pipeplan.engine.training", "the recipe; with choices read for nothing" },
      { "device", "pipeplan.engine.device", "the accelerator; hides_alltoall is not read: each candidate's kernel is" },
      { "network", "pipeplan.engine.network", "the network" },
      { "gpus", "integer", "of a layout", low = 1, high = HUGE_SIZE },
      { "global_batch", "integer", "sequences of a step", low = 1, high = 1 << 53 },
      { "smallest_batch", "integer", "at the start of a ramp, at most global_batch; default: global_batch", low = 1, optional = true },
      { "scale_up_gpus", "integer", "GPUs of a scale-up domain", low = 1, high = HUGE_SIZE },
      { "usable_bytes", "number", "what a rank may fill", low = 0 },
      { "schedules", "pipeplan.schedule[]", "to be tried; without a pipeline is always" },
      { "layers", "table<pipeplan.schedule, '\"any\"'|'\"even\"'|'\"remainder_first\"'|'\"even_ends\"'>",
        "how stages get their layers, by schedule; any (default): balanced by time", optional = true },
      { "fixed", "pipeplan.engine.search_fixed", "of the layout", optional = true },
      { "choices", "pipeplan.engine.search_choice[]", "recipes, each searched in turn; 256 at most", optional = true },
      { "profile", "pipeplan.engine.search_profile", "measured stages", optional = true },
      { "max_tensor", "integer", "largest TP", low = 1, high = 65536, default = 64 },
      { "max_context", "integer", "largest CP", low = 1, high = HUGE_SIZE, default = 1 },
      { "max_virtual", "integer", "largest V", low = 1, high = MOST_LAYERS, default = 8 },
      flag("rounds", "groups of microbatches as PyTorch makes them"), flag("experts_as_tensor", "expert TP, where it is not fixed, is TP"),
      flag("experts_apart", "beside that 1 is tried too, where TP is not fixed"),
      { "kernel_latency", "table<string, number>", "seconds of a dispatch or combine beside its transfers, by kernel; default: device.alltoall_latency",
        optional = true },
      bytes("overhead_bytes", "on each rank beside tensors and communicators"),
      { "communicators", "pipeplan.engine.communicators", "default: in overhead_bytes", optional = true },
      share("hop_waiting", "share of a hand-over's transfer in which the rank that receives it waits, besides computing"),
      { "step_overhead_seconds", "number", "of a step beside all else", low = 0, default = 0 },
      share("split_tie", "of splits whose steps are apart by no more, the one that takes least memory"), share("split_gain", "layers stand on early ranks where that wins more than this"),
      { "split_overfull", "number", "beyond this share of usable_bytes no layers are moved", low = 0, high = 10, default = 0 },
      { "run_days_per_second", "number", "days of the run for a second of its step", low = 0, optional = true },
      { "price_per_gpu_hour", "number", "of a GPU", low = 0, optional = true } } },
}

local mask = { "mask", "pipeplan.engine.mask", "of rows" }
local row = { "row", "integer", "from 1", low = 1 }
local MASK = "pipeplan.engine.mask"

-- Methods of candidates.
local candidates = {
  { "all", "The mask of all rows.", result = MASK, positional = {} },
  { "best", "The fastest by simulation of those that a mask has: its row, its seconds, the mask of those as fast; nil: there is none.",
    result = "integer|nil", results = { "number seconds", MASK .. " within" }, positional = { mask,
      { "tolerance", "number", "the mask has those at most this share slower; default 0", optional = true },
      { "limit", "number", "that its seconds are under", optional = true },
      { "bytes", "number|boolean", "that its fullest rank takes at most; true: usable_bytes", optional = true } } },
  { "bound", "A lower bound of a row's step_seconds.", result = "number", positional = { row } },
  { "check", "Can a row be built?", result = "true", illegal = true, positional = { row } },
  { "choice", "The number of a row's choice.", result = "integer", positional = { row } },
  { "engine_rules", "What of a mask cannot be built, by rule.", result = "pipeplan.engine.engine_rule[]", positional = { mask } },
  { "evaluate", "Everything that a plan prints about a row, and those schedules in its place as `baselines`; stdlib/plan/choose.lua lists it.",
    result = "table<string, any>", illegal = true, positional = { row, { "schedules", "pipeplan.schedule[]", "to compare with", optional = true } } },
  { "fields", "Names of columns and facts.", result = "string[]", positional = {} },
  { "fullest", "The rank that peak_bytes is about, from 0; nil where that is not known.", result = "integer|nil", positional = { row } },
  { "get", "One value of a row.", result = "any", positional = { { "field", "string", "a column, or a fact" }, row } },
  { "match", "The mask of the rows for which all conditions hold.", result = MASK, positional = {
      { "conditions", "pipeplan.engine.condition[]", "all of them" } } },
  { "match_late", "The mask of those rows for which all conditions hold, or will once they are simulated: of time they may only ask that it be long.",
    result = MASK, positional = { { "conditions", "pipeplan.engine.condition[]", "all of them" }, mask } },
  { "memory", "Fills peak_bytes of a mask's rows.", result = "nil", positional = { mask } },
  { "none", "A mask without rows.", result = MASK, positional = {} },
  { "only", "The mask of one row, or of a list.", result = MASK, positional = { { "rows", "integer|integer[]", "from 1" } } },
  { "row", "A row as a table.", result = "pipeplan.engine.candidate", positional = { row } },
  { "set", "Adds a fact, or sets alone_seconds (the best step without a pipeline) or alltoall_kernel: the same for all rows, by choice, or for kernels a list of { name | false, mask }.", result = "nil",
    positional = { { "field", "string", "its name" }, { "value", "any", "a number, a string, a boolean, or a list" } } },
  { "simulate", "Fills step_seconds and bubble_fraction of a row: its seconds.", result = "number", illegal = true, positional = { row } },
}

-- Methods of a mask; beside them a & b, a | b, a - b, #a (how many rows) and a == b.
local masks = {
  { "first", "Its smallest row.", result = "integer|nil", positional = {} },
  { "has", "Does it have a row?", result = "boolean", positional = { row } },
  { "rows", "Its rows, ascending.", result = "integer[]", positional = {} },
}

return { classes = classes, functions = functions, candidates = candidates, masks = masks }
