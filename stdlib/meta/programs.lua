---@meta engine
-- SPDX-License-Identifier: Apache-2.0

-- What `require "engine"` gives programs, after `require "pipeplan"`: the primitives, and engine.search.
-- Made by scripts/generate-meta for LuaLS; a test compares. Edit what it is made from, not this file.

--- A row: the columns below, and what was set. What is absent or not computed yet is nil.
---@class pipeplan.engine.candidate
---@field tensor_parallel integer TP
---@field context_parallel integer CP
---@field expert_parallel integer EP
---@field expert_tensor_parallel integer TP of experts
---@field data_parallel integer DP
---@field pipeline_parallel integer P; 1: no pipeline
---@field virtual integer V
---@field microbatches integer M
---@field microbatches_per_rank number M/P
---@field schedule string its name; none
---@field schedule_family string zero_bubble, or the name
---@field expert_link? number bytes per second of the slowest link of an expert group
---@field alltoall_kernel? string|boolean as set
---@field alltoall_fraction? number share of a step before overlap
---@field stages integer of all directions
---@field one_copy_bytes? number of the fullest rank, were there one copy of the parameters; nil where there is
---@field peak_bytes? number of the fullest rank; filled by memory(), best() and evaluate()
---@field step_seconds? number filled by simulate(), best() and evaluate()
---@field bubble_fraction? number mean idle share; likewise
---@field training_days? number with run_days_per_second
---@field gpu_hours? number likewise
---@field cost? number and with price_per_gpu_hour
---@field pipeline_avoidable_seconds? number with alone_seconds, of a pipeline
---@field pipeline_avoidable_fraction? number likewise

--- A condition on one column or fact.
---@class pipeplan.engine.condition
---@field field string the column or fact
---@field op "at_least"|"at_most"|"between"|"equal"|"even"|"multiple_of"|"none_of"|"not_multiple_of"|"odd"|"one_of"|"over"|"under"
---@field value? number|string|boolean|{ field: string } of those with one right side
---@field low? number|{ field: string } of between
---@field high? number|{ field: string } of between
---@field values? (number|string|boolean)[] of one_of and none_of

--- A rule of the engine's own, and the rows that it holds for.
---@class pipeplan.engine.engine_rule
---@field id string such as engine.odd_depth
---@field mask pipeplan.engine.mask the rows

--- What handing over a stage's actions takes its host.
---@class pipeplan.engine.profile_host
---@field F number seconds of a forward; 0 … 1e+18
---@field I number … of a backward for input; 0 … 1e+18
---@field W number … of a backward for weights; 0 … 1e+18
---@field B number … of a whole backward; 0 … 1e+18
---@field beyond? { F: number, I: number, W: number, B: number } what they take beyond both on a card that has nothing to do, seconds
---@field waits? { F: boolean?, I: boolean?, W: boolean?, B: boolean? } kinds in which the host waits for its card

--- A stage as it was measured, for one microbatch: seconds and bytes.
---@class pipeplan.engine.profile_stage
---@field blocks pipeplan.engine.stage what it holds
---@field F number seconds of a forward; 0 … 1e+18
---@field B number seconds of a whole backward; 0 … 1e+18
---@field I? number seconds of a backward for input; 0 … 1e+18
---@field W? number seconds of a backward for weights; 0 … 1e+18
---@field FB? number seconds of a pair; 0 … 1e+18
---@field parameters? number bytes of weights; 0 … 1e+18
---@field gradients? number bytes of gradients; 0 … 1e+18
---@field stored? number bytes of activations from F to I (or B); 0 … 1e+18
---@field pending? number … from I to W; 0 … 1e+18
---@field transient? number bytes of the largest temporary; 0 … 1e+18
---@field host? pipeplan.engine.profile_host seconds that its actions take the host; in all stages or in none

--- A recipe to search with, and on how many GPUs.
---@class pipeplan.engine.search_choice
---@field training pipeplan.engine.training the recipe
---@field gpus? integer that layouts use; default: those of the search; ≥ 1
---@field alone? boolean only without a pipeline; default false

--- What of a layout is fixed; the rest is searched.
---@class pipeplan.engine.search_fixed
---@field tensor? integer TP; 1 … 16777216
---@field context? integer CP; 1 … 16777216
---@field expert? integer EP; 1 … 16777216
---@field expert_tensor? integer TP of experts; 1 … 16777216
---@field data? integer DP; 1 … 16777216
---@field pipeline? integer P; 1 … 16777216
---@field virtual? integer V; 1 … 1024
---@field microbatches? integer M; 1 … 2147483647
---@field schedule? pipeplan.schedule its name; or none
---@field layers_per_stage? integer[] by slice of the model, first to last

