-- broken "load is not available"
load(function() return "x = 1 " end)
