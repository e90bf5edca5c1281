-- broken "string is not available"
string.dump(function() end)
