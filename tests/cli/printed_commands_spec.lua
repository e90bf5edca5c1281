-- SPDX-License-Identifier: Apache-2.0
-- Every command that the program prints is run exactly as printed: those of its messages, pages and launch files, found in its own sources so
-- that none is left out, and those of what a spread of specs prints. A word in capitals (SPEC, FILE …) stands for a file of the reader's. What
-- --help shows is run by cli.help_spec, what the manual shows by cli.manual_spec.
-- With PIPEPLAN_LONG=1 all shipped specs are planned for what they print, each for its frameworks.

require "pipeplan"
local files = require "policy_files"
local json = require "cjson"
local monitoring = require "monitoring"
local program = require "program"
local read = require "read_file"

teardown(files.remove)

local source = os.getenv "PIPEPLAN_SOURCE"
local verbs = { plan = true, simulate = true, lint = true, monitor = true, policy = true, facts = true }

-- The folder in which commands run, with the files that they may name.
local function spec_here(name) return (read("examples/specs/" .. name .. ".json"):gsub("%.%./models/", "examples/models/")) end
local folder = files.directory { ["corpus.jsonl"] = spec_here "7b-fits-one-gpu":gsub("\n", " ") .. "\n", ["spec.json"] = spec_here "mixtral-8x7b" }
assert(os.execute(string.format("ln -s '%s/examples' '%s/examples'", source, folder)))

local function run(arguments, input)
  local before = string.format("sh -c 'cd \"%s\" && exec \"$0\" \"$@\"'", folder)
  return program.run(arguments, input, before)
end

local function check(arguments, where)
  local result = run(arguments)
  assert.is_true(result.status == 0 or result.status == 1, string.format("%s: pipeplan %s: exit %d: %s", where, arguments, result.status,
                                                                         result.stderr))
  return result
end

-- What stands for the reader's own files and for what a message fills in.
local function filled(command)
  return (command:gsub("%%s$", "plan.json"):gsub("%%s", "1f1b"):gsub("%%d", "8"):gsub("%f[%u]SPEC%f[^%u]", "spec.json")
          :gsub("%f[%u]FILE%f[^%u]", "examples/launch/llama3_70b.sh"):gsub("%f[%u]SITE%f[^%u]", "pinned.lua")
          :gsub("%f[%u]SAVED%f[^%u]", "saved"):gsub("%f[%u]SPECS%f[^%u]", "corpus.jsonl"))
end

-- Of what a command prints: "pipeplan plan --format json" is said of a spec, and "lint says all of it" is a sentence.
local sentences = { ["lint says all of it"] = true, ["lint reads shell scripts with Megatron's"] = true }
local complete = {
  ["plan --format json"] = "plan spec.json --format json", ["plan --format csv"] = "plan spec.json --format csv",
  ["plan --format "] = "plan spec.json --framework megatron --format megatron", ["simulate"] = "simulate 1f1b --ranks 4 --microbatches 8",
  ["policy show --files names the files of each"] = "policy show --files", ["policy show --files names each"] = "policy show --files",
  ["policy test %s\\n"] = "policy test examples/sites/hall-7_spec.lua", ["facts completion zsh\\n"] = "facts completion zsh",
  ["lint FILE --gpus %d"] = "lint examples/launch/llama3_70b.sh --gpus 256",
}

