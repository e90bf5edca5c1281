-- SPDX-License-Identifier: Apache-2.0
-- `pipeplan policy mutate`: small mistakes in a policy, and whether its tests notice.

local files = require "policy_files"
local json = require "cjson"
local program = require "program"

teardown(files.remove)

local function mutate(arguments, status)
  local result = program.run("policy mutate " .. arguments)
  assert.equal(status, result.status, result.stderr .. result.stdout)
  return result.stdout, result.stderr
end

local policy = [[
site "hall"
reject { id = "no_deep", pipeline_parallel = over(8), message = "P {pipeline_parallel}" }
]]

-- A folder with a policy and its tests. text: of the policy.
local function directory(body, text)
  local path = files.directory { ["hall.lua"] = text or policy }
  files.write("hall_spec.lua", string.format([[
local site = require("pipeplan").policy("%s/hall.lua", { date = "2026-11-27" })
local function depth(pipeline, gpus)
  return site:plan_spec({ cluster = { gpus = gpus, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
    model = "examples/models/llama-3-70b.json", training = { tokens = "2T", global_batch_size = 576 },
    parallelism = { pipeline = pipeline, tensor = 8, schedule = "1f1b" } }, ".")
end
describe("hall", function()
%s
end)
]], path, body), path)
  return string.format("--policy %s/hall.lua %s/hall_spec.lua", path, path)
end

local weak = [[it("rejects very deep ones", function() assert.decided(depth(16, 128), "rejected", "no_deep") end)]]
local strong = [[it("knows its bound", function()
  assert.decided(depth(9, 72), "rejected", "no_deep")
  assert.decided(depth(8, 64), "planned")
end)]]

describe("pipeplan policy mutate", function()
  it("lists what the tests do not notice, each with its place and a spec that would catch it", function()
    local text = mutate(directory(weak), 0)
    assert.matches("hall%.lua:2: survived: reject no_deep: pipeline_parallel over 8 → pipeline_parallel over 7\n", text)
    assert.matches("hall%.lua:2: survived: reject no_deep: pipeline_parallel over 8 → pipeline_parallel over 9\n"
                   .. '  a spec that tells them apart: {.-"pipeline":9', text)
    assert.matches("hall%.lua:2: survived: reject no_deep: without pipeline_parallel over 8\n", text)
    assert.matches("\n5 mutants: 2 killed, 3 survived; score 40%.0 %%\n$", text)
  end)

  it("is content where the tests try both sides of the bound", function()
    assert.matches("^5 mutants: 5 killed, 0 survived; score 100%.0 %%\n$", (mutate(directory(strong) .. " --min-score 100 --jobs 2", 0)))
  end)

  it("exits 5 where there is nothing to try, and 2 on a filter that is no pattern", function()
    local _, problem = mutate(directory(strong) .. " --filter nothing_of_the_kind --min-score 100", 5)
    assert.equal("pipeplan: policy mutate: no mutant to try: 5 there are, and the filter or the list of equivalents leaves none\n", problem)
    _, problem = mutate(directory(strong) .. " --filter '['", 2)
    assert.equal("pipeplan: --filter: '[' is no Lua pattern: malformed pattern (missing ']')\n", problem)
  end)

  it("exits 1 below the score that is asked for, or when the tests fail as they are", function()
    mutate(directory(weak) .. " --min-score 41 --no-witnesses", 1)
    mutate(directory(weak) .. " --min-score 40 --no-witnesses", 0)
    local _, problem = mutate(directory [[it("is wrong", function() assert.is_true(false) end)]], 1)
    assert.matches("the tests fail without any mutant: hall is wrong", problem)
  end)

  it("takes a list of mutants that no test can kill, with the reasons, and nothing that is no mutant", function()
    local list = files.write("equivalent.txt", "# reviewed\nreject no_deep: without pipeline_parallel over 8\tdepth 1 is never asked about here\n")
    local text = mutate(directory(weak) .. " --no-witnesses --equivalent " .. list, 0)
    assert.matches("5 mutants: 2 killed, 2 survived, 1 listed as equivalent; score 50%.0 %%", text)
    list = files.write("equivalent.txt", "reject no_deep: without pipeline_paralel over 8\treason\n")
    local _, problem = mutate(directory(weak) .. " --equivalent " .. list, 2)
    assert.matches("no mutant 'reject no_deep: without pipeline_paralel over 8', did you mean", problem)
    list = files.write("equivalent.txt", "reject no_deep: no reason\n")
    _, problem = mutate(directory(weak) .. " --equivalent " .. list, 2)
    assert.matches("equivalent%.txt:1: expected a mutant's name, a tab and the reason", problem)
  end)

  it("writes JSON, the same with several processes", function()
    local arguments = directory(weak) .. " --no-witnesses --format json"
    local one, two = mutate(arguments, 0), mutate(arguments .. " --jobs 2", 0)
    assert.equal(one, two)
    local data = json.decode(one)
    assert.equal(5, #data.mutants)
    assert.equal(0.4, data.score)
  end)

  it("changes a layer's invariants", function()
    local invariant = 'site "hall"\ninvariant { id = "deep", status = "planned", pipeline_parallel = over(8) }'
    local text = mutate(directory((strong:gsub("no_deep", "deep")), invariant) .. " --no-witnesses", 0)
    assert.equal("6 mutants: 6 killed, 0 survived; score 100.0 %\n", text)
  end)

  it("has no --set, and lets tests that state no date load policies of --date and the defaults of --policies", function()
    local lapsing = [[site "hall"
reject { id = "no_deep", pipeline_parallel = over(8), message = "m" }
change { id = "no_deep", pipeline_parallel = over(16), reason = "a deep model", expires = "2026-12-31" }]]
    -- till that day 9 stages are planned and the limit is 16, from then on it is 8; the tests look at 8 alone
    local arguments = directory(strong, lapsing)
    local spec = arguments:match "(%S+)$"
    assert(os.execute("sed -i 's/, { date = \"2026-11-27\" }//' " .. spec))
    local _, problem = mutate(arguments .. " --date 2026-12-31 --no-witnesses", 1)
    assert.matches("the tests fail without any mutant: hall knows its bound", problem)
    assert.matches("5 killed, 0 survived", (mutate(arguments .. " --date 2027-01-01 --no-witnesses", 0)))
    local folder = files.directory {}
    assert(os.execute("cp policies/default/*.lua " .. folder))
    assert(os.execute("sed -i '/max_pipeline_depth/s/value = 64/value = 8/' " .. folder .. "/parameters.lua"))
    arguments = directory((strong:gsub("no_deep", "too_deep")), "set { tie_fraction = '2%' }")
    assert.matches("the tests fail without any mutant", select(2, mutate(arguments, 1)))
    assert.matches("2 mutants:", (mutate(arguments .. " --no-witnesses --policies " .. folder, 0)))
    assert.matches("unknown option '%-%-set'", select(2, mutate(arguments .. " --set small_run_gpus=64", 2)))
  end)

  it("counts a mistake as noticed after which a spec file has no test left, and goes on", function()
    local arguments = directory [[if site:plan_spec({ cluster = { gpus = 72, accelerator = "H100-SXM",
        network = { fabric = "infiniband", per_gpu = "400Gbps" } }, model = "examples/models/llama-3-70b.json",
        training = { tokens = "2T", global_batch_size = 576 },
        parallelism = { pipeline = 9, tensor = 8, schedule = "1f1b" } }, ".").status == "rejected" then
      it("plans 8", function() assert.decided(depth(8, 64), "planned") end)
    end]]
    local data = json.decode((mutate(arguments .. " --no-witnesses --format json", 0)))
    local by = {}
    for _, mutant in ipairs(data.mutants) do by[mutant.id] = mutant.by end
    assert.equal("no test was found", by["reject no_deep: deleted"])
    assert.equal("no test was found", by["reject no_deep: pipeline_parallel over 8 → pipeline_parallel over 9"])
    assert.equal("hall plans 8", by["reject no_deep: pipeline_parallel over 8 → pipeline_parallel over 7"])
    local _, problem = mutate(directory [[pending("later", function() end)]], 1)
    assert.matches("the tests fail without any mutant: every test is pending\n", problem)
  end)

  it("exits 5 without tests", function()
    mutate(files.directory { ["hall.lua"] = policy }, 5)
  end)
end)
