-- SPDX-License-Identifier: Apache-2.0
--[[
sweep.lua: every value in its turn replaced by each of a list that has broken readers, in inputs of every kind: specs, configurations of
models, profiles, times, plans, measured links, topologies, programs, logs, policies, --set, and options of the commands.

  tests/sweep/run [PART]     all of it, or of the kinds whose name has PART in it; prints what is wrong, and how many were tried
  tests/sweep/run --together N [PART]
                             N JSON files of each kind in which up to four numbers are small or large: each may be legal, and what they
                             make together out of every range

Each is run as the command that reads it, in this process. What is asked of an outcome stands in `wrong`.
tests/cli/sweep_spec.lua runs a share of it.
]]

local pipeplan = require "pipeplan"
local fields = require "pipeplan.input.fields"
local json = require "pipeplan.base.json"
local main = require "pipeplan.cli.main"

local source = os.getenv "PIPEPLAN_SOURCE" or "."
local sweep = {}

-- ---------------------------------------------------------------------------------------------------------------------------- values

-- As JSON text, for not all of it is JSON.
local json_values = {
  "-1", "0", "1", "2", "-0.0", "0.5", "-0.5", "1.5", "9007199254740993", "4611686018427387904", "9223372036854775807",
    "9223372036854775808",
  "-9223372036854775808", "1e308", "-1e308", "1e-308", "1e18", "1e15", "1000000007", "1e999", "NaN", "-", "true", "false", "null",
    "[]", "{}", "[0]", "[[1]]",
  "[-1, 1e308]", '{"a": {"b": []}}', '""', '" "', '"' .. ("x"):rep(5000) .. '"', '"' .. ("9"):rep(400) .. '"', '"NaN"', '"inf"',
    '"1e999"',
  '"0x10"', '"-1"', '"9223372036854775808"', '"1e308"', '"-5GiB"', '"1e300T"', '"%s%d"', '"\\u0000"', '"\\u001b[31mred"',
    '"\\u202eright"',
  '"a\\nb"', '"\xff\xfe"', '"\27[31m"', '"/"', '"/dev/null"', ("["):rep(300) .. ("]"):rep(300),
}

local extremes = {
  0, 1, 2, 0.5, 1e-320, 1e-100, 1e-30, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 1e3, 1e6, 1e9, 1e12, 1e15, 1e18, 1e30, 1e100, 1e300,
}

-- As words of a line, of an option, of a Lua literal.
local words = {
  "-1", "0", "1", "2", "-0.0", "0.5", "1.5", "9007199254740993", "4611686018427387904", "9223372036854775807", "9223372036854775808",
  "-9223372036854775808", "1e308", "-1e308", "1e-308", "1e18", "1e999", "nan", "inf", "-inf", "", " ", ("x"):rep(5000), ("9"):rep(400),
    "true",
  "null", "[]", "{}", "0x10", "%s%d", "\27[31m", "\u{202e}right", "a\nb", "\xff\xfe", "/", "/dev/null", "--", "=", ",", ":", "1,",
    ",1", "1:", "1e300T",
  "-5GiB", "1,2,3", "9223372036854775807,1",
}

-- ------------------------------------------------------------------------------------------------------------------------- one run

