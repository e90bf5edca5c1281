-- broken "pcall is not available": errors cannot be caught, so nor can the kill
while true do pcall(function() while true do end end) end
