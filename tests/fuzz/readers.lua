-- SPDX-License-Identifier: Apache-2.0
-- readers.lua: each kind of file that pipeplan reads, as a command that reads it and makes what follows of it.
-- name → function(path) → exit status. Run by reader_fuzz.c, and by tests/lua/readers_spec.lua with the seeds that tests/fuzz/run names.
-- What follows is small: a layout that is given (tests/fuzz/specs), so that a plan is a candidate and what it is compared with, not a search.
-- What an input is not part of is made once: the policy that is in force and the parsers of command lines. --jsonl shares both too.

local engine = require "engine"
local source = os.getenv "PIPEPLAN_SOURCE" or "."
local main = require "pipeplan.cli.main"
local files = require "pipeplan.input.files"
local load = require "pipeplan.policy.load"

local specs = source .. "/tests/fuzz/specs/"
local input   -- the path of what is read

-- A small budget: what loops for ever is not to take the fuzzer's time. The default policy takes a tenth of it.
local load_policy, kept = load.load, {}
function load.load(options)
  options.work = options.work or 500000
  options.date = options.date or "2026-12-01"
  local key = table.concat(options.files or {}, "\n")
  if not input or key:find(input, 1, true) then return load_policy(options) end
  kept[key] = kept[key] or load_policy(options)
  return kept[key]
end

for _, name in ipairs { "plan", "lint", "monitor", "simulate" } do
  local command = require("pipeplan.cli." .. name)
  local parser, new = nil, command.parser
  function command.parser()
    parser = parser or new()
    return parser
  end
end

-- Lua makes room for all that a read may bring: 16 MiB for a file of a page, which a sanitizer marks as such and unmarks.
local handle = getmetatable(io.stdin).__index
local read_all = handle.read
function handle.read(file, most, ...)
  if type(most) ~= "number" or most <= 65536 then return read_all(file, most, ...) end
  local text, problem = read_all(file, 65536)
  if not text or #text < 65536 then return text, problem end
  return text .. (read_all(file, math.tointeger(most) - 65536) or "")
end

-- What a spec names beside itself is in examples/, wherever the spec is.
local readable = files.readable
function files.readable(at)
  local place = type(at.value) == "string" and at.value:match "^[./]*/(%a+/[^/]+%.json)$"
  return readable(place and { value = source .. "/examples/" .. place, origin = at.origin, shown = at.shown, base = at.base } or at)
end

