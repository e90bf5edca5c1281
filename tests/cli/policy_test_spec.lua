-- SPDX-License-Identifier: Apache-2.0
-- `pipeplan policy test`: runs busted specs of policies, and says what they do not look at.

local files = require "policy_files"
local json = require "cjson"
local program = require "program"

teardown(files.remove)

local function test(arguments, status)
  local result = program.run("policy test " .. arguments)
  assert.equal(status, result.status, result.stderr .. result.stdout)
  return result.stdout, result.stderr
end

-- A spec in a directory of its own, with a policy beside it.
local policy_text = [[
site "hall"
row { id = "few", gpus = at_most(128), try = { "1f1b" } }
reject { id = "no_deep", pipeline_parallel = over(8), message = "P {pipeline_parallel}" }
]]

local function directory(body)
  local path = files.directory { ["hall.lua"] = policy_text }
  files.write("hall_spec.lua", string.format([[
local site = require("pipeplan").policy("%s/hall.lua", { date = "2026-11-27" })
local spec = { cluster = { gpus = 64, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
               model = "examples/models/llama-3-70b.json", training = { tokens = "2T", global_batch_size = 512 } }
local function with(changes)
  local out = { cluster = spec.cluster, model = spec.model, training = spec.training, parallelism = changes }
  return site:plan_spec(out, ".")
end
describe("hall", function()
%s
end)
]], path, body), path)
  return path
end

local good = [[
  it("interleaves nothing on few GPUs", function() assert.equal("1f1b", with({ tensor = 8 }).schedule) end)
  it("keeps pipelines shallow", function()
    assert.decided(with { pipeline = 16, tensor = 4 }, "rejected", "no_deep")
    assert.decided(with { pipeline = 8, tensor = 8 }, "planned")
  end)
]]

describe("pipeplan policy test", function()
  it("runs the examples that plain busted runs", function()
    local text = test("examples/sites", 0)
    assert.matches("ok +aws%-p5 counts 64 GPUs as a large run already\n", text)
    assert.matches("\n%d+ passed\n", text)
  end)

  it("reports tests and what of the policy no test looks at", function()
    local text = test(directory(good), 0)
    assert.matches("ok       hall keeps pipelines shallow\n", text)
    assert.matches("\n2 passed\ncoverage: 75 %% %(row 1/1, reason 1/1, boundary 1/2%)\n", text)
    assert.matches("hall%.lua:2: no test tries both sides of row 'few': gpus at most 128\n", text)
  end)

  it("counts a boundary when both sides of it, next to it, were tried", function()
    local text = test(directory(good .. [[
      it("knows its bound", function()
        spec.cluster = { gpus = 72, accelerator = "H100-SXM", network = spec.cluster.network }
        spec.training = { tokens = "2T", global_batch_size = 576 }
        assert.decided(with { pipeline = 9, tensor = 8 }, "rejected", "no_deep")
      end)]]), 0)
    assert.matches("reason 1/1, boundary 1/2", text)
  end)

  it("fails on a failing test, on one that asserts nothing and on one that names an unknown rule", function()
    local text = test(directory [[
      it("expects too much", function() assert.equal("zb_v", with({ tensor = 8 }).schedule) end)
      it("looks and says nothing", function() with { tensor = 8 } end)
      it("names no rule", function() assert.decided(with { pipeline = 16, tensor = 4 }, "rejected", "no_dep") end)
      it("is good", function() assert.is_true(true) end)]], 1)
    assert.matches("FAILED   hall expects too much\n", text)
    assert.matches("FAILED   hall looks and says nothing\n         it asserts nothing\n", text)
    assert.matches("ERROR    hall names no rule\n[^\n]+no rule 'no_dep', did you mean 'no_deep'%?\n", text)
    assert.matches("\n1 passed, 2 failed, 1 error\n", text)
  end)

  it("takes facts in place of what would follow from the spec", function()
    test(directory [[
      it("goes by the facts it is given", function()
        assert.decided(site:with({ fits_one_gpu = true, one_gpu_bytes = 1e9 }):plan_spec(spec, "."), "rejected", "fits_one_gpu")
        assert.has_error(function() site:with { fits_one_gpuu = true } end)
        assert.has_error(function() site:with { pipeline_parallel = 3 } end)
      end)]], 0)
  end)

  it("exits 5 where there is no test, and 2 where there is no file", function()
    local _, problem = test(files.directory { ["hall.lua"] = policy_text }, 5)
    assert.matches("no test was found", problem)
    _, problem = test("no/such/place", 2)
    assert.matches("no/such/place: cannot be read: No such file or directory", problem)
  end)

  it("exits 2 for what is no file, whoever names it", function()
    local fifo = files.directory {} .. "/fifo"
    assert(os.execute("mkfifo " .. fifo))
    for path, what in pairs { ["/dev/null"] = "a device", [fifo] = "a FIFO" } do
      local _, problem = test(path, 2)
      assert.equal(string.format("pipeplan: %s: cannot be read: %s, not a regular file\n", path, what), problem)
    end
  end)

  it("does not go round where directories link to themselves", function()
    local place = files.directory {}
    for name in ("abcdefghij"):gmatch "." do assert(os.execute(string.format("ln -s . '%s/%s'", place, name))) end
    local _, problem = test(place, 2)
    assert.matches("more than 20000 files and directories", problem)
  end)

  it("counts a spec that cannot be loaded as an error", function()
    local text = test(directory "  it(", 1)
    assert.matches("ERROR", text)
    assert.matches("hall_spec%.lua:%d+:", text)
  end)

  it("exits 1 below the coverage that is asked for", function()
    local _, problem = test(directory(good) .. " --min 76", 1)
    assert.matches("75 %% is covered, less than %-%-min 76", problem)
    test(directory(good) .. " --min 75", 0)
    test("examples/sites --min many", 2)
  end)

  it("asks for no side of a limit on which the field cannot be", function()
    local path = directory [[it("keeps", function() assert.decided(with { pipeline = 8, tensor = 8 }, "rejected", "some")
      assert.decided(with { pipeline = 16, tensor = 4 }, "planned") end)]]
    files.write("hall.lua", "site 'hall' reject { id = 'some', pipeline_parallel = between(1, 8), message = 'm' }", path)
    assert.matches("coverage: 100 %% %(reason 1/1, boundary 1/1%)", (test(path, 0)))
  end)

  it("filters tests by name", function()
    assert.matches("\n1 passed\n", (test(directory(good) .. " --filter shallow", 0)))
    test(directory(good) .. " --filter nothing_of_the_kind", 5)
    local _, problem = test(directory(good) .. " --filter '%'", 2)
    assert.equal("pipeplan: --filter: '%' is no Lua pattern: malformed pattern (ends with '%')\n", problem)
  end)

  it("writes TAP, JUnit and JSON", function()
    local path = directory(good .. [[ it("fails <&>", function() assert.is_true(false) end)]])
    local tap = test(path .. " --format tap", 1)
    assert.matches("^TAP version 13\n1%.%.3\nok 1 %- hall interleaves nothing on few GPUs\nok 2 [^\n]+\nnot ok 3 %- hall fails <&>\n# ", tap)
    local junit = test(path .. " --format junit", 1)
    assert.matches('<testsuite name="pipeplan policy test" tests="3" failures="1" errors="0" skipped="0"', junit)
    assert.matches('name="hall fails &lt;&amp;&gt;"', junit)
    local data = json.decode((test(path .. " --format json", 1)))
    assert.equal(3, #data.tests)
    assert.equal("failed", data.tests[3].status)
    assert.same({ covered = 3, all = 4 }, { covered = data.coverage.covered, all = data.coverage.all })
  end)
end)
