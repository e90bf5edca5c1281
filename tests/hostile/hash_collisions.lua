-- harmless: many keys are only many keys
local t = {}
for i = 1, 5000 do t["k" .. i] = i end
row { id = "x", try = { "1f1b" } }
