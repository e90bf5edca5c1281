-- SPDX-License-Identifier: Apache-2.0
-- reports.lua: `pipeplan simulate` of random programs whose ranks hold unequally many stages, in every format under every runtime:
--   PIPEPLAN=build/asan/pipeplan lua5.4 tests/fuzz/reports.lua [FIRST SEED] [PROGRAMS]
-- Prints each program of which something is wrong, and how many there were; ends with 1 if any. A share of it runs with the tests
-- (tests/cli/foreign_spec.lua).

package.path = "tests/?.lua;" .. package.path
local foreign = require "foreign"

local first, count = tonumber(arg[1]) or 1, tonumber(arg[2]) or 100
local binary, wrong, runs = os.getenv "PIPEPLAN" or "build/asan/pipeplan", 0, 0

local read = require "read_file"

local out, err = os.tmpname(), os.tmpname()
local function run(arguments)
  runs = runs + 1
  local _, how, status = os.execute(string.format("'%s' %s >%s 2>%s", binary, arguments, out, err))
  return { status = how == "exit" and status or 128 + status, stdout = read(out), stderr = read(err) }
end

for seed = first, first + count - 1 do
  local problem = foreign.check(seed, run, ".", true)
  if problem then
    wrong = wrong + 1
    print(problem)
  end
end
os.remove(out)
os.remove(err)
print(string.format("%d programs, %d runs, %d wrong", count, runs, wrong))
os.exit(wrong == 0)
