-- SPDX-License-Identifier: Apache-2.0
-- `--format html`: pages for a browser. What can be seen in their text is tested here; what only a browser shows by check_page.mjs, where
-- Chromium and Node are installed.

require "pipeplan"
local json = require "pipeplan.base.json"
local monitoring = require "monitoring"
local program = require "program"

local deepseek = "plan examples/specs/deepseek-v3.json --date 2026-12-01"

local function page(arguments, status)
  local result = program.run(arguments .. " --format html")
  assert.equal(status or 0, result.status, result.stderr)
  return result.stdout
end

local function decoded(arguments)
  return json.decode(program.run(arguments .. " --format json").stdout, "plan")
end

local function kept(text)
  local name = os.tmpname()
  local file <close> = assert(io.open(name, "wb"))
  file:write(text)
  return name
end

-- What Python's own parser says of a page: its elements close in order, and nothing is fetched.
local function checked(text)
  local name = kept(text)
  local pipe = assert(io.popen(string.format("env -u LD_PRELOAD python3 '%s/tests/cli/check_page.py' '%s' 2>&1", os.getenv "PIPEPLAN_SOURCE", name)))
  local said = pipe:read "a"
  pipe:close()
  os.remove(name)
  return said
end

local function says(text, ...)
  for _, words in ipairs { ... } do assert.is_truthy(text:find(words, 1, true), "not there: " .. words) end
end

