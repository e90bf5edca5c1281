-- SPDX-License-Identifier: Apache-2.0
-- Plausible mistakes of policy authors (tests/policy/mistakes.lua): each is caught, and in words that say what to do.

local planning = require "planning"  -- first: it loads the module
local check = require "pipeplan.analysis.check"

describe("every mistake of the corpus", function()
  it("is caught when the policy is loaded, by check, by its tests or by mutate", function()
    local pipe <close> = assert(io.popen "lua5.4 tests/mistakes.lua 2>&1")
    local text = pipe:read "a"
    assert.matches("^164 of 164 caught %(load %d+, check %d+, test %d+, mutate %d+%)\nheld back: 95 of 95 caught %([^\n]*%)\n$", text)
  end)
end)

describe("what is probably a slip", function()
  local function codes(text)
    local found = {}
    for _, finding in ipairs(check.policy(planning.policy_of(text).policy, { witnesses = false })) do
      if finding.layer ~= "default" then found[finding.code] = true end
    end
    return found
  end

  -- 1.6 Tb/s are 200 GB/s; 25 GB/s are 200 Gb/s, 80 GiB a GPU's memory, 15 T tokens a large run
  it("is not found where a unit is written, and the size is one that there is", function()
    local found = codes [[
      set { slow_link = "50GB/s" }
      reject { id = "a", network_per_gpu = under("400Gbps"), message = "m" }
      reject { id = "b", device_bytes = under("79GiB"), tokens = over("15T"), message = "m" }
      reject { id = "c", gpus = { 64, 128 }, expert_link = at_least("450GB/s"), message = "m" }
      reject { id = "d", bubble_fraction = between("5%", "10%"), layers = 80, message = "m" }]]
    for _, code in ipairs { "implausible", "exact", "direction" } do assert.is_nil(found[code], code) end
  end)

  it("is found in parameters of the site's own too", function()
    local parameter = [[parameter { id = "own", value = %s, unit = "%s", loosens = "%s", meaning = "m" } reject { id = "x", %s, message = "m" }]]
    assert.is_true(codes(parameter:format("80", "byte", "down", "peak_bytes = under 'own'")).implausible)
    assert.is_true(codes(parameter:format("8", "rank", "none", "pipeline_parallel = over 'own'")).direction)
    assert.is_nil(codes(parameter:format("8", "rank", "up", "pipeline_parallel = over 'own'")).direction)
    assert.is_nil(codes(parameter:format("8", "rank", "down", "pipeline_parallel = at_most 'own'")).direction)
  end)

  it("is not found in messages that say what their rules say, of what is dropped or of what is allowed", function()
    local found = codes [[
      reject { id = "a", pipeline_parallel = over(24), message = "P {pipeline_parallel}: at most 24, TP {tensor_parallel}" }
      refuse { id = "b", gpus = under(48), pipeline_parallel = over(1), recommend = "data_parallel", message = "under 48 GPUs" }
      reject { id = "c", fabric = none_of { "infiniband", "roce" }, message = "only infiniband and roce" }
      reject { id = "d", gpus = not_multiple_of(8), message = "multiples of 8 only" }
      reject { id = "e", gpus = at_most(48), tensor_parallel = over(8), message = "at most 48 GPUs have no such links" }
      warn { id = "f", tokens = over "15T", message = "over 15 T tokens, more than 4 weeks" }
      reject { id = "g", bubble_fraction = over "20%", team = "vision", message = "a bubble over 20 %" }
      reject { id = "h", message = "m", when = function(f) return f.gpus > 64 and f.gpus < 256 or f.gpus == 1 end }]]
    for _, code in ipairs { "message_field", "implausible", "impossible", "recommends_nothing" } do assert.is_nil(found[code], code) end
    assert.is_true(found.message_limit)  -- the four weeks, which are no limit of the rule
  end)

  it("is a name that does not exist in a function that is not read as conditions", function()
    local rule = "reject { id = 'x', message = 'm', when = function(f) return f.%s > 8 or f.max_pipeline_depth < 4 end }"
    assert.is_true(codes(rule:format "pipeline_paralel").unknown_name)
    assert.is_nil(codes(rule:format "pipeline_parallel").unknown_name)
  end)
end)
