-- broken "string is not available": 1e9 empty copies run no instruction
string.rep("", 1e9)
