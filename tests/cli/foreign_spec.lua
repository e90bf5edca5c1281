-- SPDX-License-Identifier: Apache-2.0
-- `pipeplan simulate` of random programs whose ranks hold unequally many stages, each under every runtime in some of the formats: the share of
-- tests/fuzz/reports.lua that runs with the tests.

local foreign = require "foreign"
local program = require "program"

describe("pipeplan simulate", function()
  it("has an answer for any program of a training step", function()
    for seed = 1, 24 do
      local problem = foreign.check(seed, program.run, os.getenv "PIPEPLAN_SOURCE", false)
      if problem then error(problem, 0) end
    end
  end)
end)
