-- SPDX-License-Identifier: Apache-2.0
-- plan --jsonl --shard K/N: N processes read the same specs and plan a share each; a line of each in turn is what one process writes, to the
-- byte, errors with the number of their line in all of the input.

local files = require "policy_files"
local program = require "program"

local cjson = require "cjson"

teardown(files.remove)

local function spec(number, more)
  local object = { cluster = { gpus = 8, accelerator = "H100-SXM" }, training = { tokens = "1T" }, run = "run " .. number,
                   model = { architecture = "dense", total = 7 + number % 5 .. "B", layers = 32 } }
  for name, value in pairs(more or {}) do object[name] = value end
  return cjson.encode(object)
end

-- Nine specs in fourteen lines: blank ones, one that is no JSON, one with a field that there is not.
local input = table.concat({ spec(1), "", spec(2), spec(3, { colour = "red" }), "  ", spec(4), "{", spec(5), spec(6), "\r", spec(7), "", "",
                             spec(8) }, "\n") .. "\n"

local function run(arguments) return program.run("plan --jsonl --date 2026-12-01 " .. arguments, input) end

local function lines_of(text)
  local list = {}
  for line in text:gmatch "([^\n]*)\n" do list[#list + 1] = line end
  return list
end

describe("plan --jsonl --shard", function()
  local one = run ""

  for _, shards in ipairs { 1, 2, 3, 4, 20 } do
    it("deals specs to " .. shards .. ", and a line of each in turn is what one process writes", function()
      local parts, merged = {}, {}
      for i = 1, shards do
        local part = run("--jobs 2 --shard " .. i .. "/" .. shards)
        assert.is_true(part.status == 2 or part.status == 1 or part.status == 0, part.stderr)
        parts[i] = lines_of(part.stdout)
      end
      for row = 1, #parts[1] do
        for i = 1, shards do merged[#merged + 1] = parts[i][row] end
      end
      assert.equal(one.stdout, table.concat(merged, "\n") .. "\n")
    end)
  end

  it("ends with 0 for a share of nothing, and with 5 where nobody has a spec", function()
    assert.same({ status = 0, stdout = "", stderr = "" }, run "--shard 20/20")
    assert.equal(5, program.run("plan --jsonl --shard 1/2", "\n\n").status)
  end)

  it("goes on with the output of a shard that was cut", function()
    local whole = run "--shard 2/4"
    local cut = files.write("cut.jsonl", whole.stdout:sub(1, 2 * #whole.stdout // 3))
    assert.equal(whole.stdout, run("--shard 2/4 -o " .. cut .. " --resume " .. cut).stdout .. io.open(cut):read "a")
  end)

  it("refuses what is no shard", function()
    for _, word in ipairs { "0/4", "5/4", "1", "1/0", "-1/4", "a/b", "1/4/2", "1.5/4", "99999999999999999999/4" } do
      local got = run("--shard=" .. word)
      assert.equal(2, got.status)
      assert.equal("", got.stdout)
      assert.matches("--shard must be K/N, such as 1/4 to 4/4, got '" .. word .. "'", got.stderr, 1, true)
    end
    assert.matches("--shard is for --jsonl", program.run("plan examples/specs/deepseek-v3.json --shard 1/2").stderr, 1, true)
  end)
end)

describe("the name of a run", function()
  it("stands in its answer, a plan or an error", function()
    local names = {}
    for i, line in ipairs(lines_of(run("").stdout)) do
      local answer = cjson.decode(line)
      names[i] = answer.error and { answer.error.line, answer.error.run } or answer.spec.run
    end
    assert.same({ "run 1", "run 2", { 4, "run 3" }, "run 4", { 7 }, "run 5", "run 6", "run 7", "run 8" }, names)
  end)

  it("is null where a spec gives none", function()
    local got = program.run("plan --jsonl", spec(1, { run = cjson.null }) .. "\n" .. (spec(1):gsub('"run":"run 1",?', ""):gsub(",}", "}")) .. "\n")
    local lines = lines_of(got.stdout)
    assert.equal(cjson.null, cjson.decode(lines[2]).spec.run)
  end)
end)
