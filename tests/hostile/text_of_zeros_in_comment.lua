-- harmless: "\0" in a comment makes instructions dearer, no more
local t = {}
for i = 1, 100 do t[i] = i end
row { id = "x", try = { "1f1b" } }
