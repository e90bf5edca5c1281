-- SPDX-License-Identifier: Apache-2.0
-- Why another choice is not the plan: named candidate, rule or step, and by how much. Figures are read from the answer's own candidate.

require "pipeplan"
local files = require "policy_files"
local explain = require "pipeplan.plan.explain"
local planner = require "pipeplan.plan.init"
local load = require("pipeplan.policy.load").load
local policy = load { date = "2026-11-27" }
local spec = require "pipeplan.input.spec"

-- The answer of the plan of a shipped spec, with more options.
local function ask(name, question, options, other_policy)
  local request = spec.read { files = { "examples/specs/" .. name .. ".json" }, options = options or {} }
  local plan = planner.plan { request = request, policy = other_policy or policy, why = explain.questions(question) }
  return plan.explanation.answers[1], plan
end

local function refused(question)
  local good, problem = pcall(explain.questions, question)
  assert.is_false(good)
  assert.equal(2, problem.status)
  return problem.message
end

describe("a choice that lost", function()
  it("is named as a whole layout, with what it takes and what takes it out", function()
    local answer, plan = ask("deepseek-v3", "pipeline=8")
    assert.equal("lost", answer.verdict)
    assert.equal(8, answer.candidate.parallelism.pipeline)
    assert.equal("dualpipev", answer.candidate.schedule)
    assert.matches("its best, DualPipeV at P 8, M 60, TP 1, EP 64, DP 256, takes ", answer.answer, 1, true)
    assert.matches("row moe_with_ep takes DualPipe first", answer.answer, 1, true)
    assert.is_true(answer.candidate.step_seconds < 1.25 * plan.step_seconds)
  end)

  it("says why the wanted schedule is not there, with the bytes that are missing and their rank", function()
    local answer = ask("deepseek-v3", "pipeline=8")
    assert.matches("DualPipe at P 8, .* is dropped by replication_does_not_fit: rank 1 takes %S+ GiB of 73.3 GiB usable with two copies of its "
      .. "stages, %S+ GiB with one, %S+ GiB too much", answer.answer)
  end)

  it("on step time is told by how much", function()
    local answer, plan = ask("qwen3-235b", "tensor=4")
    assert.equal("lost", answer.verdict)
    assert.same({ "time" }, answer.candidate.why_not)
    local percent = (answer.candidate.step_seconds / plan.step_seconds - 1) * 100
    assert.matches(string.format("%.1f %% slower than the plan's", percent), answer.answer, 1, true)
  end)

  it("to a preference is told which, with its conditions", function()
    local any = load { files = { "tests/fixtures/any_speed.lua" }, date = "2026-11-27" }
    local answer = ask("qwen3-235b", "expert=1", {}, any)
    assert.same({ "expert_parallel_for_moe" }, answer.candidate.why_not)
    assert.matches("the preference expert_parallel_for_moe (architecture = moe, expert_parallel over 1) keeps others", answer.answer, 1, true)
  end)

  it("because no row lists its schedule is told what the row lists", function()
    local answer = ask("llama-3.1-405b", "schedule=looped_bfs")
    assert.same({ "wanted" }, answer.candidate.why_not)
    assert.matches("row dense_large lists only DualPipeV, Zero Bubble, interleaved 1F1B, 1F1B", answer.answer, 1, true)
  end)

  it("is told that an invariant would reject it, too", function()
    local text = [[invariant { id = "narrow", status = "planned", tensor_parallel = over(2), message = "TP {tensor_parallel}" }]]
    local narrow = load { files = { files.write("site.lua", text) }, date = "2026-11-27" }
    local answer = ask("qwen3-235b", "tensor=4", {}, narrow)
    assert.equal("lost", answer.verdict)
    assert.same({ "time", "narrow" }, answer.candidate.why_not)
    assert.matches("slower than the plan's.* It would be rejected by narrow: TP 4 %(an invariant", answer.answer)
    assert.same({ "time" }, ask("qwen3-235b", "expert=8", {}, narrow).candidate.why_not)
  end)

  it("because the plan needs a pipeline is compared all the same", function()
    local answer, plan = ask("qwen3-235b", "pipeline=1")
    assert.equal("lost", answer.verdict)
    assert.is_true(answer.candidate.step_seconds > plan.step_seconds)
    assert.matches("no pipeline is the plan only where the spec fixes pipeline 1", answer.answer, 1, true)
  end)
end)

