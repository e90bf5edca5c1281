-- harmless: pairs has one order
local seen = ""
for key in pairs { b = 1, a = 1, c = 1, [2] = 1, [1] = 1 } do seen = seen .. tostring(key) end
assert(seen == "12abc", seen)
row { id = "x", try = { "1f1b" } }
