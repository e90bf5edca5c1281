-- SPDX-License-Identifier: Apache-2.0
-- Whatever a log holds, `monitor` answers with one of its exit statuses, never a crash: logs of all formats, cut and changed at random.

require "pipeplan"
local failure = require "pipeplan.base.failure"
local files = require "policy_files"
local monitor = require "pipeplan.cli.monitor"
local monitoring = require "monitoring"
local program = require "program"

teardown(files.remove)

local plan = files.write("plan.json", monitoring.plan())

local samples = {
  monitoring.log(1, 40, 27.2),
  "iteration 12/ 20 | consumed samples: 64 | elapsed time per iteration (ms): 27200.5/27100.1 | tokens/s/GPU inst/harmonic mean: 1.0/2.0 | "
    .. "global batch size: 64 | lm loss: NAN |\nStep Time : 9.09s GPU utilization: 663.5MODEL_TFLOP/s/GPU\n",
  monitoring.log(1, 40, 1204, 1, function(i, value) return "\27[31m" .. monitoring.torchtitan(i, string.format("%.0f", value)) .. "\27[39m" end),
  "timestamp, index, utilization.gpu [%], memory.used [MiB]\n2026/11/27 10:15:02.412, 0, 97 %, 71234 MiB\n2026/11/27 10:15:02.412, 1, [N/A], 71 MiB\n",
  'DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu="3",UUID="GPU-0a",modelName="NVIDIA \\"H100\\"",hostname="n17"} 0.412733\nDCGM_FI_DEV_GPU_UTIL{gpu="1"} 98\n',
  "#Entity   GRACT        SMACT        TENSO\nID\nGPU 0     N/A          0.861        0.301\nGPU-I 1   0.983        0.861        0.301\n",
  "saving checkpoint at iteration 30\n[before the start of training step] datetime: x\nvalidation loss at iteration 1 |\n",
}

-- Bytes that mean something to one of the readers, and some that mean nothing to any.
local pieces = { "", "\n", "\r", "\0", "\27[", "\255", "|", ":", ",", "%", "/", "{", "}", '"', "\\", "-", "+", ".", "e", "nan", "inf", "1e308", "-1", "0",
                 "99999999999999999999", "9223372036854775807", "GPU ", "iteration ", "step: ", "tps: ", "[N/A]", string.rep("9", 400),
                 string.rep(" ", 3000), string.rep("(", 200) }

-- A generator of its own: the same texts on every run.
local state = 12345
local function random(n)
  state = (state * 1103515245 + 12345) % 2147483648
  return state // 65536 % n + 1
end

local function mutated(text)
  for _ = 1, random(6) do
    local at = random(#text + 1)
    local kind = random(4)
    if kind == 1 then text = text:sub(1, at - 1) .. pieces[random(#pieces)] .. text:sub(at)
    elseif kind == 2 then text = text:sub(1, at - 1) .. text:sub(at + random(20))
    elseif kind == 3 then text = text:sub(1, at - 1) .. text:sub(random(#text + 1))
    else text = text:sub(1, at - 1) .. string.char(random(256) - 1) .. text:sub(at + 1) end
  end
  return random(4) == 1 and text:sub(1, random(#text + 1)) or text
end

local allowed = { [0] = true, [1] = true, [5] = true }

describe("a log of garbage", function()
  it("is answered, whatever was cut from it or put into it", function()
    local seen = {}
    for round = 1, 600 do
      local text = mutated(samples[random(#samples)] .. samples[random(#samples)])
      local path = files.write("x.log", text)
      local arguments = { plan, path, "--format", round % 2 == 0 and "json" or "text" }
      if round % 5 == 0 then table.insert(arguments, "--columns=index,utilization.gpu,TENSO") end
      local good, out, status = xpcall(monitor.run, function(problem)
        return failure.is(problem) and problem or debug.traceback(tostring(problem))
      end, arguments)
      if not good then
        assert.is_true(failure.is(out), string.format("%s\n%q", tostring(out), text))
        status = out.status
      else
        assert.is_truthy(utf8.len(out), "the answer is UTF-8")
        assert.is_nil(out:find "[%z\1-\9\11-\31\127]")
      end
      assert.is_true(allowed[status], string.format("%d %q", status, text))
      seen[status] = (seen[status] or 0) + 1
      os.remove(path)
    end
    assert.is_true(seen[0] > 50 and seen[5] > 50, "both sides are met")
  end)

  it("is answered by the program too", function()
    for _ = 1, 40 do
      local text = mutated(samples[random(#samples)])
      local result = program.run("monitor " .. plan .. " -", text)
      assert.is_true(allowed[result.status], string.format("%d %s %q", result.status, result.stderr, text))
    end
  end)

  it("takes time in proportion to its length, whatever it is made of", function()
    for _, piece in ipairs { " ", "iteration ", "iteration 1/ 1 |", "elapsed time per iteration (ms): ", "loss: ", "tps: ", "step: ", ",",
                             "[%], ", "DCGM_FI_A{", "a=\"", "GPU 0 ", "#Entity ", "\27[", "|", "1,1", "Step Time : ", "checkpoint sav" } do
      for _, head in ipairs { "", "iteration 1/ 1 | elapsed time per iteration (ms): ", "step: 1 tps: 1 loss: ", "DCGM_FI_DEV_GPU_UTIL{",
                              "GPU 0 ", "Step Time" } do
        local path = files.write("x.log", string.rep(head .. string.rep(piece, 60000 // #piece) .. "\n", 3))
        local before = os.clock()
        pcall(monitor.run, { plan, path })
        assert.is_true(os.clock() - before < 2, string.format("%q %q: %.1f s", head, piece, os.clock() - before))
        os.remove(path)
      end
    end
  end)
end)
