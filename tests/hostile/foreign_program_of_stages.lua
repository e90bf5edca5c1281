-- budget: a program of many stages and microbatches on one rank: a table of their product
local S, M = 1500, 1500
local parts = {}
for m = 0, M - 1 do parts[#parts + 1] = "0F" .. m .. ",0B" .. m end
for s = 1, S - 1 do parts[#parts + 1] = s .. "F0," .. s .. "B0" end
while #parts > 1 do
  local half = {}
  for i = 1, #parts, 2 do half[#half + 1] = parts[i + 1] and (parts[i] .. "," .. parts[i + 1]) or parts[i] end
  parts = half
end
while true do engine.schedule.from_csv(parts[1] .. "\n", {}) end
