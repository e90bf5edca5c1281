-- SPDX-License-Identifier: Apache-2.0
-- Quantities as a reader of a plan expects to see them.

require "pipeplan"
local format = require "pipeplan.base.format"

describe("format", function()
  it("writes how many of a word there are, and where something stands", function()
    assert.equal("1 layer", format.plural(1, "layer"))
    assert.equal("2,048 layers", format.plural(2048, "layer"))
    assert.equal("0 layers", format.plural(0, "layer"))
    assert.equal("site.lua:7", format.place { file = "site.lua", line = 7 })
    assert.equal("--set", format.place { file = "--set", line = 0 })
  end)

  it("writes counts with the suffix that papers use", function()
    assert.equal("671 B", format.count(671026419200))
    assert.equal("14.8 T", format.count(14.8e12))
    assert.equal("2.66 M", format.count(2664000))
    assert.equal("1 B", format.count(999.96e6))
    assert.equal("2,048", format.count(2048))
    assert.equal("0", format.count(0))
    assert.equal("-12.3 k", format.count(-12345.6))
  end)

  it("writes memory in binary units and links in the units they are sold in", function()
    assert.equal("80 GiB", format.bytes(80 * 2 ^ 30))
    assert.equal("61.8 GiB", format.bytes(61.8 * 2 ^ 30))
    assert.equal("1.5 KiB", format.bytes(1536))
    assert.equal("400 Gb/s", format.rate(50e9))
    assert.equal("200 Gb/s", format.rate(25e9))
    assert.equal("800 Gb/s", format.rate(100e9))
    assert.equal("160 GB/s", format.rate(160e9))
  end)

  it("writes a share as percent", function()
    assert.equal("8.57 %", format.percent(3 / 35))
    assert.equal("8 %", format.percent(0.08))
    assert.equal("100 %", format.percent(1))
    assert.equal("0.05 %", format.percent(0.0005))
  end)

  it("keeps step times in seconds and long times in days", function()
    assert.equal("8.51 s", format.seconds(8.51234))
    assert.equal("90 s", format.seconds(90))
    assert.equal("12.3 ms", format.seconds(0.0123))
    assert.equal("54.2 days", format.seconds(54.2 * 86400))
    assert.equal("0 s", format.seconds(0))
  end)

  it("writes what would have more than 15 digits with an exponent", function()
    assert.equal("-1.16e+303 days", format.seconds(-1e308))
    assert.equal("1e+20 T", format.count(1e32))
    assert.equal("999999999999999 s", format.digits(999999999999999) .. " s")
  end)

  it("groups digits of integers", function()
    assert.equal("1", format.integer(1))
    assert.equal("1,000", format.integer(1000))
    assert.equal("16,777,216", format.integer(16777216))
    assert.equal("-123,456", format.integer(-123456))
  end)

  it("writes a field in its display unit, whatever its type", function()
    assert.equal("7.5", format.quantity(7.5, "1"))
    assert.equal("DualPipe", format.quantity("dualpipe"))
    assert.equal("false", format.quantity(false))
    assert.equal("1F1B, ZB-H1", format.quantity { "1f1b", "zb_h1" })
    assert.equal("671 B", format.quantity(671026419200, "1"))
    assert.equal("15,360", format.quantity(15360, "sequence"))
  end)
end)

describe("format.share", function()
  it("says of what is not all that it is not", function()
    assert.same({ "99.6 %", "99.9 %", "100.0 %", "77.8 %", "0.0 %" },
                { format.share(250, 251), format.share(9999, 10000), format.share(3, 3), format.share(7, 9), format.share(0, 3) })
  end)
end)

describe("format.wrap", function()
  it("never writes past the width, in characters", function()
    for width = 12, 40 do
      for _, line in ipairs(format.wrap("M ≥ 2 P; größer als " .. string.rep("x", 50) .. " und Ende", width, "note  ")) do
        assert.is_true(utf8.len(line) <= width)
      end
    end
  end)

  it("keeps every character of the text", function()
    local text = "one two " .. string.rep("é", 30) .. " three"
    local joined = table.concat(format.wrap(text, 11), ""):gsub(" ", "")
    assert.equal((text:gsub(" ", "")), joined)
  end)

  it("indents the lines that follow", function()
    assert.same({ "a: one", "   two" }, format.wrap("one two", 6, "a: "))
  end)
end)

describe("format.cut", function()
  it("says that something is missing", function()
    assert.equal("abc", format.cut("abc", 3))
    assert.equal("ab…", format.cut("abcd", 3))
    assert.equal("éé…", format.cut("éééé", 3))
  end)
end)
