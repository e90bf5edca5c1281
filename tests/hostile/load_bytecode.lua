-- broken "load is not available"
load("\27Lua")()
