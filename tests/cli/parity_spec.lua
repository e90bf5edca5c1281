-- The program and the module are one planner: the same bytes for the same spec, policies and date.

local pipeplan = require "pipeplan"

local engine = require "engine"
local json = require "pipeplan.report.json"
local program = require "program"
local schema = require "pipeplan.schema.plan"

local date = "2026-11-27"

-- Every *.json at or below that directory, sorted. A name without a dot is a directory.
local function specs_below(directory, found)
  local names = engine.host.directory(directory)
  table.sort(names)
  for _, name in ipairs(names) do
    local path = directory .. "/" .. name
    if name:match("%.json$") then found[#found + 1] = path
    elseif not name:find(".", 1, true) then specs_below(path, found) end
  end
  return found
end

local function by_module(site, path)
  return json.encode(json.shape(site:plan { path }, schema), { indent = 2 }) .. "\n"
end

local function by_program(path, more)
  local result = program.run("plan --format json --date " .. date .. " " .. (more or "") .. " " .. path)
  assert.equal("", result.stderr)
  return result.stdout
end

describe("the program and the module give the same bytes for", function()
  local site = pipeplan.policy(nil, { date = date })
  local specs = specs_below("examples/specs", {})

  it("every shipped spec, planned one after another with one policy", function()
    assert.is_true(#specs > 10)
    for _, path in ipairs(specs) do
      local expected, actual = by_program(path), by_module(site, path)
      assert.is_true(expected == actual, path .. ": the plans differ")
    end
  end)

  it("a policy of a site, and parameters set over it", function()
    local policy = pipeplan.policy("examples/sites/aws-p5.lua", { date = date, set = { tie_fraction = "2%" } })
    local path = "examples/specs/qwen3-235b.json"
    assert.equal(by_program(path, "--policy examples/sites/aws-p5.lua --set tie_fraction=2%"), by_module(policy, path))
  end)
end)
