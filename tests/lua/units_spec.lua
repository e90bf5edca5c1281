-- SPDX-License-Identifier: Apache-2.0
-- stdlib/base/units.lua: quantities with units, checked for their dimension.

require "pipeplan"
local units = require "pipeplan.base.units"

local function parses(expected, text, unit)
  local value, problem = units.parse(text, unit)
  assert.is_nil(problem)
  assert.equal(expected, value)
  assert.equal(math.type(expected), math.type(value))
end

local function refuses(text, unit, message)
  local value, problem = units.parse(text, unit)
  assert.is_nil(value)
  assert.equal(message, problem)
end

describe("a quantity", function()
  it("of tokens or parameters takes decimal and binary prefixes, exactly", function()
    parses(14800000000000, "14.8T", "token")
    parses(2000000000000, "2T tokens", "token")
    parses(469000000000, "469B", "token")
    parses(131072, "128Ki", "token")
    parses(16777216, "16Mi", "token")
    parses(671000000000, "671B", "1")
    parses(4096, "4096", "token")
    parses(1500, "1.5e3", "token")
    parses(2048, "2048 GPUs", "gpu")
    parses(0.5, "0.5", "1")
    parses(15360, " 15360 ", "sequence")
  end)

  it("of memory tells powers of 1000 from powers of 1024", function()
    parses(85899345920, "80GiB", "byte")
    parses(80000000000, "80 GB", "byte")
    parses(512, "512", "byte")
    parses(1099511627776, "1TiB", "byte")
  end)

  it("of a link is bits or bytes per second", function()
    parses(50000000000, "400Gbps", "byte/s")
    parses(50000000000, "400 Gb/s", "byte/s")
    parses(50000000000, "400Gbit/s", "byte/s")
    parses(160000000000, "160GB/s", "byte/s")
    parses(160000000000, "160GBps", "byte/s")
    parses(53687091200, "50GiB/s", "byte/s")
    parses(12500000, "100Mbps", "byte/s")
  end)

  it("of compute, of time and a share have their own suffixes", function()
    parses(989000000000000, "989T", "flop/s")
    parses(1979000000000000, "1.979 PFLOPS", "flop/s")
    parses(5e18, "5E", "flop/s")
    parses(0.00001, "10us", "second")
    parses(0.00001, "10µs", "second")
    parses(7200, "2h", "second")
    parses(120, "2min", "second")
    parses(172800, "2d", "second")
    parses(1.5, "1500ms", "second")
    parses(0.0000015, "1500ns", "second")
    parses(0.08, "8%", "fraction")
    parses(0.08, "0.08", "fraction")
    parses(1, "100%", "fraction")
  end)

  -- a fuzzer's: an exponent with more digits than an integer has, and one that is an integer by itself and none with its prefix
  it("is none, or as good as nothing, with any exponent beyond those of numbers", function()
    local nines = ("9"):rep(127)
    for _, text in ipairs { "1e" .. nines, "1e9223372036854775807", "1e9223372036854775807K" } do
      refuses(text, "token", ('expected a number of tokens such as "14.8T", got "%s"'):format(text))
    end
    for _, text in ipairs { "0e-" .. nines, "0e" .. nines, "7e-" .. nines .. "T", "7e-9223372036854775808" } do parses(0, text, "token") end
  end)

  it("may be a number that is already in the unit", function()
    parses(8, 8, "gpu")
    parses(8, 8.0, "gpu")
    parses(0.25, 0.25, "fraction")
  end)
end)

describe("what is no quantity", function()
  it("is refused with the unit that was expected and an example", function()
    refuses("ten trillion", "token", 'expected a number of tokens such as "14.8T", got "ten trillion"')
    refuses("", "gpu", 'expected a number of GPUs such as 2048, got ""')
    refuses("T", "token", 'expected a number of tokens such as "14.8T", got "T"')
    refuses("0x10", "gpu", 'expected a number of GPUs such as 2048, got "0x10"')
    refuses("1,000", "gpu", 'expected a number of GPUs such as 2048, got "1,000"')
    refuses("nan", "token", 'expected a number of tokens such as "14.8T", got "nan"')
    refuses("1e999", "token", 'expected a number of tokens such as "14.8T", got "1e999"')
    refuses("1-2", "token", 'expected a number of tokens such as "14.8T", got "1-2"')
    refuses(0 / 0, "token", 'expected a number of tokens such as "14.8T", got ' .. tostring(0 / 0))
    refuses(true, "token", 'expected a number of tokens such as "14.8T", got a boolean')
  end)

  it("is told what it is, when it is a quantity of something else", function()
    refuses("400Gbps", "byte", 'expected bytes such as "80GiB", got "400Gbps": that is a link speed')
    refuses("80GiB", "byte/s", 'expected a link speed such as "400Gbps" or "160GB/s", got "80GiB": that is bytes')
    refuses("8%", "token", 'expected a number of tokens such as "14.8T", got "8%": that is a fraction')
    refuses("3h", "gpu", 'expected a number of GPUs such as 2048, got "3h": that is a time')
  end)

  it("includes a bare prefix where bytes or bits have to be said", function()
    refuses("80G", "byte", 'expected bytes such as "80GiB", got "80G": G of what?')
  end)

  it("includes negative amounts, unless they are asked for", function()
    refuses("-5", "gpu", "expected a number of GPUs such as 2048, got -5: less than nothing")
    refuses(-5, "gpu", "expected a number of GPUs such as 2048, got -5: less than nothing")
    assert.equal(-5, units.parse("-5", "1", { negative = true }))
  end)
end)

it("shows a quantity as reports do", function()
  assert.equal("400 Gb/s", units.format(50e9, "byte/s"))
  assert.equal("14.8 T", units.format(14.8e12, "token"))
  assert.equal("8.57 %", units.format(3 / 35, "fraction"))
end)

it("writes a quantity as a spec has it: what is written reads back", function()
  assert.equal("400 Gb/s", units.written(50e9, "byte/s"))
  assert.equal("494.5T", units.written(494.5e12, "flop/s"))
  assert.equal(4096, units.written(4096, "token"))
  for value, unit in pairs { [50e9] = "byte/s", [450e9] = "byte/s", [2 ^ 34] = "byte", [989e12] = "flop/s" } do
    assert.equal(value, units.parse(units.written(value, unit), unit))
  end
end)

-- By hand: 1234567800 is 1.2345678 billion, 25000000025 bytes a second are 200.0000002 Gb/s.
it("shows a value that is to be reached with as many digits as it takes to read it again", function()
  for text, value in pairs { ["1.2345678 B"] = { 1234567800, "token" }, ["1 B"] = { 1e9, "token" }, ["200.0000002 Gb/s"] = { 25000000025, "byte/s" },
                             ["12,345,678"] = { 12345678, "gpu" }, ["70 GiB"] = { 70 * 2 ^ 30, "byte" }, ["7 %"] = { 0.07, "fraction" } } do
    assert.equal(text, units.exact(value[1], value[2]))
  end
  for _, unit in ipairs { "1", "token", "byte", "byte/s", "fraction", "second" } do
    for _, value in ipairs { 1 / 3, 0.1 + 0.2, 1 / 1024, 0.999 } do
      assert.equal(value, units.parse(units.exact(value, unit):gsub(" ", ""), unit))
    end
  end
end)
