-- broken "attempt to index a string value": no string library through the back door
local long = ("x"):rep(1e9)
return long
