-- budget: a heap that is collected while garbage is made
local keep = {}
for i = 1, 100000 do keep[i] = { i } end
while true do local t = {} end
