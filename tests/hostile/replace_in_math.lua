-- broken "math is read-only": one policy cannot poison another
math.floor = function() return 0 end
