-- SPDX-License-Identifier: Apache-2.0
-- What the page in text says stands in HTML and in Markdown too, of the shipped specs and of each kind of outcome: a line word for word, or,
-- where HTML has a table or a picture for it, each of its numbers and names.

local planning = require "planning"  -- first: it loads the module
local html = require "pipeplan.report.html.init"
local markdown = require "pipeplan.report.markdown"
local page = require "pipeplan.report.page"
local planner = require "pipeplan.plan.init"
local spec = require "pipeplan.input.spec"

-- The text that a browser shows, in one line.
local function shown(text)
  text = text:gsub("<style>.-</style>", ""):gsub("<script>.-</script>", ""):gsub("<wbr>", ""):gsub("<[^>]*>", " ")
  text = text:gsub("&lt;", "<"):gsub("&gt;", ">"):gsub("&quot;", '"'):gsub("&apos;", "'"):gsub("&#39;", "'"):gsub("&amp;", "&")
  return (text:gsub("%s+", " "))
end

local function rendered(text)
  return (text:gsub("\\(%p)", "%1"):gsub("%s+", " "))
end

-- Words of a line with a digit or an underscore in them: "12.4", "15,360", "few_microbatches".
local function facts(line)
  local list = {}
  for word in line:gmatch "[%w.,_]*[%d_][%w.,_]*" do list[#list + 1] = (word:gsub("[.,]+$", "")) end
  return list
end

-- A number by itself, not as a part of another; in a table a share has one decimal.
local function known(fact, numbers, text)
  local value = tonumber(fact)
  if fact:find "^[%d.,]+$" then return numbers[fact] or value and numbers[string.format("%.1f", value)] end
  return text:find(fact, 1, true)
end

local function lines_of(section)
  local lines = table.move(section.lines or {}, 1, #(section.lines or {}), 1, {})
  for _, row in ipairs(section.rows or {}) do lines[#lines + 1] = table.concat(row, " ") end
  return lines
end

-- What of a plan's text is in neither form there.
local function missing(plan, text)
  local content, numbers, list = page.of(plan), {}, {}
  for number in text:gmatch "%d[%d.,]*" do numbers[(number:gsub("[.,]+$", ""))] = true end
  for _, sections in ipairs { content.sections, content.explanation or {} } do
    for _, section in ipairs(sections) do
      for _, line in ipairs(lines_of(section)) do
        if not text:find(line:gsub("%s+", " "), 1, true) then
          for _, fact in ipairs(facts(line)) do
            if not known(fact, numbers, text) then list[#list + 1] = string.format("%s: %s of: %s", section.label, fact, line) end
          end
        end
      end
    end
  end
  return list
end

-- Without what only an explanation has, which takes longer than the plan.
local nothing = { decided = {}, rules = {}, overridden = {}, changes = {}, figures = {}, answers = {}, spec = {} }

local function plan_of(files, options, how)
  local asked = spec.read { files = files, options = options or {} }
  local plan = planner.plan { request = asked, policy = planning.policy.policy, explain = how and how.explain, why = how and how.why }
  plan.explanation = plan.explanation or nothing
  return plan
end

local function holds(plan)
  assert.same({}, missing(plan, shown(html.plan(plan, nil, { "pipeplan", "plan" }))))
  assert.same({}, missing(plan, rendered(markdown.render(plan))))
end

describe("HTML and Markdown say what the text says", function()
  for _, name in ipairs { "deepseek-v3", "deepseek-v3-ramp", "llama-3.1-405b", "mixtral-8x7b", "measured-4xH200", "two-ranks-on-a-cpu",
                          "7b-fits-one-gpu", "rules/no_alltoall_kernel", "rules/too_few_microbatches", "rules/short_run", "rules/too_deep" } do
    it("of " .. name, function() holds(plan_of { "examples/specs/" .. name .. ".json" }) end)
  end

  it("of the fewest GPUs", function()
    local plan = plan_of({ "examples/specs/mixtral-8x7b.json" }, { gpus = "minimum" })
    assert.matches("GPUs are the fewest; not on", planning.page_of(plan), 1, true)
    holds(plan)
  end)

  it("of policies of the machine, found and left out", function()
    for _, name in ipairs { "deepseek-v3", "7b-fits-one-gpu" } do
      local plan = plan_of { "examples/specs/" .. name .. ".json" }
      plan.policy.found, plan.policy.left_out = { "/etc/pipeplan/first.lua" }, { "/etc/pipeplan/second.lua" }
      assert.matches("--no-site leaves out /etc/pipeplan/second.lua", planning.page_of(plan), 1, true)
      holds(plan)
    end
  end)

  it("of questions and of what explains", function()
    holds(plan_of({ "examples/specs/deepseek-v3.json" }, nil, { explain = true, why = { { field = "pipeline_parallel", value = 8 } } }))
    holds(plan_of({ "examples/specs/7b-fits-one-gpu.json" }, nil, { explain = true }))
  end)
end)
