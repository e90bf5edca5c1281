-- SPDX-License-Identifier: Apache-2.0
-- docs/accuracy.md is what tests/oracles/accuracy.lua prints, and what plans say of their errors is borne out by the same data.

local accuracy = require "oracles.accuracy"
local order = require "oracles.order"
local pairs_of = require "oracles.pairs"
local regret = require "oracles.regret"
local shipped = require "pipeplan.catalog.accuracy"

-- What can be told from the data at hand; nil without them.
local measured, why = accuracy.measure()

local function skips()
  if not measured then pending(why) end
  return not measured
end

-- Numbers of a text, and the text without them. Whole ones must agree; of others another compiler may round the last digit the other way.
local function parts(text)
  local numbers = {}
  local rest = text:gsub("%d+%.?%d*", function(number)
    numbers[#numbers + 1] = number
    return "#"
  end)
  return rest, numbers
end

local function agree(a, b)
  if a == b then return true end
  local digits = a:match "%.(%d+)"
  return digits ~= nil and b:find(".", 1, true) ~= nil and math.abs(tonumber(a) - tonumber(b)) <= 1.01 * 10 ^ -#digits
end

describe("docs/accuracy.md", function()
  it("is what the command prints", function()
    if skips() then return end
    local file = assert(io.open("docs/accuracy.md", "rb"))
    local there, told = parts(file:read "a")
    file:close()
    local now, found = parts(accuracy.text(measured))
    assert.equal(now, there)
    for i, number in ipairs(found) do
      assert.is_true(agree(number, told[i]), string.format("number %d is %s, and %s is printed", i, told[i], number))
    end
  end)
end)

describe("errors of comparisons that plans print", function()
  -- What is printed is nine of ten pairs, rounded up to a whole per cent.
  local function borne_out(list, kind)
    local most = pairs_of.summary(list).most
    assert.is_true(most <= shipped.comparisons[kind], string.format("%s: %.4f", kind, most))
    assert.is_true(most > shipped.comparisons[kind] - 0.01, string.format("%s: %.4f, it could be less", kind, most))
  end

  it("of schedules and of overlap are those of measured pairs", function()
    if skips() then return end
    borne_out(pairs_of.schedules(), "schedule")
    borne_out(pairs_of.overlaps(), "overlap")
  end)

  it("of layouts are those of the sweep of Megatron's kind", function()
    if skips() then return end
    local own = {}
    for _, one in ipairs(measured.judged) do if one.name:find "^hagemann" then own[#own + 1] = one end end
    local all, piped = pairs_of.layouts(own)
    borne_out(all, "layout")
    borne_out(piped, "pipeline")
  end)
end)

describe("the order of layouts", function()
  -- What has been reached: mean and worst regret, and Kendall's tau, of sweeps that nothing but what stands in sets.lua was chosen on.
  local reached = { hagemann = { 0.06, 0.25, 0.72 }, nanotron = { 0.01, 0.03, 0.62 }, bloom = { 0.03, 0.22, 0.72 } }

  it("is no worse than it was", function()
    if skips() then return end
    for _, sum in ipairs(order.families(measured.judged)) do
      local most = reached[sum.name]
      assert.is_true(sum.regret / sum.groups <= most[1], sum.name .. ": mean regret")
      assert.is_true(sum.worst <= most[2], sum.name .. ": worst regret")
      assert.is_true(sum.tau / sum.groups >= most[3], sum.name .. ": tau")
      assert.is_true(sum.false_fits <= 16 and sum.false_refusals <= 7, sum.name .. ": verdicts")
    end
  end)
end)

describe("what the search takes of a sweep", function()
  -- groups, those whose pick ran, mean and worst regret, picks that ran out of memory: as reached
  local reached = { hagemann = { 19, 16, 0.05, 0.25, 2 }, nanotron = { 8, 4, 0.01, 0.03, 0 }, bloom = { 13, 8, 0.04, 0.22, 0 } }

  it("is no worse than it was", function()
    if skips() then return end
    for _, sum in ipairs(regret.families(measured.searched)) do
      local most = reached[sum.name]
      assert.equal(most[1], sum.groups)
      assert.is_true(sum.ran >= most[2], sum.name .. ": picks that ran")
      assert.is_true(sum.regret / sum.ran <= most[3], sum.name .. ": mean regret")
      assert.is_true(sum.worst <= most[4], sum.name .. ": worst regret")
      assert.is_true(sum.oom <= most[5], sum.name .. ": picks out of memory")
    end
  end)
end)
