-- broken "os is not available": a plan depends on its date, not on the clock
local now = os.time()
return now