--- Measured stages, in place of what is computed.
---@class pipeplan.engine.search_profile
---@field layout pipeplan.engine.layout at which they were measured
---@field stages pipeplan.engine.profile_stage[] each kind of stage once
---@field rank_speed? number[] of each rank, 1: as the times say
---@field runtime? "ideal"|"torch-single"|"torch-multi"|"deepseek"|"pipeplan"|"megatron" whose order of messages; default ideal
---@field contention? number factor on actions while a batch of messages is under way; 1 … 1000000; default 1
---@field buffered_messages? number that the runtime allocates for each microbatch and stage, up front; 0 … 1000000; default 0
---@field heat? pipeplan.engine.heat of the devices

--- Arguments. All legal candidates of a problem, as columns.
---@class pipeplan.engine.search_arguments
---@field model pipeplan.engine.shape the model
---@field training pipeplan.engine.training the recipe; with choices read for nothing
---@field device pipeplan.engine.device the accelerator; hides_alltoall is not read: each candidate's kernel is
---@field network pipeplan.engine.network the network
---@field gpus integer of a layout; 1 … 16777216
---@field global_batch integer sequences of a step; 1 … 9.007199254741e+15
---@field smallest_batch? integer at the start of a ramp, at most global_batch; default: global_batch; ≥ 1
---@field scale_up_gpus integer GPUs of a scale-up domain; 1 … 16777216
---@field usable_bytes number what a rank may fill; ≥ 0
---@field schedules pipeplan.schedule[] to be tried; without a pipeline is always
---@field layers? table<pipeplan.schedule, '"any"'|'"even"'|'"remainder_first"'|'"even_ends"'> how stages get their layers, by schedule; any (default): balanced by time
---@field fixed? pipeplan.engine.search_fixed of the layout
---@field choices? pipeplan.engine.search_choice[] recipes, each searched in turn; 256 at most
---@field profile? pipeplan.engine.search_profile measured stages
---@field max_tensor? integer largest TP; 1 … 65536; default 64
---@field max_context? integer largest CP; 1 … 16777216; default 1
---@field max_virtual? integer largest V; 1 … 1024; default 8
---@field rounds? boolean groups of microbatches as PyTorch makes them; default false
---@field experts_as_tensor? boolean expert TP, where it is not fixed, is TP; default false
---@field experts_apart? boolean beside that 1 is tried too, where TP is not fixed; default false
---@field kernel_latency? table<string, number> seconds of a dispatch or combine beside its transfers, by kernel; default: device.alltoall_latency
---@field overhead_bytes? number on each rank beside tensors and communicators; ≥ 0; default 0
---@field communicators? pipeplan.engine.communicators default: in overhead_bytes
---@field hop_waiting? number share of a hand-over's transfer in which the rank that receives it waits, besides computing; 0 … 1; default 0
---@field step_overhead_seconds? number of a step beside all else; ≥ 0; default 0
---@field split_tie? number of splits whose steps are apart by no more, the one that takes least memory; 0 … 1; default 0
---@field split_gain? number layers stand on early ranks where that wins more than this; 0 … 1; default 0
---@field split_overfull? number beyond this share of usable_bytes no layers are moved; 0 … 10; default 0
---@field run_days_per_second? number days of the run for a second of its step; ≥ 0
---@field price_per_gpu_hour? number of a GPU; ≥ 0

--- A set of a search's rows; a == b compares sets.
---@class pipeplan.engine.mask
---@operator len: integer
---@operator band(pipeplan.engine.mask): pipeplan.engine.mask
---@operator bor(pipeplan.engine.mask): pipeplan.engine.mask
---@operator sub(pipeplan.engine.mask): pipeplan.engine.mask
local mask = {}

--- Its smallest row.
--- ```lua
--- (all - candidates:only(1)):first()  --> 2: without the first row
--- ```
---@return integer|nil
function mask:first() end

--- Does it have a row?
--- ```lua
--- candidates:only(3):has(2)  --> false: it has the third row alone
--- ```
---@param row integer from 1; ≥ 1
---@return boolean
function mask:has(row) end

--- Its rows, ascending.
--- ```lua
--- #(candidates:only(2) | candidates:only(3)):rows()  --> 2: those of either
--- ```
---@return integer[]
function mask:rows() end

--- Candidates: rows numbered from 1, a column for each field.
---@class pipeplan.engine.candidates
---@operator len: integer
local candidates = {}

--- The mask of all rows.
--- ```lua
--- #all  --> 4: each row
--- ```
---@return pipeplan.engine.mask
function candidates:all() end

--- The fastest by simulation of those that a mask has: its row, its seconds, the mask of those as fast; nil: there is none.
--- ```lua
--- candidates:row((candidates:best(all))).schedule  --> none: without a pipeline nothing is idle
--- ```
---@param mask pipeplan.engine.mask of rows
---@param tolerance? number the mask has those at most this share slower; default 0
---@param limit? number that its seconds are under
---@param bytes? number|boolean that its fullest rank takes at most; true: usable_bytes
---@return integer|nil
---@return number seconds
---@return pipeplan.engine.mask within
function candidates:best(mask, tolerance, limit, bytes) end

--- A lower bound of a row's step_seconds.
--- ```lua
--- candidates:bound(3) <= candidates:simulate(3)  --> true: no step is shorter
--- ```
---@param row integer from 1; ≥ 1
---@return number
function candidates:bound(row) end

