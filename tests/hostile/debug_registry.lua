-- broken "debug is not available"
local registry = debug.getregistry()
return registry
