-- SPDX-License-Identifier: Apache-2.0
-- Damaged files of measurements: whatever they hold, the answer is a request or a usage failure, never an error of ours.

require "pipeplan"
local failure = require "pipeplan.base.failure"
local files = require "policy_files"
local planning = require "planning"
local simulate = require "pipeplan.cli.simulate"
local spec = require "pipeplan.input.spec"

local read = require "read_file"

local random
do  -- a generator of our own: the same cases on every machine
  local state = 12345
  function random(low, high)
    state = (state * 1103515245 + 12345) % 2 ^ 31 | 0
    return low + state // 65536 % (high - low + 1)
  end
end

-- A byte changed, an end cut off, a piece left out or doubled.
local function damage(text)
  for _ = 1, random(1, 5) do
    local from = random(1, #text)
    local to, how = math.min(#text, from + random(0, 60)), random(1, 5)
    if how == 1 then text = text:sub(1, from - 1) .. string.char(random(0, 255)) .. text:sub(from + 1)
    elseif how == 2 then text = text:sub(1, from)
    elseif how == 3 then text = text:sub(from)
    elseif how == 4 then text = text:sub(1, from - 1) .. text:sub(to + 1)
    else text = text:sub(1, to) .. text:sub(from, to) .. text:sub(to + 1) end
    if text == "" then return " " end
  end
  return text
end

local values = { "0", "-1", "1e300", "1e-300", "null", '"x"', "[]", "{}", "true", "1e18", "0.5", "1000000" }

-- Some numbers of a JSON text become something else.
local function other_numbers(text)
  for _ = 1, random(1, 3) do
    local places = {}
    for from, to in text:gmatch "()%d+%.?%d*()" do places[#places + 1] = { from, to } end
    local place = places[random(1, #places)]
    text = text:sub(1, place[1] - 1) .. values[random(1, #values)] .. text:sub(place[2])
  end
  return text
end

local function attempt(what, text)
  local good, problem = pcall(what)
  if not good and not failure.is(problem) then error(tostring(problem) .. "\nof " .. text:sub(1, 400), 0) end
end

describe("a damaged file of", function()
  for _, name in ipairs { "topo-4xH100", "all_reduce-4xH100", "sendrecv-4xH100" } do
    it(name .. " is read or refused", function()
      local text = read("tests/data/measured/" .. name .. ".txt")
      for _ = 1, 150 do
        local broken = damage(text)
        local path = files.write("measured.txt", broken)
        attempt(function()
          spec.from_table(planning.merge(planning.llama, { cluster = { network = { measured = path } } }), ".")
        end, broken)
      end
    end)
  end

  it("a profile is planned and simulated with, or refused", function()
    local text = read "examples/profiles/4xH200.json"
    local shipped = require("cjson").decode(read "examples/specs/measured-4xH200.json")
    local anyway = require("pipeplan").policy("examples/sites/pipeline-anyway.lua", { date = "2026-11-27" })
    for _ = 1, 150 do
      local broken = other_numbers(text)
      local path = files.write("profile.json", broken)
      attempt(function() anyway:plan_spec(planning.merge(shipped, { profile = path }), ".") end, broken)
      attempt(function() simulate.run { "1f1b", "--ranks", "4", "--microbatches", "8", "--format", "json", "--profile", path } end, broken)
    end
  end)
end)