local function commands_of_sources()
  local list, seen = {}, {}
  local pipe <close> = assert(io.popen(string.format("cd '%s' && find stdlib -name '*.lua' ! -path 'stdlib/meta/*' | sort", source)))
  for path in pipe:lines() do
    for line in io.lines(source .. "/" .. path) do
      local code = line:match "^%s*%-%-" and "" or line
      for literal in code:gmatch '"([^"]*)"' do
        for command in literal:gmatch "%f[%w]pipeplan (%l[^`;,:)(%]]*)" do
          local title = literal:find "^Usage" or literal:find "^pipeplan %l[%l ]*$" and not complete[command]
          if verbs[command:match "^%l+"] and not title and not command:find "%.%.%." and not sentences[command] and not seen[command] then
            seen[command] = true
            list[#list + 1] = { path = path, command = complete[command] or filled(command) }
          end
        end
      end
    end
  end
  return list
end

-- Commands in what was printed, whose lines are broken where a page ends.
local function commands_in(text)
  local list = {}
  for command in text:gsub("\n%s+", " "):gmatch "%f[%w]pipeplan (%l[^\n`;,:)(%]]*)" do
    if verbs[command:match "^%l+"] and not sentences[command] and not command:find "^%l+ prints" then
      list[#list + 1] = complete[command] or filled(command)
    end
  end
  return list
end

local function unescaped(text)
  return (text:gsub("<[^>]*>", ""):gsub("&lt;", "<"):gsub("&gt;", ">"):gsub("&apos;", "'"):gsub("&quot;", '"'):gsub("&amp;", "&"))
end

-- A site that is pinned to another default policy than this one, and what is saved of that.
local function make_pinned()
  local other = files.directory {}
  assert(os.execute(string.format("cp '%s'/policies/default/*.lua '%s' && echo '-- older' >> '%s/warnings.lua'", source, other, other)))
  files.write("pinned.lua", "site 'pinned'\nset { tie_fraction = '2%' }\n", folder)
  assert.equal(0, run("policy pin pinned.lua --policies " .. other).status)
  assert(os.execute(string.format("cp -r '%s/pinned.default' '%s/saved'", folder, folder)))
end

local function list_of(command)
  local pipe <close> = assert(io.popen(command))
  local list = {}
  for line in pipe:lines() do list[#list + 1] = line end
  return list
end

-- What is asked for to see what is printed: refusals, frameworks, pages that say what else could be done, and what cannot be read.
local function asked()
  local list = {
    "plan examples/specs/rules/too_deep.json --explain", "plan examples/specs/7b-fits-one-gpu.json", "plan spec.json --gpus 8",
    "plan spec.json --explain", "plan spec.json --framework torchtitan", "plan spec.json --framework primus --format primus",
    "plan spec.json --accelerator H10", "plan spec.json --alltoall_kernel deepep --fabric efa", "plan --verify corpus.jsonl",
    "lint examples/launch/llama3_70b.sh", "policy check --policy examples/sites/aws-p5.lua --no-witnesses --codes",
    "policy show --policy pinned.lua", "plan spec.json --policy-digest 0", "lint spec.json", "policy init printed",
    "monitor plan.json examples/monitor/straggler.log", "simulate 1f1b --ranks 4 --microbatches 8",
  }
  if require "long" then
    for _, path in ipairs(list_of("cd '" .. source .. "' && ls examples/specs/*.json examples/specs/rules/*.json")) do
      for _, framework in ipairs { "", " --framework megatron", " --framework torchtitan", " --framework deepspeed" } do
        list[#list + 1] = "plan " .. path .. framework .. " --explain"
      end
    end
  end
  return list
end

describe("every command that the program prints", function()
  setup(function()
    assert.equal(0, run("plan spec.json --date 2026-11-29 --format json -o plan.json").status)
    make_pinned()
  end)

  it("in a message or on a page, as its sources have it, runs", function()
    local list = commands_of_sources()
    assert.is_true(#list >= 15, #list .. " commands")
    for _, entry in ipairs(list) do check(entry.command, entry.path) end
  end)

  it("for specs of many kinds runs as it is printed", function()
    local count, seen = 0, {}
    for _, arguments in ipairs(asked()) do
      local result = run(arguments)
      assert.is_true(result.status ~= 70 and result.status < 128, arguments)
      for _, command in ipairs(commands_in(result.stdout .. result.stderr)) do
        count = count + 1
        if not seen[command] then check(command, arguments) end
        seen[command] = true
      end
    end
    assert.is_true(count >= 6, count .. " commands")
  end)

  it("to plan a fallback plans that schedule, at that depth", function()
    for _, spec in ipairs { "spec.json", "examples/specs/qwen3-235b.json" } do
      assert.equal(0, run("plan " .. spec .. " --format json -o there.json").status)
      local plan = json.decode(read(folder .. "/there.json"))
      local steps = monitoring.log(1, plan.rollback.window_steps + plan.rollback.warmup_steps,
                                   1.5 * plan.ideal_step_seconds / plan.rollback.threshold_fraction, 10,
                                   function(i, seconds) return monitoring.megatron(i, seconds, { batch = plan.global_batch_size }) end)
      local result = run("monitor there.json -", steps)
      local command = (result.stdout:match "its plan: pipeplan (plan SPEC.-)\n\n" or ""):gsub("%s+", " ")
      assert.is_true(#command > 0, result.stdout .. result.stderr)
      local fallback = json.decode(check(command:gsub("SPEC", spec) .. " --format json", "monitor").stdout)
      assert.same({ "planned", plan.rollback.fallback.schedule, plan.rollback.fallback.pipeline },
                  { fallback.status, fallback.schedule, fallback.parallelism.pipeline })
      if spec ~= "spec.json" then   -- "at the same TP, EP and DP"
        assert.matches("at the same TP, EP and DP", result.stdout:gsub("\n%s+", " "), 1, true)
        for _, degree in ipairs { "tensor", "expert", "data" } do assert.equal(plan.parallelism[degree], fallback.parallelism[degree]) end
      end
    end
  end)

  it("on a page for a browser makes that page again", function()
    for arguments, status in pairs { ["plan spec.json --tokens '300 B' --date 2026-11-29 --format html"] = 0,
                                     ["plan spec.json --gpus 8 --date 2026-11-29 --format html"] = 1,
                                     ["simulate 1f1b --ranks 4 --microbatches 8 --format html"] = 0 } do
      local page = run(arguments)
      assert.equal(status, page.status, page.stderr)
      local command = unescaped(assert(page.stdout:match '<pre class="cmd"[^>]*>(.-)</pre>', arguments))
      local again = run((command:gsub("^pipeplan ", "")))
      assert.equal(page.stdout, again.stdout, command)
    end
  end)
end)
