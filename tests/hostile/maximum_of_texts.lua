-- broken "math.max takes numbers, got a string"
local x = math.max("a", "b")
row { id = "x", try = { "1f1b" } }