-- A stream that keeps what is written to it.
local function stream()
  local parts = {}
  return {
    parts = parts,
    write = function(self, ...)
      for i = 1, select("#", ...) do parts[#parts + 1] = tostring((select(i, ...))) end
      return self
    end,
    flush = function(self) return self end,
  }
end

-- What may not be, whatever a file holds: half an answer, an answer beside an error, an error without a word, JSON that is none, bytes that
-- a terminal takes for a command or that are no text.
local function problem_of(command, status, out, err, format)
  -- `policy check` has a finding for a policy that cannot be loaded, --jsonl an object for each line.
  if status >= 2 and status ~= 5 and out ~= "" and command ~= "policy" and format ~= "jsonl" then return "exit " .. status .. " with an answer" end
  if status >= 1 and out == "" and err == "" then return "exit " .. status .. " without a word" end
  if status == 0 and out == "" and format ~= "github" then return "exit 0 without an answer" end
  for name, text in pairs { answer = out, error = err } do
    if not utf8.len(text) then return "the " .. name .. " is no UTF-8" end
    local strange = text:match "[%z\1-\8\11-\31\127]"
    if strange then return string.format("the %s has a byte %d", name, strange:byte()) end
  end
  for line in (format == "jsonl" and out or ""):gmatch "[^\n]+" do
    if not engine.json.decode(line, {}, {}) then return "a line is no JSON" end
  end
  if out ~= "" and (format == "json" or format == "trace" or format == "sarif") and not engine.json.decode(out, {}, {}) then return "no JSON" end
end

-- The command as typed: its exit status; 70 where it or what it says may not be, and then that is shown.
local function run(...)
  local arguments, format = { ... }, "text"
  for i, argument in ipairs(arguments) do
    if argument == "--format" then format = arguments[i + 1] elseif argument == "--jsonl" then format = "jsonl" end
  end
  local stdout, stderr, out, err = io.stdout, io.stderr, stream(), stream()
  io.stdout, io.stderr = out, err
  local good, status = pcall(main, arguments)
  io.stdout, io.stderr = stdout, stderr
  out, err = table.concat(out.parts), table.concat(err.parts)
  local problem = not good and tostring(status) or status ~= 70 and problem_of(arguments[1], status, out, err, format)
  if not problem and status ~= 70 then return status end
  stderr:write(table.concat(arguments, " "), "\n", problem or "", "\n", err, out, "\n")
  return 70
end

-- One of the values, which the bytes of the input choose: the same input makes the same choices, so that what is found happens again.
local choices
local function one_of(...)
  local count = select("#", ...)
  local chosen = choices % count
  choices = choices // count
  return (select(chosen + 1, ...))
end

local function plan(spec, ...)
  return run("plan", specs .. spec, "--policy", specs .. "policy.lua", ...)
end

local readers = {}

function readers.spec(path)
  return run("plan", path, "--policy", specs .. "policy.lua", "--format", one_of("text", "json", "markdown", "csv", "verdict"))
end

-- All that is said of a plan, which takes ten times as long as the plan.
function readers.explained(path)
  return run("plan", path, "--policy", specs .. "policy.lua", "--explain", "--format", one_of("text", "json", "markdown", "html"))
end

function readers.jsonl(path)
  local stdin = io.stdin
  io.stdin = assert(io.open(path, "rb"))
  local status = run("plan", "--jsonl", "--policy", specs .. "policy.lua")
  io.stdin:close()
  io.stdin = stdin
  return status
end

-- On cards that hold any model.
function readers.hf_config(path)
  return plan("dense.json", "--model", path, "--memory_per_gpu", "900TiB", "--format", one_of("text", "json", "csv", "megatron", "torchtitan"))
end

function readers.policy(path) return plan("dense.json", "--policy", path, "--format", one_of("text", "json")) end

-- Without the search for specs that show each finding: it plans, and takes a second and more.
function readers.policy_check(path)
  return run("policy", table.unpack(one_of({ "check", "--no-witnesses", "--policy", path, "--format", "text" },
                                           { "check", "--no-witnesses", "--policy", path, "--format", "json", "--all" },
                                           { "show", "--policy", path })))
end

function readers.policy_witnesses(path) return run("policy", "check", "--policy", path, "--format", one_of("text", "json", "sarif", "github")) end

local profiled = { source .. "/examples/specs/measured-4xH200.json", "--policy", specs .. "policy.lua", "--schedule", "1f1b", "--virtual", "1",
                   "--recompute", "none", "--sharding", "none", "--profile" }
function readers.profile(path)
  return run("plan", table.unpack(table.move({ path, "--format", one_of("text", "json") }, 1, 3, #profiled + 1, { table.unpack(profiled) })))
end

-- Reports of a simulation; a page of HTML takes as long as the others together.
local function simulate(...)
  return run("simulate", "--format", one_of("text", "json", "svg", "trace", "csv", "text", "json", "html"), ...)
end

local function runtime()
  return one_of("ideal", "torch-single", "torch-multi", "deepseek", "pipeplan", "megatron")
end

function readers.simulated_profile(path)
  return simulate(one_of("1f1b", "zb_h1", "gpipe"), "--ranks", "4", "--microbatches", "8", "--profile", path)
end

function readers.times(path)
  return simulate(one_of("1f1b", "zb_auto", "interleaved_1f1b", "dualpipev"), "--ranks", "4", "--microbatches", "8", "--times", path,
                  "--runtime", runtime())
end

-- A program → verification → simulation under a runtime → peaks → a report.
function readers.program(path)
  local name, more = runtime(), { "--times", one_of("1,1,1", "1,2,1,2.5", "0,1,0"), "--p2p", one_of("0", "0.25") }
  if name ~= "ideal" then table.move({ "--queues", one_of("one", "per_peer") }, 1, 2, 5, more) end
  if name == "torch-multi" then table.move({ "--pairs", one_of("in_turn", "split", "overlapped") }, 1, 2, 7, more) end
  return simulate(path, "--runtime", name, "--directions", one_of("1", "1", "2"), table.unpack(more))
end

-- Beside a healthy file of the other kind, for one alone says less.
local measured = source .. "/tests/data/measured/"

function readers.nccl(path) return plan("experts.json", "--measured", path .. "," .. measured .. "topo-4xH100.txt") end

function readers.topology(path) return plan("experts.json", "--measured", measured .. "all_reduce-4xH100.txt," .. path) end

function readers.inventory(path) return plan("fleet.json", "--inventory", path, "--format", one_of("text", "json")) end

function readers.calibration(path)
  return plan("experts.json", "--accelerator", "A100-SXM-80GB", "--calibration", path, "--format", one_of("text", "json"))
end

function readers.kernels(path)
  return plan("experts.json", "--accelerator", "H200-SXM", "--kernels", path, "--format", one_of("text", "json"))
end

function readers.measured_plan(path)
  return plan("dense.json", "--measured", path .. "=" .. specs .. "run.log", "--format", one_of("text", "json"))
end

-- The log of a run, as what it says of the price.
function readers.measured_log(path)
  return plan("dense.json", "--measured", source .. "/tests/fuzz/seeds/measured_plan/least.json=" .. path, "--format", one_of("text", "json"))
end

-- Launch configurations: a name's ending says what language they are in.
local function place(path) return type(path) == "string" and path:find "^launch%.%l+$" and input or path end

for _, opener in ipairs { { files, "open" }, { io, "open" }, { engine.host, "readable" } } do
  local holder, name = opener[1], opener[2]
  local open = holder[name]
  holder[name] = function(path, ...) return open(place(path), ...) end
end

-- What a rule says of it, in a format; or a plan of its model, with or without its layout.
local function launched(name)
  if one_of(true, false) then return run("lint", name, "--format", one_of("text", "json", "github", "sarif")) end
  return run("plan", name, "--policy", specs .. "policy.lua", "--accelerator", "H200-SXM", "--memory_per_gpu", "900TiB", "--per_gpu", "400Gbps",
             "--tokens", "1T", "--gpus", one_of("4", "16", "64"), "--layout", one_of("file", "free", "file"),
             table.unpack(one_of({}, { "--model", source .. "/examples/models/llama-3.1-8b.json" })))
end

for language, ending in pairs { script = "sh", yaml = "yaml", json = "json", log = "log" } do
  readers["launch_" .. language] = function() return launched("launch." .. ending) end
end

local planned = source .. "/tests/fuzz/seeds/plan.json"

function readers.metrics(path) return run("monitor", planned, path, "--format", one_of("text", "json", "html"), "--steps", "1-40") end

-- A plan: what a run is held against, what a launch is held against, what is planned again.
function readers.plan_file(path)
  return run(table.unpack(one_of({ "monitor", path, source .. "/examples/monitor/healthy.log" },
                                 { "lint", source .. "/examples/launch/llama3_70b.sh", "--plan", path },
                                 { "plan", "--verify", path, "--policy", specs .. "policy.lua" })))
end

local out = {}
for name, read in pairs(readers) do
  out[name] = function(path)
    local file <close> = assert(io.open(path, "rb"))
    input, choices = path, tonumber(engine.host.digest(file:read "a"):sub(1, 12), 16)
    return read(path)
  end
end
return out
