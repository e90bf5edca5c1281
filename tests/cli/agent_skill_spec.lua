-- SPDX-License-Identifier: Apache-2.0
-- examples/agent-skill/SKILL.md: each question's command runs, and what the page says is its answer is there; the answer that it shows as a
-- form is what the program says.

require "pipeplan"
local cjson = require "cjson"
local program = require "program"

local page
do
  local file <close> = assert(io.open "examples/agent-skill/SKILL.md")
  page = file:read "a"
end

-- What stands at "a.b" of a document.
local function at(document, path)
  for name in path:gmatch "[^.]+" do
    assert.is_table(document, path)
    document = document[name]
  end
  return document
end

local questions = {}
for question, command, answer in page:gmatch "\n| ([^|]+%?) | `pipeplan ([^`]+)` | ([^|]+) |" do
  questions[#questions + 1] = { question = question, command = command:gsub("\\|", "|"), answer = answer }
end

describe("the skill for assistants", function()
  for _, case in ipairs(questions) do
    it("has the answer to: " .. case.question, function()
      local first, second = case.command:match "^(.-) | pipeplan (.+)$"
      local result = program.run(first or case.command)
      if second then result = program.run(second, result.stdout) end
      assert.is_true(result.status <= 1, result.stderr)
      local document = cjson.decode(result.stdout)
      local count = 0
      for path in case.answer:gmatch "`([%w_.]+)`" do
        local value = at(document, path)
        assert.is_true(value ~= nil and value ~= cjson.null, path)
        count = count + 1
      end
      assert.is_true(count > 0)
    end)
  end

  it("has ten questions at least", function() assert.is_true(#questions >= 10) end)

  it("shows a form whose figures are the program's", function()
    local text = program.run("plan examples/specs/deepseek-v3.json --date 2026-12-01").stdout:gsub("%s+", " ")
    local form = page:match "\n> (%*%*DualPipe.-)\n\n":gsub("\n> ", " ")
    local count = 0
    for number in form:gsub("pipeplan [%d.]+", ""):gmatch "%d[%d,.]*%d" do
      assert.is_truthy(text:find(number, 1, true), number)
      count = count + 1
    end
    assert.is_true(count >= 10)
  end)

  it("names rules that there are", function()
    local count = 0
    for id, file, line in page:gmatch "`([%w_]+)` %((policies/default/[%w_]+%.lua):(%d+)%)" do
      local number, named = 0, nil
      for text in io.lines(file) do
        number = number + 1
        if number == tonumber(line) then named = text end
      end
      assert.is_not_nil(named, file .. " has no line " .. line)
      assert.matches('id = "' .. id .. '"', named, 1, true)
      count = count + 1
    end
    assert.is_true(count > 0)
  end)
end)
