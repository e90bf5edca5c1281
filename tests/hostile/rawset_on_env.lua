-- broken "rawset is not available"
rawset(_ENV, "pairs", nil)
