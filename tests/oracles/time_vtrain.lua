-- SPDX-License-Identifier: Apache-2.0
-- time_vtrain.lua: step seconds of vTrain's validation (vtrain.lua). Odd rows of its file fit one number, the factor that all our
-- seconds are multiplied by; even rows are reported with it. Ampere's gemm and layer_latency in the catalogue were chosen on odd rows
-- too, with Korthikanti's; that there is such a latency was seen on all rows. Nothing else is fitted. vTrain's own mean error over all
-- rows is 14.73 % (§IV), and it profiles every kernel first.
--
-- Some rows are no function of the setting: 3.6B at TP 8 takes 4.97 s in two microbatches of 32 and 9.84 in one of 64; 39.1B at TP 2,
-- PP 8 takes longer with 24 microbatches than with 16. They are in the band, which is as wide as they need, and in the mean.

local predict = require "oracles.predict"
local rows = require "oracles.rows"
local vtrain = require "oracles.vtrain"

local OWN_MEAN_ERROR = 0.1473

local list = { skipped = vtrain.skipped }
if list.skipped then return list end

local ours, logarithms, fitted = {}, 0, 0
for i, run in ipairs(vtrain) do
  ours[i] = predict.step(run.model, run).seconds
  if i % 2 == 1 then logarithms, fitted = logarithms + math.log(run.seconds / ours[i]), fitted + 1 end
end
local factor = math.exp(logarithms / fitted)

local with, without, reported = 0, 0, 0
for i, run in ipairs(vtrain) do
  if i % 2 == 0 then
    local row = rows.number("vTrain", run.name, "step, s", run.seconds, factor * ours[i], 0.50)
    list[#list + 1] = rows.of("each", row)
    with, without, reported = with + math.abs(row.error), without + math.abs(ours[i] / run.seconds - 1), reported + 1
  end
end
local words = string.format("%d rows, factor %.3f fitted on %d others", reported, factor, fitted)
list[#list + 1] = rows.of("mean", rows.limit("vTrain", words, "mean |error|", OWN_MEAN_ERROR, with / reported))
words = reported .. " rows, nothing fitted"
list[#list + 1] = rows.of("mean", rows.limit("vTrain", words, "mean |error|", OWN_MEAN_ERROR, without / reported))
return list
