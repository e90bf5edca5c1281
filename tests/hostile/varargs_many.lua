-- budget: a hundred thousand values copied by one instruction
local function grow(n, ...)
  if n == 0 then while true do select('#', ...) end end
  return grow(n - 1, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32, ...)
end
grow(3000)
