-- SPDX-License-Identifier: Apache-2.0
-- calibration.lua: a site's calibration (stdlib/schema/calibration.lua) → factors of the price of a step, by family; and a calibration's
-- factors as a request takes them.

local accelerators = require "pipeplan.catalog.accelerators"
local documents = require "pipeplan.base.documents"
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"

local calibration = {}

-- What has a factor of its own. compute: kernels, the host and the update; all else is sent (engine/core/comm.h, pp_traffic).
calibration.families = { "compute", "tensor", "context", "expert", "data", "pipeline" }

-- A run takes at most so many times its prediction, and at least that part of it: no price is off by as much, it was something else.
calibration.farthest = 3

function calibration.is_believed(measured_seconds, predicted_seconds)
  local ratio = measured_seconds / predicted_seconds
  return ratio <= calibration.farthest and ratio >= 1 / calibration.farthest
end

-- Fails where a calibration is not as the schema says, or has a run that is no run of its layout.
function calibration.check(read, file)
  require "pipeplan.input.validate"(read, require "pipeplan.schema.calibration", file)
  for i, run in ipairs(read.runs or {}) do
    if not calibration.is_believed(run.measured_seconds, run.predicted_seconds) then
      failure.usage("%s: runs[%d].measured_seconds is %.14g where %.14g were predicted: expected at most %d times as much, and at least "
                    .. "1/%d", file, i - 1, run.measured_seconds, run.predicted_seconds, calibration.farthest, calibration.farthest)
    end
  end
end

-- Reads a file → what the schema says.
function calibration.load(file)
  local read = json.read(file)
  documents.check(read, "calibration", file)
  calibration.check(read, file)
  return read
end

-- As a request has it: { compute, tensor, … } of factors with that of all in each; those of 1 are left out.
function calibration.factors(factors)
  local out = {}
  for _, family in ipairs(calibration.families) do
    local factor = (factors.all or 1) * (factors[family] or 1)
    if factor ~= 1 then out[family] = factor end
  end
  return out
end

-- "all × 1.12, expert × 1.4"; "nothing" without a factor.
function calibration.words(factors)
  local words = {}
  for _, name in ipairs { "all", table.unpack(calibration.families) } do
    if factors[name] and factors[name] ~= 1 then words[#words + 1] = string.format("%s × %.3g", name, factors[name]) end
  end
  return #words > 0 and table.concat(words, ", ") or "nothing"
end

-- The same where its runs are on the request's accelerator, which both name as the catalogue does.
function calibration.of_the_same(file, request)
  local read = calibration.load(file)
  local entry, own = accelerators.find(read.accelerator), accelerators.find(request.cluster.accelerator)
  if not own or not entry or entry.name ~= own.name then
    failure.usage("%s: accelerator is %s: expected runs on the spec's, %s", file, json.encode(read.accelerator),
                  own and own.name or "of which the catalogue has no name (cluster.accelerator)")
  end
  return read
end

-- For a spec: the file of the field `cluster.calibration` → { file, factors, source }.
function calibration.read(file, request)
  local read = calibration.of_the_same(file, request)
  local count = #(read.runs or {})
  return { file = file, raw = read, factors = calibration.factors(read.factors), words = calibration.words(read.factors),
           source = read.source or string.format("%s: %d run%s", file, count, count == 1 and "" or "s") }
end

return calibration
