-- broken "loadstring is not available"
loadstring("x = 1")()
