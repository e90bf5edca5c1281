-- SPDX-License-Identifier: Apache-2.0
-- primitives.lua: the engine's functions that a `when` function may call: arguments, results, units, ranges. A test calls each of them at
-- the limits given here and compares the names with those that the bindings read (engine/lua). An argument is as entries.lua says.

local classes = require "generate.classes"
local entries = require "generate.entries"

local flag, HUGE_SIZE = entries.flag, entries.HUGE_SIZE

local model = { "model", "pipeplan.engine.shape", "the model" }
local layout = { "layout", "pipeplan.engine.layout", "how it is spread" }
local training = { "training", "pipeplan.engine.training", "the recipe" }
local device = { "device", "pipeplan.engine.device", "the accelerator" }
local network = { "network", "pipeplan.engine.network", "the network" }
local stride = { "stride", "integer", "distance between neighbours of the group, in GPUs", low = 1, high = HUGE_SIZE, default = 1 }
local group_size = { "size", "integer", "GPUs of the group", low = 1, high = HUGE_SIZE }
local total_bytes = { "bytes", "number", "of all ranks together", low = 0 }

local function schedule_arguments(name, ...)
  return { { name, "pipeplan.schedule", "its name; families are not built" }, { "ranks", "integer", "P", low = 1 },
           { "microbatches", "integer", "M per pipeline; for DualPipe over both directions", low = 1 },
           { "virtual", "integer", "V; default: what the schedule needs, interleaved 2", low = 1, optional = true },
           { "group", "integer", "interleaved: microbatches in a row; 0: P", low = 0, default = 0 },
           { "limit", "integer", "zb_auto: most chunks that a rank holds; 0: 2P", low = 0, default = 0 }, ... }
end

local queues = { "queues", '"one"|"per_peer"', "that messages wait in, of a rank; default: the runtime's", optional = true }
local receives = { "receives", '"before_use"|"early"', "when they are posted; default: the runtime's", optional = true }
local pairs_of = { "pairs", '"overlapped"|"in_turn"|"split"', "how a pair runs and sends; default: the runtime's, overlapped with FB", optional = true }
local runtimes = '"ideal"|"torch-single"|"torch-multi"|"deepseek"|"pipeplan"|"megatron"'

local function seconds_of(name, meaning, optional)
  return { name, "number|number[]", meaning .. ", seconds ≥ 0: of every stage, or one number a stage", optional = optional }
end

local function program_arguments()
  return schedule_arguments("kind",
    { "released", "number", "zb_auto: share of a chunk's memory that its I frees", low = 0, high = 1, default = 0 },
    seconds_of("F", "what zb_auto, v_half and v_min are planned from (default: 1): forward", true),
    seconds_of("I", "… backward for input", true), seconds_of("W", "… backward for weights", true),
    { "p2p", "number", "… seconds of a hop between ranks", low = 0, default = 0 })
end

