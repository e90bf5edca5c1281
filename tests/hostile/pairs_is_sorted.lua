-- harmless: pairs has one order
local seen = ""
for key in pairs { b = 1, a = 1, c = 1, [2] = 1, [1] = 1 } do seen = seen .. tostring(key) end
assert(seen == "12abc", seen)
seen = ""
for key in pairs { ["a\0c"] = 1, ["a\0b"] = 1, a = 1 } do seen = seen .. key end  -- a key may hold zeros
assert(seen == "aa\0ba\0c", seen)
row { id = "x", try = { "1f1b" } }
