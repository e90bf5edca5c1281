-- broken "more than 20000 values"
local list = {}
for i = 1, 30000 do list[i] = i end
row { id = "x", try = list }
