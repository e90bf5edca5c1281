-- SPDX-License-Identifier: Apache-2.0
-- shipped_launches_spec.lua: what the examples and README plan, as a launch of each format: written and the same plan when it is read back, or
-- refused with the formats that can; and docs/frameworks.md says so. That the frameworks' own code takes these launches is for the tests of
-- tests/torch that the catalogue names (accepts.test). PIPEPLAN_DOCS=1 writes the table of docs/frameworks.md.

require "planning"  -- first: it loads the module
local cases = require "shipped_launches"
local files = require "policy_files"
local frameworks = require "pipeplan.catalog.frameworks"
local judge = require "launch_judge"
local launches = require "pipeplan.report.launch.formats"

teardown(files.remove)

-- What docs/frameworks.md says of the launch of a plan.
local function cell(each)
  local entry = frameworks.find(launches.framework[each.format])
  if not each.text then return "no" end
  if entry.unverified then return "unverified" end
  local parts = { "yes" }
  for what in each.text:gmatch "\n# Unverified: (.-), for [^\n]*" do parts[#parts + 1] = what end
  return #parts > 1 and "yes, but for " .. table.concat(parts, "; ", 2) or parts[1]
end

local function tables()
  local lines = { "| plan | `" .. table.concat(launches.names, "` | `") .. "` |", "| --- " .. ("| --- "):rep(#launches.names) .. "|" }
  local refused = {}
  for _, spec in ipairs(cases.list()) do
    local row = { spec.title }
    for _, each in ipairs(spec.launches) do
      row[#row + 1] = cell(each)
      if not each.text then
        local why = each.problem:gsub("^there is no plan: it is %w+: ", "")
        refused[#refused + 1] = string.format("- %s, `%s`: %s", spec.title, each.format, why)
      end
    end
    lines[#lines + 1] = "| " .. table.concat(row, " | ") .. " |"
  end
  lines[#lines + 1] = ""
  return table.concat(table.move(refused, 1, #refused, #lines + 1, lines), "\n")
end

local function page(name)
  local handle = assert(io.open(name))
  local text = handle:read "a"
  handle:close()
  return text
end

describe("launches of what is shipped", function()
  it("stand in docs/frameworks.md: written, unverified, or refused with who can", function()
    local before, said, behind = page("docs/frameworks.md"):match "^(.-<!%-%- launches %-%->\n)(.-)(\n<!%-%- end %-%->.*)$"
    local wanted = tables()
    if os.getenv "PIPEPLAN_DOCS" == "1" then
      local handle = assert(io.open("docs/frameworks.md", "w"))
      handle:write(before, wanted, behind)
      handle:close()
    end
    assert.equal(wanted, said)
  end)

  it("are accepted by the framework's own code, or marked unverified with the reason, in catalogue, docs and the file itself", function()
    local text = page "docs/frameworks.md"
    for _, name in ipairs(launches.names) do
      local entry = frameworks.find(launches.framework[name])
      assert.is_true((entry.accepts == nil) ~= (entry.unverified == nil), name)
      local what = {}
      for i, part in ipairs(entry.accepts and entry.accepts.except or {}) do what[i] = part.what .. ": " .. part.why end
      local row = entry.unverified and string.format("| `%s` | unverified: nobody was asked | all of it: %s |", name, entry.unverified)
                  or string.format("| `%s` | %s | %s |", name, entry.accepts.by, table.concat(what, "; "))
      assert.truthy(text:find(row, 1, true), row)
      if entry.accepts then assert.truthy(io.open("tests/torch/" .. entry.accepts.test), name) end
    end
    for _, spec in ipairs(cases.list()) do
      for _, each in ipairs(spec.launches) do
        local entry = frameworks.find(launches.framework[each.format])
        assert.equal(entry.unverified ~= nil, each.text ~= nil and each.text:find("# Unverified: " .. (entry.unverified or "?"), 1, true) ~= nil
                                              or each.text == nil and entry.unverified ~= nil, spec.title)
      end
    end
  end)

  it("name who can where a framework cannot", function()
    for _, spec in ipairs(cases.list()) do
      local can = {}
      for _, each in ipairs(spec.launches) do can[#can + 1] = each.text and each.format or nil end
      for _, each in ipairs(spec.launches) do
        if not each.text then
          local wanted = #can > 0 and "(" .. table.concat(can, ", ") .. " can)" or "(no other format can)"
          assert.equal(wanted, each.problem:match "%([%l, ]+ can%)$", spec.title .. " " .. each.format)
        end
      end
    end
  end)

  it("are, read back, without a finding, the plan, and planned as it was", function()
    local tried = 0
    for _, spec in ipairs(cases.list()) do
      for _, each in ipairs(spec.launches) do
        if each.text then
          tried = tried + 1
          local where = spec.title .. " " .. each.format .. "\n" .. each.text
          local found, differences, result = judge.judged(each.format, each.text, each.plan)
          assert.same({ {}, {} }, { found, differences }, where)
          if not spec.ramp then assert.same(judge.decision(each.plan), judge.decision(judge.imported(result, spec.object, spec.base)), where) end
        end
      end
    end
    assert.is_true(tried > 35, tried)
  end)
end)
