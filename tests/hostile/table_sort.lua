-- broken "table is not available"
table.sort({ 3, 2, 1 }, function() return true end)