describe("a choice that was dropped", function()
  it("tells every rule with its message, and the bytes where they are too many as well", function()
    local answer = ask("deepseek-v3", "schedule=zb_v", { framework = "deepseek-dualpipe" })
    assert.equal("dropped", answer.verdict)
    assert.same({ "not_in_framework", "does_not_fit" }, answer.candidate.why_not)
    assert.matches("DeepSeek DualPipe package does not run ZB-V; does_not_fit: rank 15 takes ", answer.answer, 1, true)
    assert.equal(16, answer.candidate.parallelism.pipeline)  -- at the plan's layout, for it has one there
  end)

  it("of a family is told for the member that comes nearest", function()
    assert.equal("zb_v", (ask("deepseek-v3", "schedule=zero_bubble")).candidate.schedule)
  end)

  it("says what would be legal", function()
    local answer = ask("llama-3.1-405b", "schedule=dualpipe")
    assert.matches("(legal: expert_parallel 2)", answer.answer, 1, true)
    assert.matches("M is 16, P 16", answer.answer, 1, true)
  end)
end)

describe("a choice that the spec rules out", function()
  it("is told so, with the plan that it would lead to", function()
    local answer, plan = ask("deepseek-v3", "tensor=2")
    assert.equal("fixed", answer.verdict)
    local _, other = ask("deepseek-v3", "tensor=2", { tensor = "2" })
    local at = other.parallelism
    assert.equal(2048, at.pipeline * 2 * at.data)
    assert.matches(string.format("^the spec fixes tensor to 1. With tensor 2 the plan would be DualPipe at P %d, M %d, TP 2, EP 64, ETP 1, DP %d: ",
                                 at.pipeline, 15360 // at.data, at.data), answer.answer)
    assert.equal(other.step_seconds, answer.candidate.step_seconds)
    assert.equal("deepseek-v3", plan.model.name)
  end)

  it("is told why there would be no plan", function()
    local answer = ask("rules/too_few_microbatches", "pipeline=4")
    assert.matches("With pipeline 4 the run would be rejected by too_few_microbatches: ", answer.answer, 1, true)
    assert.matches("EP 512 does not divide the 256 experts", ask("deepseek-v3", "expert=512").answer, 1, true)
  end)

  it("is told about kernels without another plan", function()
    assert.equal("the spec fixes alltoall_kernel to deepep", ask("deepseek-v3", "alltoall_kernel=uccl_ep").answer)
  end)
end)

describe("a value that no candidate has", function()
  it("is told with what it has to satisfy, and its neighbours", function()
    local answer = ask("deepseek-v3", "pipeline=7")
    assert.equal("none", answer.verdict)
    assert.matches("P × TP × CP has to divide the GPUs.*; the nearest are 4 and 8$", answer.answer)
    assert.is_nil(answer.candidate)
  end)
end)

describe("the plan's own value", function()
  it("is told to be the plan's", function()
    assert.equal("it is the plan's: DualPipe at P 16, M 120, TP 1, EP 64, DP 128", ask("deepseek-v3", "parallelism.pipeline=16").answer)
  end)
end)

describe("questions", function()
  it("that are none are answered before anything is planned", function()
    assert.matches("no field 'pipelin' of a candidate, did you mean 'pipeline'?", refused "pipelin=8", 1, true)
    assert.matches("the spec states it; plan with --gpus and compare", refused "gpus=8", 1, true)
    assert.matches("expected one of tensor, context", refused "step_seconds=8", 1, true)
    assert.matches("did you mean 'zb_v'?", refused "schedule=zbv", 1, true)
    assert.matches("did you mean 'deepep'?", refused "alltoall_kernel=deepeep", 1, true)
    for _, value in ipairs { "0", "-4", "2.5", "deep", "1e400", "nan" } do
      assert.matches("pipeline=" .. value:gsub("%p", "%%%0") .. ": expected a whole number from 1 to 10000000", refused("pipeline=" .. value))
    end
    assert.matches("is not field=value", refused "pipeline")
  end)

  it("take hyphens, paths and short names alike", function()
    assert.same(explain.questions "expert_tensor=2", { { field = "expert_tensor", value = 2 } })
    assert.equal("none", ask("qwen3-235b", "expert-tensor-parallel=7").verdict)
    assert.equal("none", ask("qwen3-235b", "parallelism.expert_tensor=7").verdict)
  end)
end)

describe("any question", function()
  local values = {
    tensor = { 1, 3, 8 }, context = { 1, 2 }, expert = { 1, 7, 64 }, expert_tensor = { 1, 2 }, data = { 1, 64 }, pipeline = { 1, 7, 16, 96 },
    virtual = { 1, 2, 9 }, microbatches = { 1, 33, 120 }, schedule = { "none", "gpipe", "interleaved_1f1b", "zero_bubble", "dualpipe" },
    schedule_family = { "none", "zero_bubble" }, alltoall_kernel = { "false", "deepep" },
  }
  local list = {}
  for field, each in pairs(values) do
    for _, value in ipairs(each) do list[#list + 1] = field .. "=" .. value end
  end
  table.sort(list)

  for _, name in ipairs { "mixtral-8x7b", "deepseek-v3-ramp", "7b-fits-one-gpu", "rules/too_deep", "rules/does_not_fit" } do
    it("has a whole answer for " .. name, function()
      local request = spec.read { files = { "examples/specs/" .. name .. ".json" } }
      local plan = planner.plan { request = request, policy = policy, why = explain.questions(table.concat(list, ",")) }
      assert.equal(#list, #plan.explanation.answers)
      for _, answer in ipairs(plan.explanation.answers) do
        assert.is_true(#answer.answer > 10, answer.question)
        assert.is_nil(answer.answer:find("nil", 1, true) or answer.answer:find("%s$") or answer.answer:find("  ", 1, true), answer.answer)
      end
    end)
  end
end)

describe("the steps to a plan", function()
  local function decided(name)
    local request = spec.read { files = { "examples/specs/" .. name .. ".json" } }
    local plan = planner.plan { request = request, policy = policy, explain = true }
    return plan.explanation, plan
  end

  it("end with what decided between the last candidates", function()
    local steps = decided("llama-3.1-405b").decided
    assert.matches("^time: 3 of %d+ stay, within 1 %% of the fastest, ", steps[#steps - 1])
    assert.matches("^order: of 3 equals the smaller V stays; next is interleaved 1F1B at P 16, V 5, ", steps[#steps])
  end)

  it("leave out what took nothing away, and tell the decision table always", function()
    local steps = table.concat(decided("deepseek-v3").decided, "\n")
    assert.is_nil(steps:find("expert_parallel_for_moe", 1, true))
    assert.matches("row moe_with_ep: DualPipe, which it takes first, is not slower", steps, 1, true)
  end)

  -- docs/policy.md: a row's own within stands in place of wanted_tolerance (5 %), and within any lets nothing be too slow
  it("tell a row's own within, and of within any that nothing is too slow", function()
    local function told(within)
      local path = files.write("row.lua", string.format([[row { id = "mine", gpus = over(1), within = "%s", try = { "1f1b", "zb_v" } }]], within))
      local plan = planner.plan {
        request = spec.read { files = { "examples/specs/mixtral-8x7b.json" } }, explain = true,
        policy = require("pipeplan.policy.load").load { files = { path }, date = "2026-12-01" },
        why = { { field = "schedule", value = "zb_v" } } }
      assert.equal("1f1b", plan.schedule)
      return table.concat(plan.explanation.decided, "\n"), plan.explanation.answers[1].answer
    end
    local steps, answer = told "40%"
    assert.matches("mine: 1F1B, which it takes first, is not slower than the fastest by more than the row's within 40 %", steps, 1, true)
    assert.matches("mine takes 1F1B first, others only where it has no plan or one slower by more than the row's within 40 %", answer, 1, true)
    steps, answer = told "any"
    assert.matches("mine: 1F1B, which it takes first, is taken whatever it costs", steps, 1, true)
    assert.is_nil(answer:find("wanted_tolerance", 1, true))
  end)

  it("stand beside the rules: the row that decides, those behind it, the kernel that is used", function()
    local because, explanation, plan = {}, decided "qwen3-235b"
    for _, rule in ipairs(explanation.rules) do because[rule.id] = rule.because end
    assert.equal("architecture = moe, expert_parallel over 1 (it is " .. plan.parallelism.expert .. "): decides", because.moe_with_ep)
    assert.matches("; moe_with_ep stands before it$", because.dense)
    assert.matches(": used$", because.deepep)
    assert.matches("; not used$", because.nccl_alltoall)
    assert.equal("not gpus under small_run_gpus (100): it is 256", because.small_run)
  end)
end)
