-- harmless: tostring shows no address
assert(tostring({}) == "table" and tostring(row) == "function")
row { id = "x", try = { "1f1b" } }