-- `arguments`: of the one table; `positional`: in order. `illegal`: may return nil and why instead.
local functions = {
  { "bubble", "The closed form of a schedule's bubble.", result = "pipeplan.engine.closed_form", illegal = true,
    arguments = schedule_arguments("schedule",
      { "F", "number", "seconds of a forward", low = 0 }, { "I", "number", "seconds of a backward for input", low = 0 },
      { "W", "number", "seconds of a backward for weights", low = 0 },
      { "B", "number", "seconds of a whole backward; default: I + W", low = 0, optional = true },
      { "FB", "number", "seconds of a forward overlapped with a backward; default: F + B", low = 0, optional = true }) },
  { "comm.allgather", "Seconds of an all-gather, or of a reduce-scatter.", result = "number", arguments = { network, group_size, stride, total_bytes } },
  { "comm.allreduce", "Seconds of an all-reduce.", result = "number", arguments = { network, group_size, stride, total_bytes } },
  { "comm.alltoall", "Seconds of one dispatch, or of one combine.", result = "number", arguments = {
      network, { "group", "integer", "EP", low = 1, high = HUGE_SIZE }, stride,
      { "tokens", "number", "that one rank sends", low = 0 },
      { "experts_per_token", "integer", "copies of a token", low = 1, high = 65536 },
      { "experts", "integer", "of the layer; 0: so many that no two choices meet in one", low = 0, high = HUGE_SIZE, default = 0 },
      { "bytes_per_token", "number", "of one copy", low = 0 },
      { "rate", "number", "bytes per second at which a kernel across nodes forwards inside them; 0: as the link", low = 0, default = 0 },
      { "max_domains", "integer", "scale-up domains that a token may reach; 0: no limit", low = 0, high = HUGE_SIZE, default = 0 },
      flag("flat", "every copy crosses the network by itself, instead of one per domain") } },
  { "comm.fit", "Latency and bandwidth from a table of nccl-tests.", result = "pipeplan.engine.link_fit", arguments = {
      { "test", '"sendrecv"|"all_gather"|"reduce_scatter"|"all_reduce"|"alltoall"', "which" },
      { "ranks", "integer", "GPUs that took part, 2 or more", low = 1, high = HUGE_SIZE },
      { "members", "integer", "of them in one scale-up domain; default: all", low = 1, optional = true },
      { "points", "number[][]", "{ bytes, seconds } each" },
      { "inner", "pipeplan.engine.link", "what rings reach inside a domain", optional = true } } },
  { "comm.p2p", "Seconds of one message.", result = "number", arguments = { network, stride, { "bytes", "number", "of it", low = 0 } } },
  { "cost.blocks", "Seconds of one block of each kind.", result = "pipeplan.engine.seconds_by_block",
    arguments = { model, layout, training, device, network } },
  { "cost.terms", "What the seconds of cost.blocks are made of.", result = "pipeplan.engine.terms_by_block",
    arguments = { model, layout, training, device, network } },
  { "cost.hop", "Seconds that a microbatch's activations take to the next stage.", result = "number",
    arguments = { model, layout, training, network } },
  { "cost.pair", "Seconds of a forward overlapped with a backward.", result = "number", arguments = {
      device, { "forward", "pipeplan.engine.stage_seconds", "of the stage that runs forward" },
      { "backward", "pipeplan.engine.stage_seconds", "of the stage that runs backward" } } },
  { "cost.stage", "Seconds of a stage for one microbatch.", result = "pipeplan.engine.stage_seconds",
    arguments = { model, layout, training, device, network, { "stage", "pipeplan.engine.stage", "what it holds" } } },
  { "cost.step", "Seconds of a step beside the pipeline.", result = "pipeplan.engine.step_seconds", arguments = {
      layout, training, device, network, { "dense_parameters", "number", "resident on the rank, outside experts", low = 0 },
      { "expert_parameters", "number", "of experts resident on the rank", low = 0, default = 0 },
      { "copies", "integer", "2 for DualPipe", low = 1, high = 2, default = 1 } } },
  { "memory.blocks", "Bytes of one block of each kind on one GPU.", result = "pipeplan.engine.bytes_by_block", arguments = {
      model, layout, training, { "copies", "integer", "2 for DualPipe", low = 1, high = 2, default = 1 } } },
  { "memory.stages", "Bytes on every rank ([rank + 1]).", result = "pipeplan.engine.rank_bytes[]", illegal = true, arguments = {
      model, layout, training, { "schedule", "pipeplan.engine.schedule_object", "nil: no pipeline", optional = true },
      { "overhead", "number", "bytes of context and allocator", low = 0, default = 0 },
      { "communicators", "pipeplan.engine.communicators", "default: in overhead", optional = true },
      { "layers_per_stage", "integer[]", "default: as even as possible", optional = true } } },
  { "model.flops", "FLOPs of a model.", result = "pipeplan.engine.flops", positional = {
      { "shape", "pipeplan.engine.shape", "the model" }, { "length", "number", "tokens within which attention stays: a sequence, or a document of one", low = 1 } } },
  { "model.parameters", "Parameters of a model.", result = "pipeplan.engine.parameters", positional = { { "shape", "pipeplan.engine.shape", "the model" } } },
  { "model.stages", "Which blocks each stage holds.", result = "pipeplan.engine.stage[]", illegal = true, positional = {
      { "shape", "pipeplan.engine.shape", "the model" }, { "stages", "integer", "how many", low = 1, high = 65536 },
      { "layers_per_stage", "integer[]", "default: as even as possible", optional = true } } },
  { "schedule", "Builds a schedule.", result = "pipeplan.engine.schedule_object", illegal = true, arguments = program_arguments() },
  { "schedule.check", "Could it be built?", result = "true", illegal = true, arguments = program_arguments() },
  { "schedule.from_csv", "Reads PyTorch's compute-only CSV.", result = "pipeplan.engine.schedule_object", illegal = "csv_error", positional = {
      { "text", "string", "a line a rank" }, { "options", "pipeplan.engine.csv_options", "", optional = true } } },
  { "schedule.traits", "What a schedule is.", result = "pipeplan.engine.traits", positional = { { "name", "pipeplan.schedule", "its name" } } },
}

