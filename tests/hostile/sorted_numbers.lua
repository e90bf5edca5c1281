-- harmless: keys are sorted as numbers are, also where a double cannot tell integers apart
local t, order = {}, {}
for i = 1, 12 do t["k" .. i] = true end
t[2^63], t[math.maxinteger], t[math.maxinteger - 1], t[-2^63], t[0.5], t[-1 / 0], t[1 / 0], t[0] = 8, 7, 6, 2, 4, 1, 9, 3
t[2^53 + 1.0], t[math.tointeger(2^53) + 1], t[true], t[false] = 5, 5.5, 11, 10
for i = 1, 12 do t["k" .. i] = nil end
for _, v in pairs(t) do order[#order + 1] = v end
local before = -1
for i = 1, #order do
  assert(order[i] > before, order[i])
  before = order[i]
end
assert(#order == 12)
row { id = "x", try = { "1f1b" } }
