-- harmless: many keys are only many keys
local t = {}
for i = 1, 20000 do t["k" .. i] = i end
row { id = "x", try = { "1f1b" } }
