-- broken "print is not available"
for i = 1, 1e9 do print(i) end
