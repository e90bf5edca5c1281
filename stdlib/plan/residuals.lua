-- SPDX-License-Identifier: Apache-2.0
--[[
residuals.lua: what measured steps say of the price of a step: one factor of everything and, where the runs show it, one of a single
family of terms beside it (docs/measuring.md says why no more).

A run: { measured_seconds, predicted_seconds, responses = { family = { { factor, seconds }, … } } }: the predicted step without a factor,
and with factors on one family. A step is a longest path, so it is piecewise linear in each: between two factors it is interpolated.

The factor of all is the geometric mean of measured / predicted. A family has one beside it only where all of this holds:
  at least three runs: two numbers from two runs fit whatever the cause
  under the factor of all they are off by more than runs vary by themselves (`noise`)
  each run, predicted from the others alone, is predicted twice as well with the family's factor as without
and it is the family for which that is best, with the factor that leaves least. Where several predict the runs as closely as runs
repeat, they are one explanation in several words (all-to-all slow, or all slow but compute): the family is that beside which the factor
of all is nearest to 1.
]]

local calibration = require "pipeplan.input.calibration"

local residuals = {}

local least_runs = 3
local noise = 0.02          -- two runs of one configuration on one cluster differ by up to about so much
local better = 1 / 4        -- of the mean square error: half of the error
local low, high, tries = 0.5, 2.5, 81   -- factors that are tried, evenly on a logarithmic scale; beyond, it is no correction any more

residuals.factors = { 0.5, 0.75, 1.5, 2.5 }   -- at which a family's responses are asked for

-- Seconds of a run with a factor on a family.
local function response(run, family, factor)
  local points = run.responses[family]
  if not points then return run.predicted_seconds end
  local plain = { factor = 1, seconds = run.predicted_seconds }
  local below, above
  for _, point in ipairs(points) do
    if point.factor <= factor and (not below or point.factor > below.factor) then below = point end
    if point.factor >= factor and (not above or point.factor < above.factor) then above = point end
  end
  if factor >= 1 and (not below or below.factor < 1) then below = plain end
  if factor <= 1 and (not above or above.factor > 1) then above = plain end
  local left, right = below or above, above or below
  if left.factor == right.factor then return left.seconds end
  return left.seconds + (factor - left.factor) / (right.factor - left.factor) * (right.seconds - left.seconds)
end

-- log(measured / predicted) with that factor on that family.
local function logs(runs, family, factor)
  local out = {}
  for i, run in ipairs(runs) do
    out[i] = math.log(run.measured_seconds / (family and response(run, family, factor) or run.predicted_seconds))
  end
  return out
end

local function mean_of(values, but)
  local sum, count = 0, 0
  for i, value in ipairs(values) do
    if i ~= but then sum, count = sum + value, count + 1 end
  end
  return sum / count
end

local function squares(values, mean, but)
  local sum = 0
  for i, value in ipairs(values) do
    if i ~= but then sum = sum + (value - mean) ^ 2 end
  end
  return sum
end

-- The table of logs by factor, once for all fits of a family.
local function scan(runs, family)
  local out = {}
  for k = 0, tries - 1 do
    local factor = low * (high / low) ^ (k / (tries - 1))
    out[k + 1] = { factor = factor, logs = logs(runs, family, factor) }
  end
  return out
end

-- The factor that leaves least of the runs, but one → its entry of the scan.
local function best_of(scanned, but)
  local best, least
  for _, entry in ipairs(scanned) do
    local left = squares(entry.logs, mean_of(entry.logs, but), but)
    if not least or left < least then best, least = entry, left end
  end
  return best
end

-- Mean square error of each run as the others predict it.
local function left_out(runs, scanned)
  local sum = 0
  for i in ipairs(runs) do
    local entry = best_of(scanned, i)
    sum = sum + (entry.logs[i] - mean_of(entry.logs, i)) ^ 2
  end
  return sum / #runs
end

local function responds(runs, family)
  for _, run in ipairs(runs) do
    for _, point in ipairs(run.responses[family] or {}) do
      if math.abs(point.seconds / run.predicted_seconds - 1) > 1e-3 then return true end
    end
  end
  return false
end

-- What the runs say of each family that they respond to, and whose factor is one of those that are tried and not at their ends.
local function explanations(runs)
  local out = {}
  for _, family in ipairs(calibration.families) do
    local scanned = responds(runs, family) and scan(runs, family)
    local entry = scanned and best_of(scanned)
    if entry and entry.factor > low * 1.001 and entry.factor < high / 1.001 then
      out[#out + 1] = { family = family, entry = entry, error = left_out(runs, scanned), all = math.abs(mean_of(entry.logs)) }
    end
  end
  return out
end

-- → the one that counts, and its error
local function best_family(runs)
  local found, least = nil, math.huge
  local list = explanations(runs)
  for _, one in ipairs(list) do least = math.min(least, one.error) end
  for _, one in ipairs(list) do
    if one.error <= math.max(least, noise ^ 2) and (not found or one.all < found.all) then found = one end
  end
  return found, found and found.error
end

-- → { factors = { all, family? }, family, why, off (root mean square of what is left), off_before (of measured / predicted as it is) }
function residuals.fit(runs)
  local plain = logs(runs)
  local mean = mean_of(plain)
  local off, before = math.sqrt(squares(plain, mean) / #runs), math.sqrt(squares(plain, 0) / #runs)
  local out = { factors = { all = math.exp(mean) }, off = off, off_before = before }
  if #runs < least_runs then
    out.why = string.format("%d run%s: a factor of everything is all that they can tell", #runs, #runs == 1 and "" or "s")
    return out
  end
  if off <= noise then
    out.why = string.format("one factor leaves %.1f %%: as much as runs differ by themselves", 100 * off)
    return out
  end
  local alone = left_out(runs, { { logs = plain } })
  local found, least = best_family(runs)
  if not found or least > better * alone then
    out.why = string.format("the runs differ by %.1f %% under one factor, and no family's factor predicts each from the others twice as "
                            .. "well", 100 * off)
    return out
  end
  local entry = found.entry
  out.family = found.family
  out.factors = { all = math.exp(mean_of(entry.logs)), [found.family] = entry.factor }
  out.off = math.sqrt(squares(entry.logs, mean_of(entry.logs)) / #runs)
  out.why = string.format("predicted from the others, each run is off by %.1f %% with it and by %.1f %% without", 100 * math.sqrt(least),
                          100 * math.sqrt(alone))
  return out
end

-- What the factors predict of a run.
function residuals.predict(run, fitted)
  return fitted.factors.all * (fitted.family and response(run, fitted.family, fitted.factors[fitted.family]) or run.predicted_seconds)
end

return residuals
