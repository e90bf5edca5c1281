-- SPDX-License-Identifier: Apache-2.0
-- torchtitan.lua: facts of a launch of torchtitan, where they follow otherwise than from Megatron's keys: name → function(f), as facts.lua
-- has its own. PP = torchtitan/distributed/pipeline_parallel.py of 0.3.0, S = torch/distributed/pipelining/schedules.py.

local engine = require "engine"
local models = require "pipeplan.catalog.frameworks.torchtitan_models"
local vocabulary = require "pipeplan.vocabulary"

local derived = {}

local P_KEY = "parallelism."
local LAYERS = "parallelism.pipeline_parallel_layers_per_stage"

-- By the name in the key, whatever its case (S: get_schedule_class).
local schedules = { ["1f1b"] = "1f1b", interleaved1f1b = "interleaved_1f1b", gpipe = "gpipe", loopedbfs = "looped_bfs",
                interleavedzerobubble = "interleaved_zero_bubble", zbvzerobubble = "zb_v", dualpipev = "dualpipev" }
local bases = { pipelineschedulesingle = true, pipelineschedulemulti = true }
local single = { ["1f1b"] = true, gpipe = true, pipelineschedulesingle = true }
local in_v = { zbvzerobubble = true, dualpipev = true }

local function name_of(f) return (f.key(P_KEY .. "pipeline_parallel_schedule") or "1F1B"):lower() end

-- ------------------------------------------------------------------------------------------------------------------------ the model

-- The entry of the configuration function; raises where it is not known.
function derived.configuration(f)
  return models.find(f.key "module", f.key "config") or f.fail "the model of the configuration function"
end

function derived.shape(f) return f.record.configuration.shape end

for _, name in ipairs { "hidden", "heads", "head_dim", "shared_ffn", "ffn" } do
  derived[name] = function(f) return f.record.shape[name] end
end

function derived.experts(f) return f.record.shape.experts or 0 end

function derived.mtp_layers(f) return f.record.shape.mtp_layers or 0 end

function derived.tied_embeddings(f) return f.record.shape.tied_embeddings == true end

function derived.attention_kind(f) return f.record.shape.attention or "gqa" end

function derived.query_groups(f) return f.record.shape.kv_heads or f.record.shape.heads end

