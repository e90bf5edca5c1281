-- broken "os is not available"
local home = os.getenv("HOME")
return home
