std = "lua54"
max_line_length = 140
codes = true
files["tests/**/*_spec.lua"] = { std = "+busted" }
files["examples/**/*_spec.lua"] = { std = "+busted" }
