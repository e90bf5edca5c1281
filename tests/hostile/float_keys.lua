-- harmless: 1.0 and 1 are one key
local t = {}
t[1.0] = "a"
t[1] = "b"
assert(t[1] == "b")
row { id = "x", try = { "1f1b" } }
