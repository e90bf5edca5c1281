-- budget: a hundred thousand arguments, each a long string
local z = "\0\0\0\0\0\0\0\0"
for _ = 1, 18 do z = z .. z end
local a, b = z .. "a", z .. "b"
local function grow(n, ...)
  if n == 0 then return math.max(...) end
  return grow(n - 1, a, b, a, b, a, b, a, b, a, b, a, b, a, b, a, b, a, b, a, b, a, b, a, b, a, b, a, b, a, b, a, b, ...)
end
grow(3000)
