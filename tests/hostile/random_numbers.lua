-- broken "attempt to call a nil value (field 'random')": two runs of a policy are the same
local x = math.random()
return x