-- Methods of a schedule.
local methods = {
  { "actions", "What a rank does, in order.", result = "pipeplan.engine.action[]", positional = {
      { "rank", "integer", "from 0", low = 0 }, { "first", "integer", "place of the first of them; default 1", low = 1, optional = true },
      { "last", "integer", "place of the last of them; default: the last of all", low = 0, optional = true } } },
  { "csv", "The actions as PyTorch's schedule CSV: a line a rank.", result = "string", positional = {
      { "rank", "integer", "that line alone", low = 0, optional = true } } },
  { "info", "Its size.", result = "pipeplan.engine.schedule_info", positional = {} },
  { "peaks", "Most chunks held at once.", result = "pipeplan.engine.peaks", positional = {} },
  { "lowered", "What a runtime issues, as PyTorch's compute_comms CSV: a line a rank.", result = "string", illegal = true, arguments = {
      { "runtime", runtimes, "not ideal, which posts nothing" }, queues, receives, pairs_of } },
  { "receive_buffers", "The least number of receive buffers of a stage with which it runs where p2p blocks.", result = "integer",
    illegal = "finding", positional = {} },
  { "simulate", "When each action runs.", result = "pipeplan.engine.simulation", illegal = true, arguments = {
      seconds_of("F", "forward"), seconds_of("I", "backward for input"), seconds_of("W", "backward for weights"),
      seconds_of("B", "whole backward (default: I + W)", true),
      { "FB", "number|number[]|number[][]", "pair of a forward and a backward (default: F + B), seconds ≥ 0: of all, by the forward's stage, "
        .. "or by that and the backward's slot of the rank", optional = true },
      { "first_stage", "pipeplan.engine.extra_seconds", "beside its layers, the first stage", optional = true },
      { "last_stage", "pipeplan.engine.extra_seconds", "beside its layers, the last stage", optional = true },
      { "rank_speed", "number|number[]", "1: as the times say; of every rank, or one number a rank", optional = true },
      { "launch", "number", "seconds of every action beside its work", low = 0, default = 0 },
      { "p2p", "number|pipeplan.engine.hop", "a hop between ranks, seconds if a number", low = 0, default = 0 },
      { "bytes", "pipeplan.engine.chunk_bytes", "asks for peak_bytes", optional = true },
      { "runtime", runtimes, "whose order of messages", default = "ideal" }, queues, receives, pairs_of,
      { "contention", "number", "factor on actions while a batch of messages is under way", low = 1, default = 1 },
      { "heat", "pipeplan.engine.heat", "of the devices", optional = true },
      { "host", "pipeplan.engine.host_seconds", "what handing over each action takes its host; default: hosts are always ahead", optional = true },
      flag("intervals", "list when each action runs"),
      flag("intervals_of", "the same by pieces: for programs of which a list would be too large") } },
  { "verify", "Is it complete, in order, and does no rank wait for ever?", result = "true", illegal = "finding", optional = true, arguments = {
      { "buffers", "integer", "sending waits until a stage has one of so many receive buffers free; default: it waits for nobody", low = 1,
        optional = true } } },
}

-- Values beside functions.
local values = {
  { "model.fields", "string[]", "keys of a shape" },
  { "cost.losses", "string[]", "names of the ways to compute a cross entropy" },
  { "schedule.kinds", "string[]", "names of the schedules that can be built" },
}

return { classes = classes, functions = functions, methods = methods, values = values }
