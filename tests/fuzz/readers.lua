-- SPDX-License-Identifier: Apache-2.0
-- readers.lua: each kind of file that pipeplan reads, as a command that reads it and makes what follows of it.
-- name → function(path) → exit status. Run by reader_fuzz.c, and by tests/lua/readers_spec.lua with the seeds that tests/fuzz/run names.

local source = os.getenv "PIPEPLAN_SOURCE" or "."
local main = require "pipeplan.cli.main"
local load = require "pipeplan.policy.load"

-- A small budget: what loops for ever is not to take the fuzzer's time.
local load_policy = load.load
function load.load(options)
  options.work = options.work or 2e6
  options.date = options.date or "2026-12-01"
  return load_policy(options)
end

-- The command as typed. What it says is kept from the fuzzer's own output, but shown where the status is a bug.
local function run(...)
  local said, stderr = {}, io.stderr
  io.stderr = { write = function(self, ...) for i = 1, select("#", ...) do said[#said + 1] = tostring((select(i, ...))) end return self end }
  local good, status = pcall(main, { ... })
  io.stderr = stderr
  if not good or status == 70 then
    stderr:write(good and "" or tostring(status), table.concat(said), "\n")
    return 70
  end
  return status
end

-- A fixed depth and schedule: few candidates, so that the fuzzer's time goes into reading.
local small = { "--gpus", "16", "--accelerator", "H100-SXM", "--per_gpu", "400Gbps", "--tokens", "2T", "--pipeline", "2", "--schedule", "1f1b",
                "--tensor", "1", "--expert", "1" }
local model = source .. "/examples/models/tiny.json"

local function plan(...)
  return run("plan", table.unpack(table.move(small, 1, #small, select("#", ...) + 1, { ... })))
end

local readers = {}

-- Formats take turns: each input meets each of them while the fuzzer changes it.
local turn = 0
local function one_of(...)
  turn = turn + 1
  return (select(turn % select("#", ...) + 1, ...))
end

function readers.spec(path)
  return run("plan", path, "--format", one_of("text", "json", "markdown", "csv"), one_of("--explain", "--date=2026-12-01"))
end

function readers.jsonl(path)
  local stdin = io.stdin
  io.stdin = assert(io.open(path, "rb"))
  local status = run("plan", "--jsonl")
  io.stdin:close()
  io.stdin = stdin
  return status
end

function readers.hf_config(path) return plan("--model", path, "--format", one_of("text", "json")) end

function readers.policy(path)
  return plan("--model", model, "--policy", path, one_of("--explain", "--date=2026-12-01"))
end

function readers.policy_check(path) return run("policy", one_of("check", "show"), "--policy", path) end

function readers.profile(path)
  return run("plan", source .. "/examples/specs/measured-4xH200.json", "--profile", path, "--format", one_of("text", "json"))
end

function readers.simulated_profile(path)
  return run("simulate", one_of("1f1b", "zb_h1", "gpipe"), "--ranks", "4", "--microbatches", "8", "--profile", path, "--format", one_of("text", "json"))
end

function readers.times(path)
  return run("simulate", one_of("1f1b", "zb_auto", "interleaved_1f1b", "dualpipev"), "--ranks", "4", "--microbatches", "8", "--times", path,
             "--format", one_of("text", "json", "svg", "trace"), "--runtime", one_of("ideal", "torch-single", "torch-multi"))
end

function readers.program(path)
  return run("simulate", path, "--format", one_of("text", "json", "svg", "trace", "csv"),
             "--runtime", one_of("ideal", "torch-multi", "torch-single", "deepseek"), "--directions", one_of("1", "1", "2"))
end

-- Beside a healthy file of the other kind, for one alone says less.
local measured = source .. "/tests/data/measured/"

function readers.nccl(path)
  return run("plan", source .. "/examples/specs/mixtral-8x7b.json", "--measured", path .. "," .. measured .. "topo-4xH100.txt")
end

function readers.topology(path)
  return run("plan", source .. "/examples/specs/mixtral-8x7b.json", "--measured", measured .. "all_reduce-4xH100.txt," .. path)
end

function readers.inventory(path)
  return run("plan", "--inventory", path, "--accelerator", "H100-SXM", "--per_gpu", "400Gbps", "--tokens", "2T", "--model", model, "--pipeline", "2",
             "--schedule", "1f1b", "--format", one_of("text", "json"))
end

function readers.calibration(path)
  return run("plan", source .. "/examples/specs/mixtral-8x7b.json", "--calibration", path, "--format", one_of("text", "json"))
end

function readers.kernels(path)
  return run("plan", source .. "/examples/specs/mixtral-8x7b.json", "--accelerator", "H200-SXM", "--kernels", path, "--format", one_of("text", "json"))
end

function readers.measured_plan(path)
  return run("plan", source .. "/examples/measuring/spec.json", "--measured", path .. "=" .. source .. "/examples/measuring/run-%a.log")
end

-- Launch configurations: a name's ending says what language they are in.
local files = require "pipeplan.input.files"
local given, open = nil, files.open
function files.open(path, ...) return open(path:find "^launch%." and given or path, ...) end

local function launched(path, name)
  given = path
  if one_of(true, false) then return run("lint", name, "--format", one_of("text", "json", "github")) end
  return run("plan", name, "--accelerator", "H100-SXM", "--per_gpu", "400Gbps", "--tokens", "1T")
end

function readers.launch_script(path) return launched(path, "launch.sh") end

function readers.launch_yaml(path) return launched(path, "launch.yaml") end

local planned = source .. "/tests/fuzz/seeds/plan.json"

function readers.metrics(path) return run("monitor", planned, path, "--format", one_of("text", "json"), "--steps", "1-40") end

function readers.plan_file(path) return run("monitor", path, source .. "/examples/monitor/healthy.log") end

return readers
