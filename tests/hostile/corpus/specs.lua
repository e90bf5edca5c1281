-- specs.lua: specs and command lines that are wrong, or large beyond use. Each { name, status =, says =, text of the spec or `arguments` }.
-- Where no status stands it is 2. A text of two per cent signs has the healthy parts of a spec in their place.

local cluster = '"cluster": { "gpus": 16, "accelerator": "H100-SXM", "network": { "per_gpu": "400Gbps" } }'
local model = '"model": { "architecture": "dense", "total": "9B", "layers": 32 }'
local training = '"training": { "tokens": "2T" }'

-- A spec with this in place of one of its parts.
local function with(part, text)
  local parts = { cluster = cluster, model = model, training = training }
  parts[part] = text
  local list = {}
  for _, name in ipairs { "cluster", "model", "training", "parallelism" } do list[#list + 1] = parts[name] end
  return "{ " .. table.concat(list, ", ") .. " }"
end

local function gpus(text) return with("cluster", (cluster:gsub('"gpus": 16', '"gpus": ' .. text))) end
local function tokens(text) return with("training", '"training": { "tokens": ' .. text .. " }") end
local function field(name, text) return with("training", '"training": { "tokens": "2T", "' .. name .. '": ' .. text .. " }") end
local function layout(text) return with("parallelism", '"parallelism": { ' .. text .. " }") end
local function shape(text) return with("model", '"model": { ' .. text .. " }") end

local list = {
  { "a healthy spec", status = 0, with("parallelism", nil) },
  -- JSON
  { "no JSON", says = "spec.json:1:", "gpus: 16" },
  { "nothing", says = "", "" },
  { "half of a spec", says = "spec.json:1:", with("parallelism", nil):sub(1, 60) },
  { "two specs in one file", says = "spec.json:1:", "{} {}" },
  { "a list", says = "object", "[]" },
  { "a number", says = "object", "7" },
  { "null", says = "object", "null" },
  { "a comma too many", says = "spec.json:1:", '{ "cluster": {}, }' },
  { "a comment", says = "spec.json:1:", "{ // gpus\n }" },
  { "a key twice", says = "gpus", '{ "cluster": { "gpus": 16, "gpus": 32 } }' },
  { "NaN", says = "spec.json:1:", gpus "NaN" },
  { "Infinity", says = "spec.json:1:", gpus "Infinity" },
  { "a number with a leading zero", says = "spec.json:1:", gpus "016" },
  { "a hexadecimal number", says = "spec.json:1:", gpus "0x10" },
  { "a NUL byte in a string", says = "spec.json:1:", gpus '"1\0006"' },
  { "a raw control in a string", says = "spec.json:1:", gpus '"1\n6"' },
  { "half of a surrogate pair", says = "spec.json:1:", gpus '"\\ud800"' },
  { "bytes that are no UTF-8", says = "spec.json:1:", gpus '"\xff\xfe"' },
  { "an escape that does not exist", says = "spec.json:1:", gpus '"\\x41"' },
  { "lists within each other", says = "deep", ("["):rep(100000) },
  { "objects within each other", says = "deep", ('{"cluster":'):rep(100000) },
  { "lists within each other, closed", says = "deep", ("["):rep(100000) .. ("]"):rep(100000) },
  { "a number of many digits", says = "spec.json:1:", gpus(("9"):rep(100000)) },
  { "a string of ten megabytes", says = "accelerator", with("cluster", '"cluster": { "gpus": 16, "accelerator": "' .. ("x"):rep(10000000) .. '" }') },
  { "a key of a megabyte", says = "no field", '{ "' .. ("x"):rep(1000000) .. '": 1 }' },
  { "a hundred thousand keys", says = "k1", (function()
      local keys = {}
      for i = 1, 100000 do keys[i] = string.format('"k%d": 1', i) end
      return "{ " .. table.concat(keys, ", ") .. " }"
    end)() },
  -- keys and types
  { "a key that does not exist", says = "clutser", with("cluster", '"clutser": {}') },
  { "a key beside that does not exist", says = "gpu", with("cluster", '"cluster": { "gpu": 16 }') },
  { "a number where a group belongs", says = "cluster", with("cluster", '"cluster": 16') },
  { "a list where a group belongs", says = "cluster", with("cluster", '"cluster": [ 16 ]') },
  { "a group where a number belongs", says = "gpus", gpus "{}" },
  { "a list where a number belongs", says = "gpus", gpus "[ 16 ]" },
  { "true where a number belongs", says = "gpus", gpus "true" },
  { "nothing where a number belongs", says = "gpus", gpus "null" },
  { "a word where a number belongs", says = "gpus", gpus '"many"' },
  { "an empty text where a number belongs", says = "gpus", gpus '""' },
  { "a number where a name belongs", says = "accelerator", with("cluster", '"cluster": { "gpus": 16, "accelerator": 100 }') },
  { "no GPUs", says = "gpus", gpus "0" },
  { "less than no GPUs", says = "gpus", gpus "-16" },
  { "half a GPU", says = "gpus", gpus "16.5" },
  { "more GPUs than there are", says = "gpus", gpus "1e18" },
  { "more GPUs than an integer holds", says = "spec.json:1:", gpus "9223372036854775808" },
  { "more GPUs than a double holds", says = "spec.json:1:", gpus "1e400" },
  { "GPUs with a unit", says = "gpus", gpus '"16GiB"' },
  { "an accelerator that does not exist", says = "H100-SXN", with("cluster", '"cluster": { "gpus": 16, "accelerator": "H100-SXN" }') },
  { "an accelerator that a terminal would obey", says = "u001b", with("cluster", '"cluster": { "gpus": 16, "accelerator": "\\u001b[31m" }') },
  { "an accelerator that reads backwards", says = "u202e", with("cluster", '"cluster": { "gpus": 16, "accelerator": "\\u202eMXS" }') },
  { "no memory", says = "memory_per_gpu", with("cluster", '"cluster": { "gpus": 16, "memory_per_gpu": 0, "flops": 1e15 }') },
  { "a link of no speed", says = "per_gpu", with("cluster", '"cluster": { "gpus": 16, "accelerator": "H100-SXM", "network": { "per_gpu": 0 } }') },
  { "a link of less than no speed", says = "per_gpu", with("cluster", '"cluster": { "gpus": 16, "accelerator": "H100-SXM", "network": { "per_gpu": "-400Gbps" } }') },
  { "a host of no GPUs", says = "gpus_per_node", with("cluster", '"cluster": { "gpus": 16, "accelerator": "H100-SXM", "gpus_per_node": 0 }') },
  { "no model", says = "model", "{ " .. cluster .. ", " .. training .. " }" },
  { "no cluster", says = "gpus", "{ " .. model .. ", " .. training .. " }" },
  { "no tokens", says = "tokens", "{ " .. cluster .. ", " .. model .. " }" },
  { "a model that is not there", says = "nothere.json", with("model", '"model": "nothere.json"') },
  { "a model that is a folder", says = "directory", with("model", '"model": "/tmp"') },
  { "a model that never ends", says = "/dev/zero", with("model", '"model": "/dev/zero"') },
  { "a model that is empty", says = "/dev/null", with("model", '"model": "/dev/null"') },
  { "a model with a NUL in its name", says = "model", with("model", '"model": "a\\u0000b"') },
  { "a model of no parameters", says = "total", shape '"architecture": "dense", "total": 0, "layers": 32' },
  { "a model of no layers", says = "layers", shape '"architecture": "dense", "total": "8B", "layers": 0' },
  { "a model of a million layers", says = "layers", shape '"architecture": "dense", "total": "8B", "layers": 1000000' },
  { "a model more active than it is large", says = "active", shape '"architecture": "moe", "total": "8B", "active": "80B", "layers": 32' },
  { "an architecture that does not exist", says = "architecture", shape '"architecture": "sparse", "total": "8B", "layers": 32' },
  { "no tokens at all", says = "tokens", tokens "0" },
  { "less than no tokens", says = "tokens", tokens '"-2T"' },
  { "more tokens than can be counted", says = "tokens", tokens "1e300" },
  { "tokens in bytes", says = "tokens", tokens '"2TB"' },
  { "a sequence of nothing", says = "sequence_length", field("sequence_length", "0") },
  { "a sequence longer than anything", says = "sequence_length", field("sequence_length", "1e18") },
  { "a microbatch of nothing", says = "micro_batch_size", field("micro_batch_size", "0") },
  { "a microbatch larger than anything", says = "spec.json:1:", field("micro_batch_size", "9007199254740993") },
  { "a batch of nothing", says = "global_batch_size", field("global_batch_size", "0") },
  { "a batch larger than anything", says = "global_batch_size", field("global_batch_size", "1e300") },
  { "a ramp of nothing", says = "global_batch_size", field("global_batch_size", "[]") },
  { "a ramp that goes back", says = "global_batch_size", field("global_batch_size", "[[0, 16], [100, 32], [50, 64]]") },
  { "a ramp that starts late", says = "global_batch_size", field("global_batch_size", "[[100, 16]]") },
  { "a ramp of words", says = "global_batch_size", field("global_batch_size", '[["a", "b"]]') },
  { "a precision that does not exist", says = "precision", field("precision", '"fp5"') },
  { "an optimizer that does not exist", says = "optimizer", field("optimizer", '"adamm"') },
  { "a recompute that does not exist", says = "recompute", field("recompute", '["normm"]') },
  { "a recompute of numbers", says = "recompute", field("recompute", "[1]") },
  { "a layout over all GPUs", says = "tensor", layout '"tensor": 32' },
  { "a layout that leaves GPUs over", says = "pipeline", layout '"pipeline": 3' },
  { "experts without experts", says = "expert", layout '"expert": 2' },
  { "tensor parallelism of nothing", says = "tensor", layout '"tensor": 0' },
  { "a depth of less than nothing", says = "pipeline", layout '"pipeline": -4' },
  { "a depth of half", says = "pipeline", layout '"pipeline": 2.5' },
  { "a schedule that does not exist", says = "1f2b", layout '"schedule": "1f2b"' },
  { "microbatches against the batch", says = "microbatches", with("parallelism", '"parallelism": { "pipeline": 4, "microbatches": 7, "data": 4 }'):gsub('"tokens": "2T"', '"tokens": "2T", "global_batch_size": 64') },
  { "layers that do not add up", says = "layers_per_stage", layout '"pipeline": 4, "layers_per_stage": [1, 2, 3, 4]' },
  { "layers of less than nothing", says = "layers_per_stage", layout '"pipeline": 4, "layers_per_stage": [-8, 24, 8, 8]' },
  { "layers for other stages", says = "layers_per_stage", layout '"pipeline": 4, "layers_per_stage": [16, 16]' },
  { "layers of words", says = "layers_per_stage", layout '"pipeline": 4, "layers_per_stage": ["a", "b", "c", "d"]' },
  { "a framework that does not exist", says = "megatrn", with("parallelism", '"framework": "megatrn"') },
  { "a profile that is not there", says = "nothere.json", with("parallelism", '"profile": "nothere.json"') },
  -- the command line
  { "an option that does not exist", says = "--gpu", arguments = "plan --gpuz 16" },
  { "an option without its value", says = "--gpus", arguments = "plan --gpus" },
  { "no spec", says = "gpus", arguments = "plan" },
  { "a spec that is not there", says = "nothere.json", arguments = "plan nothere.json" },
  { "a spec that is a folder", says = "directory", arguments = "plan /tmp" },
  { "a spec that may not be read twice", says = "-", arguments = "plan - -" },
  { "a command that does not exist", says = "plam", arguments = "plam" },
  { "no command", says = "Usage", arguments = "" },
  { "a format that does not exist", says = "--format", arguments = "plan SPEC --format yaml" },
  { "a day that is none", says = "2026-02-30", arguments = "plan SPEC --date 2026-02-30" },
  { "jobs of none", says = "--jobs", arguments = "plan --jsonl --jobs 0" },
  { "jobs without end", says = "--jobs", arguments = "plan --jsonl --jobs 999999999999999999999" },
  { "a parameter that does not exist", status = 6, says = "small_runs", arguments = "plan SPEC --set small_runs=1" },
  { "a parameter of nothing", status = 6, says = "small_run_gpus", arguments = "plan SPEC --set small_run_gpus=" },
  { "a parameter to divide by", status = 6, says = "context_rank_tokens", arguments = "plan SPEC --set context_rank_tokens=0" },
  { "a parameter over all", status = 6, says = "12 %", arguments = "plan SPEC --set memory_headroom=12" },
  { "a policy that is not there", status = 6, says = "nothere.lua", arguments = "plan SPEC --policy nothere.lua" },
  { "a folder of no policy", status = 5, says = "no policy file", arguments = "plan SPEC --policy examples/models" },
  { "a policy twice", says = "twice", arguments = "plan SPEC --policy examples/sites/hall-7.lua --policy examples/sites/hall-7.lua", status = { 2, 6 } },
  { "a question about nothing", says = "--why", arguments = "plan SPEC --why nope=1" },
  { "an output in a folder that is not there", says = "nothere", arguments = "plan SPEC -o nothere/plan.txt" },
  { "an output that is a folder", says = "directory", arguments = "plan SPEC -o /tmp" },
  { "an output on a full disk", says = "/dev/full", arguments = "plan SPEC -o /dev/full" },
  { "a simulation of nothing", says = "--ranks", arguments = "simulate 1f1b" },
  { "a simulation of no ranks", says = "ranks", arguments = "simulate 1f1b --ranks 0 --microbatches 8" },
  { "a simulation of a billion ranks", status = { 1, 2 }, says = "ranks", arguments = "simulate 1f1b --ranks 1000000000 --microbatches 8" },
  { "a simulation of a billion microbatches", status = { 1, 2 }, says = "microbatches", arguments = "simulate 1f1b --ranks 8 --microbatches 1000000000" },
  { "a simulation of a billion chunks", status = { 1, 2 }, says = "virtual", arguments = "simulate interleaved_1f1b --ranks 8 --microbatches 8 --virtual 1000000000" },
  { "a simulation of words", says = "ranks", arguments = "simulate 1f1b --ranks eight --microbatches 8" },
  { "a simulation in no time", says = "times", arguments = "simulate 1f1b --ranks 4 --microbatches 8 --times 1,x,1" },
  { "a simulation in less than no time", says = "times", arguments = "simulate 1f1b --ranks 4 --microbatches 8 --times 1,-1,1" },
  { "a simulation in more than any time", says = "times", arguments = "simulate 1f1b --ranks 4 --microbatches 8 --times 1e400,1,1" },
  { "a simulation near the end of doubles", says = "times", arguments = "simulate v_half --ranks 4 --microbatches 8 --times 1e308,1e308,1e308" },
  { "a monitor of nothing", says = "metrics", arguments = "monitor SPEC" },
  { "a topic that does not exist", says = "factz", arguments = "facts factz" },
  { "mutants of nothing", says = "path", arguments = "policy mutate" },
}

for _, entry in ipairs(list) do entry.status = entry.status or 2 end
return list
