-- budget: a large array is counted through whenever a small hash part fills
local t = {}
for i = 1, 200000 do t[i] = i end
while true do
  for i = 1, 100 do local k = "k" .. i t[k] = 1 t[k] = nil end
end