describe("plan --format html", function()
  local text, plan = page(deepseek), decoded(deepseek .. " --explain")

  it("is one file, sound, that fetches nothing", function()
    assert.equal("", checked(text))
    says(text, "default-src &apos;none&apos;")
  end)

  it("is the same to the byte each time", function()
    assert.equal(text, page(deepseek))
  end)

  it("says what the JSON says", function()
    says(text, "<b>DualPipe</b>", "<b>16</b> pipeline ranks", string.format("<b>%.0f days</b>", plan.training_days),
         string.format("<b>%.2f M GPU-hours</b>", plan.gpu_hours / 1e6), "few_<wbr>microbatches", plan.policy.digest, plan.spec.digest,
         "decision_<wbr>table.<wbr>lua:", "All 2,418 actions of the 16 ranks are drawn")
    assert.equal(plan.explanation.phases.actions, 2418)
    for _, change in ipairs(plan.explanation.changes) do says(text, change.words) end
  end)

  it("has a form of its own where nothing is planned", function()
    local refused = page("plan examples/specs/7b-fits-one-gpu.json --date 2026-12-01", 1)
    assert.equal("", checked(refused))
    says(refused, "as asked, is rejected", "fits_<wbr>one_<wbr>gpu", ">Instead<", "no pipeline", "What would be planned", "hard_<wbr>rejects.<wbr>lua:")
    assert.is_nil(refused:find('id="plot"', 1, true))
  end)

  it("escapes what comes from elsewhere", function()
    local name = kept [[{"cluster": {"gpus": 64, "accelerator": "H100-SXM", "network": {"fabric": "infiniband", "per_gpu": "400Gbps"}},
      "model": {"name": "</title><script>alert(1)</script><img src=x onerror=alert(2)>\" ' &", "architecture": "dense", "total": 7e9,
                "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 32, "ffn": 11008, "vocab": 32000},
      "training": {"tokens": "1T", "global_batch_size": 1024}, "parallelism": {"pipeline": 4}, "run": "<b>x</b>"}]]
    local result = program.run("plan " .. name .. " --date 2026-12-01 --format html")
    os.remove(name)
    assert.is_true(result.status <= 1, result.stderr)
    assert.equal("", checked(result.stdout))
    assert.is_nil(result.stdout:find("<script>alert", 1, true))
    assert.is_nil(result.stdout:find("<img", 1, true))
    says(result.stdout, "&lt;/title&gt;&lt;script&gt;alert(1)")
  end)
end)

describe("what the plan says for its page", function()
  local plan = decoded(deepseek .. " --explain")

  it("has phases that make up the pipeline's seconds", function()
    for _, found in ipairs { plan, decoded "plan examples/specs/llama-3.1-405b.json --date 2026-12-01 --explain" } do
      local phases = found.explanation.phases
      local sum = phases.warm_up_seconds + phases.steady_seconds + phases.cool_down_seconds
      assert.near(found.step.pipeline_seconds, sum, 1e-9 * sum)
    end
  end)

  it("has of a change what planning it again says", function()
    local change = plan.explanation.changes[1]
    assert.equal("cluster.network.per_gpu", change.field)
    local again = decoded(deepseek .. " --per_gpu 200Gbps")
    assert.near(again.step_seconds, change.step_seconds, 1e-9 * again.step_seconds)
    assert.near(again.gpu_hours, change.gpu_hours, 1e-9 * again.gpu_hours)
  end)

  it("calls a tie what is closer than 5 %", function()
    for _, other in ipairs(plan.alternatives) do
      assert.near(other.step_seconds / plan.step_seconds - 1, other.slower_fraction, 1e-12)
      assert.equal(math.abs(other.slower_fraction) < 0.05, other.tie)
    end
  end)

  it("has the money where the spec has a price", function()
    local paid = decoded(deepseek .. " --price_per_gpu_hour 2")
    assert.equal(2, paid.cluster.price_per_gpu_hour)
    assert.near(2 * paid.gpu_hours_saved[1].total, paid.gpu_hours_saved[1].cost, 1)
    assert.equal(json.null, plan.gpu_hours_saved[1].cost)
  end)

  it("has a digest of the spec: the same wherever a field stands, another for another value", function()
    local function digest(more) return decoded(deepseek .. more).spec.digest end
    assert.equal(plan.spec.digest, digest " --gpus 2048")
    assert.not_equal(plan.spec.digest, digest " --tokens 14.9T")
  end)

  it("has the mean step at which to roll back", function()
    assert.near(plan.ideal_step_seconds / plan.rollback.threshold_fraction, plan.rollback.threshold_seconds, 1e-9)
  end)
end)

describe("simulate --format html", function()
  it("draws 6,000 actions in 300 kB, and leaves none out", function()
    local text = page "simulate 1f1b --ranks 30 --microbatches 100"
    says(text, "All 6,000 actions of the 30 ranks are drawn, none merged and none left out")
    assert.is_true(#text < 300000, #text .. " bytes")
    assert.equal("", checked(text))
  end)

  it("says what it shows only as an overview of more", function()
    local text = page "simulate interleaved_1f1b --ranks 64 --microbatches 512"
    local shown, all = text:match "([%d,]+) of ([%d,]+) actions are drawn one by one"
    assert.equal("131,072", all)   -- F and B of 64 ranks, 2 chunks, 512 microbatches
    assert.is_true(tonumber((shown:gsub(",", ""))) <= 6000)
    assert.is_true(#text < 300000, #text .. " bytes")
  end)

  it("shows one of no length too", function()
    says(page "simulate 1f1b --ranks 2 --microbatches 2 --times 0,0,0", "Nothing takes any time")
  end)
end)

describe("monitor --format html", function()
  it("says the verdict and shows it on the scale of the plan", function()
    local name = kept(program.run(deepseek .. " --format json").stdout)
    local kept_run = page("monitor " .. name .. " examples/monitor/healthy.log")
    says(kept_run, "<b>Keep the plan</b>", "Utilisation: the plan predicts")
    local slow = page("monitor " .. name .. " examples/monitor/straggler.log", 1)
    says(slow, "<b>Find the fault</b>", "below the threshold")
    assert.equal("", checked(kept_run) .. checked(slow))
    os.remove(name)
  end)

  it("prints 24 ranks on paper, and says so where there are more", function()
    local function counters(ranks)
      local lines = { "#Entity   GRACT        SMACT        TENSO        DRAMA        ", "ID                                                             " }
      for rank = 0, ranks - 1 do lines[#lines + 1] = string.format("GPU %d     0.986        0.558        0.%d        0.345        ", rank, 300 + rank) end
      return kept(table.concat(lines, "\n") .. "\n")
    end
    local log = kept(monitoring.megatron(11, 27) .. monitoring.megatron(12, 27))
    for ranks, shown in pairs { [24] = false, [25] = true } do
      local idle = {}
      for rank = 1, ranks do idle[rank] = 3 end
      local plan = kept(monitoring.plan { ["parallelism.pipeline"] = ranks, ["parallelism.data"] = 1, ["bubble.idle_per_rank_seconds"] = idle })
      local path = counters(ranks)
      local text = page("monitor " .. plan .. " " .. log .. " " .. path .. " --min-steps 2")
      says(text, "Ranks, measured against planned")
      assert.equal(shown, text:find("On paper the first 24 ranks.", 1, true) ~= nil)
      for _, each in ipairs { plan, path } do os.remove(each) end
    end
    os.remove(log)
  end)

  -- A damaged plan, or the log of another run: the scale had a mark for every 10 %, and ended with the memory.
  it("ends its scale where no run can be, however far out one is", function()
    local plan = monitoring.plan { ideal_step_seconds = 8e8, step_seconds = 9e8 }
    local name, log = kept(plan), kept(monitoring.megatron(11, 1) .. monitoring.megatron(12, 1))
    local far = page("monitor " .. name .. " " .. log)
    assert.is_true(#far < 50000, #far .. " bytes")
    says(far, ">200 %<", "measured 1")
    assert.equal("", checked(far))
    os.remove(name)
    os.remove(log)
  end)
end)

describe("in a browser", function()
  local function has(command) return os.execute("env -u LD_PRELOAD " .. command .. " >/dev/null 2>&1") end

  it("has no console error, fits 360, 768 and 1280 px, and one sheet of A4", function()
    if not has "chromium --version" then return pending "no chromium: pages are not looked at in a browser" end
    if not has "node --experimental-websocket -e 'new WebSocket'" and not has "node --experimental-websocket -e WebSocket" then
      return pending "no node with WebSocket (20 or newer): pages are not looked at in a browser"
    end
    local folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    local names = {}
    local function add(name, text)
      local file <close> = assert(io.open(folder .. "/" .. name .. ".html", "wb"))
      file:write(text)
      names[#names + 1] = folder .. "/" .. name .. ".html"
    end
    add("planned", page(deepseek))
    add("rejected", page("plan examples/specs/7b-fits-one-gpu.json --date 2026-12-01", 1))
    add("simulated", page "simulate interleaved_1f1b --ranks 64 --microbatches 512")
    local pipe = io.popen(string.format("env -u LD_PRELOAD NODE_NO_WARNINGS=1 node --experimental-websocket '%s/tests/cli/check_page.mjs' %s 2>&1",
                                        os.getenv "PIPEPLAN_SOURCE", table.concat(names, " ")))
    local said = pipe:read "a"
    pipe:close()
    os.execute("rm -r " .. folder)
    assert.equal("", said)
  end)
end)