-- Parts of the model as they are written, or nil: none are. { counts: layers of each, names: of each, what it has once }. A part is a set:
-- the split keeps the model's own order (PP: _split_module).
function derived.parts(f)
  local words = f.words(P_KEY .. "module_fqns_per_model_part")
  if not words or words[1] == "None" then return nil end
  local counts, names = {}, {}
  for i, word in ipairs(words) do
    local list, has = {}, {}
    counts[i], names[i] = 0, list
    for name in word:gmatch "[^,]+" do
      if not has[name] then
        has[name], list[#list + 1] = true, name
        if name:find "^layers%.%d+$" then counts[i] = counts[i] + 1 end
      end
    end
  end
  return { counts = counts, names = names }
end

function derived.layers(f)
  local model, parts = models.find(f.key "module", f.key "config"), f.record.parts
  if model then return model.shape.layers end
  if not parts then f.fail "the model of the configuration function" end
  local sum = 0
  for _, count in ipairs(parts.counts) do sum = sum + count end
  return sum
end

function derived.precision(f)
  if f.key "training.mixed_precision_param" == "float32" then return "fp32" end
  return f.record.configuration.precision or "bf16"
end

-- --------------------------------------------------------------------------------------------------------------------------- batches

local function counted(f, value)
  if math.type(value) ~= "integer" or value < 1 or value > vocabulary.most.counted then f.refused() end
  return value
end

function derived.sequence_length(f) return counted(f, f.key "--seq-length") end

function derived.local_batch(f) return counted(f, f.key "training.local_batch_size") end

function derived.micro_batch_size(f)
  if f.record.pipeline_parallel == 1 then return f.record.local_batch end
  return counted(f, f.key(P_KEY .. "pipeline_parallel_microbatch_size"))
end

function derived.expert_tensor_parallel() return 1 end

function derived.shards(f)
  local value = f.key(P_KEY .. "data_parallel_shard_degree")
  if value ~= -1 then return counted(f, value) end
  return math.max(1, f.record.data_parallel // f.record.replicas)
end

function derived.replicas(f) return counted(f, f.key(P_KEY .. "data_parallel_replicate_degree")) end

function derived.global_batch_size(f)
  local given = f.key "training.global_batch_size"
  if given <= 0 then return f.record.local_batch * f.record.data_parallel end
  return counted(f, given)
end

function derived.accumulation(f)
  local step = f.record.local_batch * f.record.data_parallel
  if f.record.global_batch_size % step ~= 0 then f.refused() end
  return f.record.global_batch_size // step
end

-- Of one filling of the pipeline; without one, accumulated.
function derived.microbatches(f)
  local record = f.record
  if record.pipeline_parallel == 1 then return record.accumulation end
  if record.local_batch % record.micro_batch_size ~= 0 then f.refused() end
  return record.local_batch // record.micro_batch_size
end

function derived.train_iters(f) return f.key "training.steps" end

function derived.train_samples() return nil end

-- --------------------------------------------------------------------------------------------------------------------------- stages

-- Why torchtitan, or PyTorch, builds no such stages; false: it builds them (PP: _get_pipeline_metadata, _generate_llm_fqn_per_model_part,
-- _get_pp_rank_to_stage_indices_mapping). The second value: layers of each stage.
local function split_of(f)
  local record = f.record
  local P, name, parts = record.pipeline_parallel, name_of(f), record.parts
  local stages = P * (single[name] and 1 or 2)
  local function less(which) return f.key(P_KEY .. "pipeline_parallel_" .. which .. "_stage_less_layers") end
  local each = (not parts or f.launch.spelled[LAYERS]) and f.key(LAYERS)
  if each then
    if each < 1 then f.refused() end
    local first, last = less "first", less "last"
    stages = (record.layers + first + last + each - 1) // each
    if stages % P ~= 0 then return string.format("%d stages of %d layers are no multiple of P %d", stages, each, P) end
    if single[name] and stages ~= P then return string.format("%d stages are not the one a rank that its schedule takes", stages) end
    if not single[name] and stages < 2 * P then
      return string.format("%d stages are fewer than the two a rank that its schedule takes", stages)
    end
  end
  if parts then
    local count = #parts.counts
    if count % P ~= 0 then return string.format("%d parts of the model are no multiple of P %d", count, P) end
    if in_v[name] and count ~= 2 * P then return string.format("%d parts of the model are not the two a rank of a V", count) end
    if single[name] and count ~= P then
      return string.format("of %d parts of the model a schedule of one stage a rank runs the first %d only", count, P)
    end
    return false, parts.counts
  end
  if in_v[name] and stages ~= 2 * P then return string.format("%d stages are not the two a rank of a V", stages) end
  local first, last = less "first", less "last"
  local effective = record.layers + first + last
  local share, extra = effective // stages, effective % stages
  if stages > effective then return string.format("%d stages are more than %d layers", stages, effective) end
  if first > share or last > share then
    return string.format("the %d layers less of the first or last stage are more than the %d of a stage", math.max(first, last), share)
  end
  local list = {}
  for s = 1, stages do list[s] = share + (s <= extra and 1 or 0) - (s == 1 and first or 0) - (s == stages and last or 0) end
  return false, list
end

function derived.split_problem(f) return split_of(f) end

function derived.built(f)
  if f.record.pipeline_parallel == 1 then return { f.record.layers } end
  local problem, list = split_of(f)
  if problem then f.refused() end
  return list
end

-- What the parts are otherwise than the model, one behind the other; or false. What a model that is not in the table calls its modules is
-- not known.
function derived.parts_problem(f)
  local parts, of_table = f.record.parts, f.launch.sets ~= nil
  if not parts then return false end
  local place, wanted = {}, { "tok_embeddings" }
  for layer = 0, f.record.layers - 1 do wanted[layer + 2] = "layers." .. layer end
  table.move({ "norm", "lm_head" }, 1, 2, #wanted + 1, wanted)
  for i, name in ipairs(wanted) do place[name] = i end
  local part_of = {}
  for i, list in ipairs(parts.names) do
    for _, name in ipairs(list) do
      if part_of[name] then return name .. " stands in two parts" end
      if of_table and not place[name] then
        return string.format("'%s' is no module of the model, which has tok_embeddings, layers.0 to layers.%d, norm and lm_head", name,
                             f.record.layers - 1)
      end
      part_of[name] = i
    end
  end
  local last
  for _, name in ipairs(wanted) do
    if not part_of[name] then return "no part has " .. name end
    if last and part_of[name] < part_of[last] then
      return string.format("%s stands in part %d, behind %s in part %d", last, part_of[last], name, part_of[name])
    end
    last = name
  end
  return false
end

function derived.virtual(f)
  if f.record.pipeline_parallel == 1 then return 1 end
  return #f.record.built // f.record.pipeline_parallel
end

-- ------------------------------------------------------------------------------------------------------------------------- schedule

-- What the CSV has, read as far as stages and microbatches go: { ranks, stages = { stage → rank }, microbatches, splits: are there W? }.
function derived.program(f)
  local csv = f.launch.csv
  if f.key(P_KEY .. "pipeline_parallel_schedule_csv") == "" then return nil end
  if not csv then f.fail "the CSV" end
  local rank, stages, forwards, splits = -1, {}, 0, false
  for line in (csv.text .. "\n"):gmatch "([^\n]*)\n" do
    if line:find "%S" then
      rank = rank + 1
      for stage, kind in line:gmatch "(%d+)([FIWB])%d+" do
        stages[tonumber(stage)] = rank
        if tonumber(stage) == 0 and kind == "F" then forwards = forwards + 1 end
        splits = splits or kind == "W"
      end
    end
  end
  return { ranks = rank + 1, stages = stages, microbatches = forwards, splits = splits }
end

-- Why the CSV does not run in the stages that are built; or false.
function derived.program_problem(f)
  local program, record = f.record.program, f.record
  if not program then return false end
  local P, name = record.pipeline_parallel, name_of(f)
  local built = #record.built
  if program.ranks ~= P then return string.format("the CSV has %d ranks, P is %d", program.ranks, P) end
  if program.microbatches ~= record.microbatches then
    return string.format("the CSV has %d microbatches, the batch %d", program.microbatches, record.microbatches)
  end
  local count = 0
  for _ in pairs(program.stages) do count = count + 1 end
  if count ~= built then return string.format("the CSV has %d stages, %d are built", count, built) end
  for stage = 0, count - 1 do
    local there = in_v[name] and stage >= P and 2 * P - 1 - stage or stage % P
    if program.stages[stage] ~= there then
      return string.format("with pipeline_parallel_schedule %s stage %d is built on rank %d, and the CSV runs it on rank %s",
                           f.key(P_KEY .. "pipeline_parallel_schedule"), stage, there, program.stages[stage] or "none")
    end
  end
  return false
end

-- Why there is no such schedule; or false.
function derived.schedule_problem(f)
  local name, csv = name_of(f), f.key(P_KEY .. "pipeline_parallel_schedule_csv")
  local shown = f.key(P_KEY .. "pipeline_parallel_schedule")
  if not schedules[name] and not bases[name] then return string.format("'%s' is no schedule of PyTorch's", shown) end
  if csv == "" and bases[name] then return shown .. " runs nothing without a CSV" end
  return false
end

local function without_spaces(text) return (text:gsub("[ \t\r]", ""):gsub("\n+", "\n"):gsub("\n$", "")) end

-- The schedule whose program the CSV is: of those that torchtitan runs from one first.
local function identified(f, program)
  local record, text = f.record, without_spaces(f.launch.csv.text)
  local P = record.pipeline_parallel
  local function same(kind)
    local own = { kind = kind, ranks = P, microbatches = record.microbatches }
    if not engine.schedule.traits(kind).virtual then own.virtual = #record.built // P end
    local good, schedule = pcall(engine.schedule, own)
    if not good or not schedule then return false end
    local lines = {}
    for rank = 0, P - 1 do
      lines[rank + 1] = without_spaces(schedule:csv(rank):gsub("%((%w+);(%w+)%)OVERLAP_F_B", "%1,%2"))
    end
    return table.concat(lines, "\n") == text
  end
  local chunks, v = #record.built // P, in_v[name_of(f)] or false
  local tried = v and { "v_half", "v_min", "zb_v", "dualpipev" }
                or chunks > 1 and { "interleaved_1f1b", "looped_bfs", "interleaved_zero_bubble" } or { "zb_h1", "zb_h2", "1f1b", "gpipe" }
  for _, kind in ipairs(tried) do
    if same(kind) then return kind end
  end
  -- an order that was planned from the times of stages is any
  if chunks == 1 and program.splits then return "zb_auto" end
  f.fail "the schedule of the CSV"
end

function derived.schedule(f)
  local record = f.record
  if record.pipeline_parallel == 1 then return "none" end
  local program = record.program
  if program then
    if record.program_problem or record.schedule_problem then f.refused() end
    return identified(f, program)
  end
  return schedules[name_of(f)] or f.refused()
end

-- ------------------------------------------------------------------------------------------------------------- sharding and recompute

-- T:143: nothing else asks for types.
function derived.spmd_typechecking(f)
  return f.key "debug.spmd_typechecking" and f.key(P_KEY .. "spmd_backend") == "spmd_types"
end

-- As torchtitan_writes.lua's resharding has it the other way round.
function derived.zero(f)
  local record = f.record
  if record.shards == 1 and record.replicas == record.data_parallel and record.data_parallel > 1 then return 0 end
  if f.key(P_KEY .. "fsdp_reshard_after_forward") ~= "never" then return 3 end
  return record.pipeline_parallel > 1 and 1 or 2
end

function derived.checkpointing(f)
  local value = f.key "activation_checkpoint"
  return value or f.fail "activation_checkpoint of the configuration function"
end

function derived.recompute_granularity(f)
  local class = f.record.checkpointing
  if class == "full" then return "full" elseif class == "none" then return nil end
  return "selective"
end

function derived.recompute_kind(f) return f.record.recompute_granularity or "none" end

function derived.recompute_modules() return {} end

function derived.recomputes_moe() return false end

function derived.moments(f) return f.key "optimizer.implementation" == "fused_opt_states_bf16" and "bf16" or "fp32" end

function derived.optimizer_state() return "fp32" end

-- Microbatches of a chunk's turn: as many rounds as there are whole P in M (S:2938).
function derived.microbatch_group(f)
  local record = f.record
  if not (record.schedule or ""):find "^interleaved" then return nil end
  return record.microbatches // math.max(1, record.microbatches // record.pipeline_parallel)
end

return derived
