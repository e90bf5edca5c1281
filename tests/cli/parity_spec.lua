-- SPDX-License-Identifier: Apache-2.0
-- The program and the module are one planner: the same bytes for the same spec, policies and date.

local pipeplan = require "pipeplan"

local engine = require "engine"
local json = require "pipeplan.base.json"
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

-- Their search looks at tens of thousands of candidates, each of which a site's rule about days or hours has simulated: they are planned by the
-- default policy alone.
local wide = { ["kimi-k2"] = true, ["qwen3-235b"] = true, does_not_fit = true }

describe("the program and the module give the same bytes for", function()
  local site = pipeplan.policy(nil, { date = date, frontier = true })
  local specs = specs_below("examples/specs", {})

  it("every shipped spec, planned one after another with one policy", function()
    assert.is_true(#specs > 10)
    for _, path in ipairs(specs) do
      local expected, actual = by_program(path), by_module(site, path)
      assert.is_true(expected == actual, path .. ": the plans differ")
    end
  end)

  local sites = engine.host.directory "examples/sites"
  table.sort(sites)
  for place, name in ipairs(sites) do
    local file = name:match "^(.*)%.lua$"
    if file and not file:match "_spec$" then
      it("every fourth shipped spec, one a line, under the policy of " .. file, function()  -- other ones under the next site's
        local path = "examples/sites/" .. name
        local policy, corpus = pipeplan.policy(path, { date = date }), {}
        local expected, names = {}, {}
        for i = 1 + place % 4, #specs, 4 do
          local spec = specs[i]
          if wide[spec:match "([^/]*)%.json$"] then goto continue end
          names[#names + 1] = spec
          local object = json.read(spec)
          for _, field in ipairs { "model", "profile" } do  -- paths as seen from here
            if type(object[field]) == "string" then object[field] = spec:match "^(.*/)" .. object[field] end
          end
          corpus[#corpus + 1] = json.encode(object)
          expected[#expected + 1] = json.encode(json.shape(policy:plan_spec(object), schema))
          ::continue::
        end
        local result = program.run("plan --jsonl --date " .. date .. " --policy " .. path, table.concat(corpus, "\n") .. "\n")
        assert.equal("", result.stderr)
        local i = 0
        for line in result.stdout:gmatch "([^\n]*)\n" do
          i = i + 1
          assert.is_true(line == expected[i], (names[i] or "one too many") .. ": the plans differ")
        end
        assert.equal(#names, i)
        assert.is_true(i > 1)
      end)
    end
  end

  it("a policy of a site, and parameters set over it", function()
    local policy = pipeplan.policy("examples/sites/aws-p5.lua", { date = date, frontier = true, set = { tie_fraction = "2%" } })
    local path = "examples/specs/qwen3-235b.json"
    assert.equal(by_program(path, "--policy examples/sites/aws-p5.lua --set tie_fraction=2%"), by_module(policy, path))
  end)
end)
