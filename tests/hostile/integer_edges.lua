-- broken "attempt to divide by zero": arithmetic errors are errors
local x = math.mininteger // -1
assert(x == math.mininteger)
return 1 // 0
