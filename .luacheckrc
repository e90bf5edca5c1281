std = "lua54"
max_line_length = 140
codes = true
files["tests/**/*_spec.lua"] = { std = "+busted", max_line_length = 160 }
files["examples/**/*_spec.lua"] = { std = "+busted" }
-- Tables of facts and rules read best one entry a line.
files["stdlib/vocabulary.lua"] = { max_line_length = false }
files["stdlib/catalog/*.lua"] = { max_line_length = false }
files["policies/**/*.lua"] = { std = "none", max_line_length = false }
