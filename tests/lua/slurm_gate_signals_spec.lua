-- SPDX-License-Identifier: Apache-2.0
-- The gate of examples/slurm where a signal ends its read of pipeplan's answer, as slurmctld gets them: C keeps nothing of what was read.

local verdict = "status planned\ngpus 8\nschedule 1f1b\nspec aa\ndigest bb\n0\n"
local EINTR = 4

-- The answer of the gate to a job of 8 GPUs, and how often it ran the command, whose first `ended` reads a signal ends.
local function judge(ended)
  local popen, runs = io.popen, 0
  io.popen = function()  -- luacheck: ignore 122
    runs = runs + 1
    local read = false
    return { close = function() end, read = function()
      if read then return "" end   -- the rest of a pipe that was read once
      read = true
      if runs <= ended then return nil, "Interrupted system call", EINTR end
      return verdict
    end }
  end
  local gate = dofile(os.getenv "PIPEPLAN_SOURCE" .. "/examples/slurm/pipeplan_gate.lua")
  local told = {}
  local good, may = pcall(gate.judge, { comment = "pipeplan=/run.json", per_job = { [""] = 8 }, user = "1000" }, function(line) told[#told + 1] = line end,
                           function() end)
  io.popen = popen  -- luacheck: ignore 122
  assert(good, may)
  return may, runs, told[1]
end

describe("the gate of Slurm", function()
  it("runs the command again where a signal ended its read", function()
    assert.same({ true, 1, nil }, { judge(0) })
    assert.same({ true, 3 }, { judge(2) })
  end)

  it("says no where that does not end", function()
    local may, runs, told = judge(100)
    assert.same({ false, 5 }, { may, runs })
    assert.matches("the answer is no", told, 1, true)
  end)
end)
