-- broken "debug is not available"
debug.sethook()
while true do end
