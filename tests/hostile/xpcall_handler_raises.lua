-- broken "xpcall is not available"
xpcall(error, error)
