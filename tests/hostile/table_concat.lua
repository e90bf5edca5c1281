-- broken "table is not available"
table.concat({}, ",", 1, 1e9)