local function catcher(into)
  local file = {}
  function file:write(...)
    for i = 1, select("#", ...) do into[#into + 1] = tostring((select(i, ...))) end
    return self
  end
  function file:flush() return self end
  return file
end

-- → exit status, standard output, standard error, seconds.
local function run(arguments)
  local out, err, stdout, stderr, before = {}, {}, io.stdout, io.stderr, os.clock()
  io.stdout, io.stderr = catcher(out), catcher(err)  -- luacheck: ignore 122
  local good, status = pcall(main, arguments)
  io.stdout, io.stderr = stdout, stderr  -- luacheck: ignore 122
  if not good then status, err = 70, { tostring(status) } end
  return status, table.concat(out), table.concat(err), os.clock() - before
end

local documented = { [0] = true, [1] = true, [2] = true, [3] = true, [4] = true, [5] = true, [6] = true }

local MOST_SECONDS = 30

-- Words that no figure is: what has been added up past its range.
local impossible = { "nan", "-nan", "inf", "-inf" }

local function has_word(text, word)
  local from = 1
  while true do
    local first, last = text:find(word, from, true)
    if not first then return false end
    if not text:sub(first - 1, first - 1):find "[%w_%-\"'/]" and not text:sub(last + 1, last + 1):find "[%w_\"'/]" then return true end
    from = last + 1
  end
end

-- What is wrong with an outcome, or nil. `names`: one of them has to stand in an error; `value`: as it was given.
local function wrong(names, value, status, out, err, seconds)
  if not documented[status] then return "exit status " .. tostring(status) end
  if seconds > MOST_SECONDS then return string.format("%.1f s", seconds) end
  if status > 1 and out ~= "" then return "something stands on standard output" end
  if status > 1 and not err:find "^pipeplan: ." then return "no message" end
  if (out .. err):find "[\0-\8\11-\31\127]" then return "a control character is shown" end
  if not (utf8.len(out) and utf8.len(err)) then return "what is shown is no UTF-8" end
  if (out .. err):find("\u{202e}", 1, true) then return "a character that turns text around is shown" end
  if #err > 2000 + 4 * #value then return "a message of " .. #err .. " bytes" end
  if status <= 1 then
    for _, word in ipairs(impossible) do
      if not value:lower():find(word:gsub("%-", ""), 1, true) and has_word(out, word) then return "a figure is " .. word end
    end
    if not value:find "^\"?%-" and out:find "[%s:%[]%-9223372036%d+" then return "a figure has wrapped around" end
    return nil
  end
  local path = value:match '^"?(/[^"]*)"?$'   -- the error is of the file that the value names
  if path and err:find(path, 1, true) then return nil end
  for _, name in ipairs(names) do
    if err:find(name, 1, true) then return nil end
  end
  return "names neither of " .. table.concat(names, ", ")
end

sweep.wrong = wrong

-- ------------------------------------------------------------------------------------------------------------------------ the kinds

local directory = os.tmpname()
os.remove(directory)

local function write(name, text)
  local path = directory .. "/" .. name
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
  return path
end

local function read(path)
  local file = assert(io.open(path:find "^/" and path or source .. "/" .. path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

-- Each calls try(kind, where, value, names, arguments).
local kinds = {}

-- Paths of all that stands in a decoded JSON value, groups too; of a list the first two and the last.
local function places(value, path, into)
  if path ~= "" then into[#into + 1] = path end
  if type(value) ~= "table" or value == json.null then return into end
  local keys = {}
  for key in pairs(value) do
    if type(key) == "string" or type(key) == "number" and (key <= 2 or key == #value) then keys[#keys + 1] = key end
  end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(keys) do places(value[key], path .. "/" .. key, into) end
  return into
end

local MARK = "@@here@@"

-- The text with a mark in place of what stands at a path, and the names on the way there.
local function marked(text, path)
  local object = json.decode(text, "base")
  local at, names, last = object, {}, nil
  for part in path:gmatch "[^/]+" do
    if last then at = at[last] end
    last = math.tointeger(tonumber(part)) or part
    if type(last) == "string" then names[#names + 1] = last end
  end
  at[last] = MARK
  return json.encode(object), names
end

-- One to four of the numbers and quantities of an object are other numbers, in place.
local function change_some(object, random)
  local found = {}
  local function walk(value)
    for key, entry in pairs(value) do
      if type(entry) == "table" and entry ~= json.null then walk(entry)
      elseif type(entry) == "number" or type(entry) == "string" and entry:find "^%d" then found[#found + 1] = { value, key } end
    end
  end
  walk(object)
  for _ = 1, random(4) do
    local place = found[random(#found)]
    place[1][place[2]] = extremes[random(#extremes)]
  end
end

local function put(template, value)
  local first, last = template:find('"' .. MARK .. '"', 1, true)
  return template:sub(1, first - 1) .. value .. template:sub(last + 1)
end

-- A kind of JSON file.
local function json_kind(kind, text, file, arguments)
  kinds[#kinds + 1] = { name = kind, healthy = function() return arguments(write(file, text)) end, each = function(try)
    for _, path in ipairs(places(json.decode(text, kind), "", {})) do
      local template, names = marked(text, path)
      names[#names + 1] = file .. ":"   -- of a text that is no JSON, or that is another thing altogether
      for _, value in ipairs(json_values) do
        try(path, value, names, function() return arguments(write(file, put(template, value))) end)
      end
    end
  end, together = function(random)
    local object = json.decode(text, kind)
    change_some(object, random)
    local changed = json.encode(object)
    return changed, arguments(write(file, changed))
  end }
end

-- A kind of file of lines: each word of it, but of lines that look alike only the first.
local function words_kind(kind, text, file, arguments)
  kinds[#kinds + 1] = { name = kind, healthy = function() return arguments(write(file, text)) end, each = function(try)
    local seen, from = {}, 1
    for line in text:gmatch "[^\n]*\n?" do
      local shape = line:gsub("%d+", "0")
      if #line < 600 and (seen[shape] or 0) < 1 then
        seen[shape] = (seen[shape] or 0) + 1
        for first, last in line:gmatch "()[%w_.+%-]+()" do
          local before, after = text:sub(1, from + first - 2), text:sub(from + last - 1)
          for _, value in ipairs(words) do
            try(string.format("%d %s", from + first - 1, line:sub(first, last - 1)), value, { "" }, function()
              return arguments(write(file, before .. value .. after))
            end)
          end
        end
      end
      from = from + #line
    end
  end }
end

local function list(...) return { ... } end

local dated, in_json = "--date=2026-12-01", "--format=json"

local small = { "--gpus", "16", "--accelerator", "H100-SXM", "--per_gpu", "400Gbps", "--tokens", "2T", "--pipeline", "2", "--schedule",
  "1f1b",
                "--tensor", "1", "--date", "2026-12-01" }
local function plan(...)
  local arguments = { "plan", ... }
  return table.move(small, 1, #small, #arguments + 1, arguments)
end

-- Every field of a spec, in one that is planned as it is.
local function whole_spec()
  return json.encode {
    cluster = {
      gpus = 64, gpus_per_node = 8, accelerator = "H100-SXM", memory_per_gpu = "80GB", flops = 989e12, memory_bandwidth = 3.35e12,
      price_per_gpu_hour = 2.5, storage = 1e10, overhead = "4GiB", host_memory = "1TiB", alltoall_kernel = false,
      network = { fabric = "infiniband", per_gpu = "400Gbps", nics_per_node = 8, scale_up_gpus = 8, scale_up_per_gpu = "450GB/s",
                  oversubscription = 1 },
    },
    model = {
      architecture = "moe", layers = 16, hidden = 1024, heads = 16, kv_heads = 8, head_dim = 64, vocab = 32000, ffn = 4096, experts = 8,
      experts_per_token = 2, expert_ffn = 1024, shared_ffn = 1024, first_dense = 1, max_positions = 8192, name = "small",
      tied_embeddings = true, mtp_layers = 1, norms_per_layer = 2,
    },
    training = {
      tokens = "1T", sequence_length = 4096, micro_batch_size = 1, global_batch_size = { { 0, 256 }, { 1000000000, 512 } },
      precision = "bf16", optimizer = "adam", moments = "fp32", zero = 1, optimizer_offload = 0, gradients = "fp32",
      expert_imbalance = 1.1, recompute = { "norm" }, goodput = 0.9,
    },
    parallelism = { tensor = 1, context = 1, expert = 8, expert_tensor = 1, data = 16, pipeline = 4, virtual = 1, microbatches = 16,
                    schedule = "1f1b", layers_per_stage = { 4, 4, 4, 4 } },
    framework = "megatron",
  }
end

json_kind("spec", whole_spec(), "spec.json", function(path) return list("plan", path, "--date", "2026-12-01", "--format", "json") end)
json_kind("dense spec", [[{ "cluster": { "gpus": 64, "accelerator": "H100-SXM", "network": { "per_gpu": "400Gbps" } },
  "model": { "architecture": "dense", "total": "8B", "layers": 32 }, "training": { "tokens": "2T", "global_batch_size": 512 },
  "parallelism": { "pipeline": 4, "tensor": 1, "schedule": "1f1b" } }]], "spec.json",
  function(path) return list("plan", path, "--date", "2026-12-01") end)

for _, name in ipairs { "deepseek-v3", "kimi-k2", "llama-3.1-8b", "mixtral-8x7b", "qwen3-235b-a22b", "tiny" } do
  json_kind("model " .. name, read("examples/models/" .. name .. ".json"), "model.json", function(path) return plan("--model", path) end)
end
json_kind("profile", read "examples/profiles/4xH200.json", "profile.json",
          function(path) return list("plan", source .. "/examples/specs/measured-4xH200.json", "--profile", path, dated) end)
json_kind("simulated profile", read "examples/profiles/4xH200.json", "profile.json",
          function(path) return list("simulate", "1f1b", "--ranks", "4", "--microbatches", "8", "--profile", path, in_json) end)
json_kind("times", read "examples/times/uneven-stages.json", "times.json",
          function(path) return list("simulate", "1f1b", "--ranks", "4", "--microbatches", "8", "--times", path, "--format", "json") end)
json_kind("plan file", read "tests/fuzz/seeds/plan.json", "plan.json",
          function(path) return list("monitor", path, source .. "/examples/monitor/healthy.log") end)

json_kind("calibration", [[{ "accelerator": "H100-SXM", "factors": { "all": 1.1, "expert": 1.5 }, "source": "by hand", "runs": [
  { "name": "a.log", "job": "1", "layout": "1F1B", "steps": 20, "gpus": 8, "measured_seconds": 2, "predicted_seconds": 1.5,
    "responses": { "expert": [{ "factor": 0.5, "seconds": 1.2 }, { "factor": 2, "seconds": 1.9 }] } }] }]], "site.json",
          function(path) return plan("--model", source .. "/examples/models/tiny.json", "--calibration", path) end)
-- What of a plan is read with the log of its run.
json_kind("measured plan", [[{ "status": "planned", "model": { "name": "deepseek-v3", "layers": 61, "total_parameters": 671026419200 },
  "cluster": { "gpus": 512, "accelerator": "H200-SXM" }, "tokens_per_step": 16777216,
  "training": { "sequence_length": 4096, "precision": "fp8" },
  "shortlist": [{ "schedule": "zb_h1", "sharding": "optimizer", "microbatches": 128, "micro_batch_size": 1, "gpus_used": 512,
    "parallelism": { "tensor": 1, "context": 1, "expert": 8, "expert_tensor": 1, "data": 32, "pipeline": 16, "virtual": 1 },
    "recompute": ["activation", "mla_up_projection", "norm"], "layers_per_stage": [5, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 0] }] }]],
  "shortlist.json", function(path)
    local measuring = source .. "/examples/measuring/"
    return list("plan", measuring .. "spec.json", dated, "--measured", path .. ":1=" .. measuring .. "run-2.log")
  end)

words_kind("links", read "tests/data/measured/all_reduce-4xH100.txt", "links.txt",
           function(path) return list("plan", source .. "/examples/specs/two-ranks-on-a-cpu.json", "--measured", path, dated) end)
words_kind("topology", read "tests/data/measured/topo-4xH100.txt", "topo.txt",
           function(path) return plan("--model", source .. "/examples/models/tiny.json", "--measured", path) end)
words_kind("inventory", read "tests/fuzz/seeds/inventory/scontrol.txt", "nodes.txt", function(path)
  return list("plan", "--inventory", path, "--model", source .. "/examples/models/tiny.json", "--per_gpu", "400Gbps", "--tokens", "2T",
              "--pipeline", "2", "--schedule", "1f1b", "--tensor", "1", dated)
end)
words_kind("program", "0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n", "program.csv",
           function(path) return list("simulate", path, "--format", "json") end)
words_kind("program with messages", read "tests/fuzz/seeds/program/messages", "program.csv",
           function(path) return list("simulate", path, "--format", "json") end)
words_kind("log", read "examples/monitor/healthy.log", "run.log", function(path) return list("monitor",
  source .. "/tests/fuzz/seeds/plan.json", path) end)
for _, name in ipairs { "nemo", "nanotron", "deepspeed", "maxtext", "verl", "ms_swift", "hf_trainer", "torchtitan", "torchtune",
                        "litgpt" } do
  words_kind("log of " .. name, read("tests/fuzz/seeds/metrics/" .. name .. ".log"), "run.log",
             function(path) return list("monitor", source .. "/tests/fuzz/seeds/plan.json", path, "--steps", "2-40") end)
end
words_kind("counters", read "examples/monitor/dmon.txt", "dmon.txt",
           function(path) return list("monitor", source .. "/tests/fuzz/seeds/plan.json", source .. "/examples/monitor/healthy.log",
             path) end)

for _, launch in ipairs { { "launch script", "llama3_70b.sh" }, { "launch YAML", "dualpipev.yaml" } } do
  local text = read("examples/launch/" .. launch[2])
  words_kind(launch[1], text, launch[2], function(path) return list("lint", path, in_json) end)
  if launch[1] == "launch YAML" then text = text .. "data:\n  tokenizer:\n    vocab_size: 64000\n" end  -- of which linting asks nothing
  words_kind("planned " .. launch[1], text, launch[2], function(path)
    return list("plan", path, "--gpus", "64", "--accelerator", "B200", "--per_gpu", "400Gbps", "--tokens", "1T", dated, in_json)
  end)
end

-- Parameters, by --set and by a policy's `set`.
local tiny = source .. "/examples/models/tiny.json"

local function parameters()
  local names = {}
  for name in pairs(pipeplan.policy(nil, { date = "2026-12-01" }).policy.parameters) do names[#names + 1] = name end
  table.sort(names)
  return names
end

kinds[#kinds + 1] = { name = "--set", each = function(try)
  for _, name in ipairs(parameters()) do
    for _, value in ipairs(words) do
      try(name, value, { name, "--set" }, function() return plan("--model", tiny, "--set", name .. "=" .. value, "--set", "reason=r") end)
    end
  end
end }

local literals = {
  "-1", "0", "-0.0", "0.5", "1 << 53", "(1 << 53) + 1", "1 << 62", "math.maxinteger", "math.mininteger", "1e308", "-1e308", "1e-308",
    "1/0", "-1/0", "0/0",
  "''", "('x')", "'1e999'", "'nan'", "'\\27[31m'", "'\\u{202e}'", "'\\xff'", "true", "false", "nil", "{}", "{ {} }", "{ 1 }",
    "{ '1f1b', 'x' }",
  "{ '1f1b', '1f1b' }", "function() end", "{ a = 1 }", "'9223372036854775808'", "'1,'", "over(1)", "any",
}
kinds[#kinds + 1] = { name = "policy set", each = function(try)
  for _, name in ipairs(parameters()) do
    for _, value in ipairs(literals) do
      try(name, value, { name, "site.lua" }, function()
        return plan("--model", tiny, "--policy", write("site.lua", string.format("site 'x'\nset { %s = %s, reason = 'r' }\n", name,
          value)))
      end)
    end
  end
end }

-- Options of commands.
local function options_kind(kind, names, arguments)
  kinds[#kinds + 1] = { name = kind, healthy = function() return arguments end, each = function(try)
    for _, name in ipairs(names) do
      for _, value in ipairs(words) do
        try("--" .. name, value, { name, (name:gsub("_", "-")), "no schedule", "cannot be read", "command line: --" }, function()
          local given = { table.unpack(arguments) }
          for i = 1, #given - 1 do
            if given[i] == "--" .. name then table.remove(given, i) table.remove(given, i) break end
          end
          given[#given + 1] = "--" .. name .. "=" .. value
          return given
        end)
      end
    end
  end }
end

local spec_options = {}
for _, entry in ipairs(fields.list) do spec_options[#spec_options + 1] = entry.name end
options_kind("options of a spec", spec_options, plan("--model", tiny))
options_kind("options of plan", { "format", "pairs", "why", "jobs", "policy", "set", "date", "policies" }, plan("--model", tiny))
options_kind("options of simulate", { "ranks", "microbatches", "virtual", "group", "limit", "directions", "times", "profile", "p2p",
  "runtime", "pairs", "queues",
                                      "format", "color" },
             { "simulate", "interleaved_1f1b", "--ranks", "4", "--microbatches", "8" })
options_kind("options of zb_auto", { "ranks", "microbatches", "limit", "times", "p2p" }, { "simulate", "zb_auto", "--ranks", "4",
  "--microbatches", "8" })
options_kind("options of dualpipe", { "ranks", "microbatches", "times", "p2p" }, { "simulate", "dualpipe", "--ranks", "4",
  "--microbatches", "8" })
options_kind("options of monitor", { "input", "columns", "steps", "min-steps", "stall-factor", "format" },
             { "monitor", source .. "/tests/fuzz/seeds/plan.json", source .. "/examples/monitor/healthy.log" })
options_kind("options of policy show", { "format", "policy", "set", "date" }, { "policy", "show" })

-- ------------------------------------------------------------------------------------------------------------------------- the sweep

-- sweep.run{ every = N: of the runs one in so many, part = of a kind's name, told = function(text), … } → tried, wrong
function sweep.run(how)
  assert(os.execute("mkdir '" .. directory .. "'"))
  local count, tried, failed = 0, 0, 0
  for _, kind in ipairs(kinds) do
    if not how.part or kind.name:find(how.part, 1, true) then
      local whole, _, problem_of_whole = run(kind.healthy and kind.healthy() or plan("--model", tiny))
      assert(whole <= 1, kind.name .. ": " .. problem_of_whole)   -- or nothing but the first error is tried
      kind.each(function(place, value, names, arguments)
        count = count + 1
        if count % (how.every or 1) ~= 0 then return end
        tried = tried + 1
        local given = arguments()
        local status, out, err, seconds = run(given)
        local problem = wrong(names, value, status, out, err, seconds)
        if problem then
          failed = failed + 1
          how.told(string.format("%s %s = %q: %s (exit %s)\n    %s", kind.name, place, value:sub(1, 40), problem, status, err:sub(1,
            600)))
        end
      end)
    end
  end
  os.execute("rm -r '" .. directory .. "'")
  return tried, failed
end

-- sweep.together{ times = N, part =, told = } → tried, wrong, those that were no error
function sweep.together(how)
  assert(os.execute("mkdir '" .. directory .. "'"))
  local seed, tried, failed, through = 0, 0, 0, 0
  local function random(most)
    seed = (seed * 6364136223846793005 + 1442695040888963407) & math.maxinteger
    return 1 + (seed >> 33) % most
  end
  for _, kind in ipairs(kinds) do
    for _ = 1, kind.together and (not how.part or kind.name:find(how.part, 1, true)) and how.times or 0 do
      tried = tried + 1
      local text, given = kind.together(random)
      local outcome = { run(given) }
      if outcome[1] <= 1 then through = through + 1 end
      local problem = wrong({ "" }, text, table.unpack(outcome))
      if problem then
        failed = failed + 1
        how.told(string.format("%s: %s\n    %s\n    %s", kind.name, problem, text, table.concat(given, " ")))
      end
    end
  end
  os.execute("rm -r '" .. directory .. "'")
  return tried, failed, through
end

if arg and arg[0] and arg[0]:find "sweep%.lua$" then
  io.stdout:setvbuf "line"
  local function told(text) print(text) end
  local tried, failed, through
  if arg[1] == "--together" then tried, failed, through = sweep.together { times = tonumber(arg[2]), part = arg[3], told = told }
  else tried, failed = sweep.run { part = arg[1], told = told } end
  print(string.format("%d tried, %d wrong%s", tried, failed, through and string.format(", %d read", through) or ""))
  os.exit(failed == 0 and 0 or 1)
end

return sweep