--- Can a row be built?
--- ```lua
--- candidates:check(4)  --> true: DualPipe at an even P
--- ```
---@param row integer from 1; ≥ 1
---@return true|nil
---@return pipeplan.engine.illegal? why
function candidates:check(row) end

--- The number of a row's choice.
--- ```lua
--- candidates:choice(4)  --> 1: there is one recipe
--- ```
---@param row integer from 1; ≥ 1
---@return integer
function candidates:choice(row) end

--- What of a mask cannot be built, by rule.
--- ```lua
--- #candidates:engine_rules(all)  --> 0: all can be built
--- ```
---@param mask pipeplan.engine.mask of rows
---@return pipeplan.engine.engine_rule[]
function candidates:engine_rules(mask) end

--- Everything that a plan prints about a row, and those schedules in its place as `baselines`; stdlib/plan/choose.lua lists it.
--- ```lua
--- #candidates:evaluate(3).memory  --> 4: one a rank
--- ```
---@param row integer from 1; ≥ 1
---@param schedules? pipeplan.schedule[] to compare with
---@return table<string, any>|nil
---@return pipeplan.engine.illegal? why
function candidates:evaluate(row, schedules) end

--- Names of columns and facts.
--- ```lua
--- candidates:fields()[1]  --> tensor_parallel: the first column
--- ```
---@return string[]
function candidates:fields() end

--- The rank that peak_bytes is about, from 0; nil where that is not known.
--- ```lua
--- (function() candidates:memory(all) return candidates:fullest(1) end)()  --> 0: without a pipeline there is one rank
--- ```
---@param row integer from 1; ≥ 1
---@return integer|nil
function candidates:fullest(row) end

--- One value of a row.
--- ```lua
--- candidates:get("microbatches", 3)  --> 16: 64 sequences at DP 4
--- ```
---@param field string a column, or a fact
---@param row integer from 1; ≥ 1
---@return any
function candidates:get(field, row) end

--- The mask of the rows for which all conditions hold.
--- ```lua
--- #candidates:match { { field = "schedule", op = "equal", value = "1f1b" } }  --> 1: the third row
--- ```
---@param conditions pipeplan.engine.condition[] all of them
---@return pipeplan.engine.mask
function candidates:match(conditions) end

--- The mask of those rows for which all conditions hold, or will once they are simulated: of time they may only ask that it be long.
--- ```lua
--- (function() candidates:memory(all) return #candidates:match_late({ { field = "cost", op = "over", value = 1e9 } }, all) end)()  --> 0: nothing takes so long
--- ```
---@param conditions pipeplan.engine.condition[] all of them
---@param mask pipeplan.engine.mask of rows
---@return pipeplan.engine.mask
function candidates:match_late(conditions, mask) end

--- Fills peak_bytes of a mask's rows.
--- ```lua
--- (function() candidates:memory(all) return candidates:get("peak_bytes", 2) > candidates:get("peak_bytes", 3) end)()  --> true: GPipe holds all 16 microbatches, 1F1B 4
--- ```
---@param mask pipeplan.engine.mask of rows
function candidates:memory(mask) end

--- A mask without rows.
--- ```lua
--- #candidates:none()  --> 0: to add rows to
--- ```
---@return pipeplan.engine.mask
function candidates:none() end

--- The mask of one row, or of a list.
--- ```lua
--- candidates:only({ 3, 2 }):first()  --> 2: of these two
--- ```
---@param rows integer|integer[] from 1
---@return pipeplan.engine.mask
function candidates:only(rows) end

--- A row as a table.
--- ```lua
--- candidates:row(1).pipeline_parallel  --> 1: the first row has no pipeline
--- ```
---@param row integer from 1; ≥ 1
---@return pipeplan.engine.candidate
function candidates:row(row) end

--- Adds a fact, or sets alone_seconds (the best step without a pipeline) or alltoall_kernel: the same for all rows, by choice, or for kernels a list of { name | false, mask }.
--- ```lua
--- (function() candidates:set("team", "speech") return candidates:get("team", 2) end)()  --> speech: for conditions that read it
--- ```
---@param field string its name
---@param value any a number, a string, a boolean, or a list
function candidates:set(field, value) end

--- Fills step_seconds and bubble_fraction of a row: its seconds.
--- ```lua
--- candidates:simulate(3) == candidates:get("step_seconds", 3)  --> true: the seconds are a column of its row
--- ```
---@param row integer from 1; ≥ 1
---@return number|nil
---@return pipeplan.engine.illegal? why
function candidates:simulate(row) end

--- What a program has of the engine.
---@class pipeplan.engine.programs: pipeplan.engine
local engine = {}

--- All legal candidates of a problem, as columns.
--- ```lua
--- #candidates  --> 4: three schedules at P 4, and the same without a pipeline
--- ```
---@param arguments pipeplan.engine.search_arguments
---@return pipeplan.engine.candidates
function engine.search(arguments) end

return engine
