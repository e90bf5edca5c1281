-- broken "tonumber in policies reads at most 64 characters"
local s = "1"
for _ = 1, 20 do s = s .. s end
tonumber(s)
