-- SPDX-License-Identifier: Apache-2.0
-- time_korthikanti.lua: step seconds of Korthikanti et al. 2205.05198, Table 5 (korthikanti.lua), and its model FLOP/s utilisations.
-- The efficiencies of Ampere (stdlib/catalog/accelerators.lua) were chosen on these rows: three numbers for eight steps.

local korthikanti = require "oracles.korthikanti"
local predict = require "oracles.predict"
local rows = require "oracles.rows"

local list = {}
for _, row in ipairs(korthikanti) do
  list[#list + 1] = rows.number("Korthikanti et al.", row.name, "step, s", row.seconds, predict.step(row.model, row).seconds, 0.10)
end
return list
