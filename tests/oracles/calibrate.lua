-- SPDX-License-Identifier: Apache-2.0
-- calibrate.lua: what the engine predicts for measured runs, with the efficiencies of stdlib/catalog/accelerators.lua. Run it after
-- changing one, and put the ratios where the efficiencies stand:
--   LUA_CPATH="build/dev/?.so;;" LUA_PATH="tests/?.lua;;" lua5.4 tests/oracles/calibrate.lua

local korthikanti = require "oracles.korthikanti"
local models = require "oracles.models"
local predict = require "oracles.predict"
local rows = require "oracles.megatron_bridge"

print(string.format("%-24s %-6s %5s %-4s %22s %8s %8s %6s", "model", "GPU", "GPUs", "", "TP/PP/CP/VP/EP", "measured", "ours",
                    "ratio"))
local ratios, order = {}, {}
for _, row in ipairs(rows) do
  local ratio, ours = predict.ratio(models[row.model], row)
  local layout = table.concat({ row.tensor, row.pipeline, row.context, row.virtual, row.expert }, "/")
  print(string.format("%-24s %-6s %5d %-4s %22s %8.0f %8.0f %6.2f", row.model, row.accelerator, row.gpus, row.precision, layout,
                      row.tokens_per_second, ours, ratio))
  if not ratios[row.accelerator] then
    ratios[row.accelerator] = {}
    order[#order + 1] = row.accelerator
  end
  table.insert(ratios[row.accelerator], ratio)
end
for _, name in ipairs(order) do
  local list, logarithms = ratios[name], 0
  for _, ratio in ipairs(list) do logarithms = logarithms + math.log(ratio) end
  table.sort(list)
  local mean = math.exp(logarithms / #list)
  print(string.format("%-6s %2d rows: geometric mean %.2f, from %.2f to %.2f", name, #list, mean, list[1], list[#list]))
end

print(string.format("\n%-16s %10s %8s %6s", "A100, TP 8", "measured s", "ours s", "ratio"))
for _, row in ipairs(korthikanti) do
  local ours = predict.step(row.model, row).seconds
  print(string.format("%-16s %10.2f %8.2f %6.2f", row.name, row.seconds, ours, ours / row.seconds))
end
