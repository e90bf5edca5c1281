-- SPDX-License-Identifier: Apache-2.0
-- `pipeplan plan A.json B.json --compare`: what two specs differ in, what is chosen, and what it takes, beside the error of the comparison.

require "pipeplan"
local accuracy = require "pipeplan.catalog.accuracy"
local files = require "policy_files"
local json = require "pipeplan.base.json"
local planning = require "planning"
local program = require "program"

teardown(files.remove)

local function spec(name, changes)
  local object = planning.merge(planning.merge(planning.llama, { model = os.getenv "PIPEPLAN_SOURCE" .. "/" .. planning.llama.model }), changes)
  return files.write(name, json.encode(object))
end

local function compare(arguments)
  local result = program.run("plan " .. arguments .. " --compare --date 2026-12-01 --format json")
  return json.decode(result.stdout ~= "" and result.stdout or "null", "comparison"), result
end

local function row(comparison, part, name)
  for _, entry in ipairs(comparison[part]) do
    if entry.field == name or entry.figure == name then return entry end
  end
end

local one = spec("one.json", { parallelism = { tensor = 8, pipeline = 8, schedule = "1f1b" } })

describe("plans side by side", function()
  -- docs/spec.md: padding "is computed, and trains nothing": with half of it a token takes twice the time, and the run too
  it("take the time of tokens that train", function()
    local padded = spec("padded.json", { parallelism = { tensor = 8, pipeline = 8, schedule = "1f1b" }, training = { padding = 0.5 } })
    local comparison = compare(one .. " " .. padded)
    assert.near(1, row(comparison, "takes", "step_seconds").ratios[2], 1e-9)
    for _, figure in ipairs { "seconds_per_million_tokens", "training_days" } do
      assert.near(2, row(comparison, "takes", figure).ratios[2], 1e-9)
    end
  end)

  it("have the figures of each by itself", function()
    local other = spec("other.json", { parallelism = { tensor = 8, pipeline = 4, schedule = "1f1b" }, cluster = { price_per_gpu_hour = 2 } })
    local comparison, result = compare(one .. " " .. other)
    assert.equal(0, result.status)
    assert.equal("urn:pipeplan:comparison:1", comparison["$schema"])
    for i, file in ipairs { one, other } do
      local plan = json.decode(program.run("plan " .. file .. " --date 2026-12-01 --format json").stdout, "plan")
      for _, figure in ipairs { "step_seconds", "gpu_hours", "training_days", "mfu_fraction", "cost" } do
        assert.same(plan[figure], row(comparison, "takes", figure).values[i])
      end
      assert.equal(plan.parallelism.pipeline, row(comparison, "choice", "pipeline").values[i])
    end
    assert.same({ 8, 4 }, row(comparison, "spec", "parallelism.pipeline").values)
    local step = row(comparison, "takes", "step_seconds")
    assert.near(step.values[2] / step.values[1], step.ratios[2], 1e-12)
    assert.same({ json.null, json.null }, { step.ratios[1], row(comparison, "takes", "cost").ratios[2] })
  end)

  -- by docs/accuracy.md, "Errors of comparisons"; of two jobs each is off by its own error: √2 × 20 %
  local errors = accuracy.comparisons
  for name, case in pairs {
    schedule = { { parallelism = { schedule = "zb_h1" } }, errors.schedule }, layout = { { parallelism = { tensor = 4 } }, errors.layout },
    recipe = { { training = { recompute = "full" } }, errors.layout, "layout" },
    pipeline = { { parallelism = { pipeline = 1, schedule = "none" }, training = { sharding = "parameters" } }, errors.pipeline },
    cluster = { { cluster = { gpus = 512 } }, math.sqrt(2) * accuracy.time_fraction, "estimates" },
    batch = { { training = { global_batch_size = 2048 } }, math.sqrt(2) * accuracy.time_fraction, "estimates" },
    framework = { { framework = "megatron" }, math.sqrt(2) * accuracy.time_fraction, "estimates" },
    nothing = { { run = "another" }, 0, "same" },
  } do
    it("know how far off they may be where the " .. name .. " differs", function()
      local other = spec(name .. ".json", planning.merge({ parallelism = { tensor = 8, pipeline = 8, schedule = "1f1b" } }, case[1]))
      local comparison, result = compare(one .. " " .. other)
      assert.equal(0, result.status, result.stderr)
      assert.equal(case[3] or name, comparison.plans[2].basis)
      local step = row(comparison, "takes", "step_seconds")
      assert.near(case[2], step.error_fractions[2], 1e-9)
      assert.equal(math.abs(step.ratios[2] - 1) <= case[2] + 1e-12, step.ties[2])
    end)
  end

  it("say what is refused, and end with the worst status", function()
    local refused = spec("refused.json", { training = { tokens = "999M" } })
    local comparison, result = compare(one .. " " .. refused)
    assert.equal(1, result.status)
    assert.same({ "planned", "refused" }, { comparison.plans[1].status, comparison.plans[2].status })
    assert.equal(json.null, row(comparison, "takes", "step_seconds").values[2])
    local text = program.run("plan " .. one .. " " .. refused .. " --compare --date 2026-12-01").stdout
    assert.matches("refused.json is refused: ", text, 1, true)
    assert.matches("\n  step  +%S+ s +–\n", text)
    assert.equal(1, select(2, compare(refused .. " " .. refused)).status)
    assert.equal(2, select(2, compare(one .. " /nowhere.json")).status)
  end)

  it("are a table with a tie that is called one", function()
    local text = program.run("plan " .. one .. " " .. spec("near.json", { parallelism = { tensor = 8, pipeline = 8, schedule = "zb_h1" } })
                             .. " " .. one .. " --compare --date 2026-12-01").stdout
    assert.matches(" ± 6 %%: a tie", text)
    assert.matches("another schedule at one layout", text, 1, true)
    assert.matches("the same plan", text, 1, true)
    for line in text:gmatch "[^\n]+" do assert.is_true(utf8.len(line) <= 120, line) end
  end)

  it("stand under as much of their paths as tells them apart", function()
    local folder = files.directory {}
    for _, name in ipairs { "first", "second" } do
      assert(os.execute(string.format("mkdir -p '%s/%s/run' && cp '%s' '%s/%s/run/spec.json'", folder, name, one, folder, name)))
    end
    local function heading(...)
      return program.run("plan " .. table.concat({ ... }, " ") .. " --compare --date 2026-12-01").stdout:match "^ +(%S.-)\n"
    end
    assert.matches("^one%.json +spec%.json$", heading(one, folder .. "/first/run/spec.json"))
    assert.matches("^first/run/spec%.json +second/run/spec%.json$", heading(folder .. "/first/run/spec.json", folder .. "/second/run/spec.json"))
    local same = heading(one, one)
    assert.equal(one .. "  " .. one, same)
  end)

  it("take two specs at least, and no other question beside them", function()
    for _, arguments in ipairs { "", one, one .. " " .. one .. " --explain", one .. " " .. one .. " --format csv",
                                 one .. " " .. one .. " --why pipeline=8", one .. " " .. one .. " --shortlist 4" } do
      local result = program.run("plan " .. arguments .. " --compare")
      assert.same({ 2, "" }, { result.status, result.stdout })
      assert.matches("^pipeplan: plan: %-%-compare ", result.stderr)
    end
  end)
end)
