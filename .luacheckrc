-- SPDX-License-Identifier: Apache-2.0
std = "lua54"
max_line_length = 140
codes = true
files["tests/**/*_spec.lua"] = { std = "+busted", max_line_length = 160 }
files["examples/**/*_spec.lua"] = { std = "+busted" }
files["tests/hostile.lua"] = { max_line_length = 160 }
files["tests/fuzz/*.lua"] = { max_line_length = 160, ignore = { "122" } }  -- they take the program's streams
-- Tables of facts and rules read best one entry a line.
files["stdlib/vocabulary.lua"] = { max_line_length = false }
files["stdlib/catalog/**/*.lua"] = { max_line_length = false }
files["stdlib/plan/figures.lua"] = { max_line_length = false }
files["stdlib/meta/generate/classes.lua"] = { max_line_length = false }
files["stdlib/meta/generate/primitives.lua"] = { max_line_length = false }
files["stdlib/meta/generate/search.lua"] = { max_line_length = false }
-- What a policy sees (engine/host/allow.c; a test compares the two).
stds.policy = {
  read_globals = {
    "any", "assert", "at_least", "at_most", "between", "change", "disable", "enable", "engine", "equal", "error", "even", "invariant", "ipairs",
    "kernel", "math", "multiple_of", "none_of", "not_multiple_of", "odd", "over", "pin", "pairs", "parameter", "prefer", "refuse", "reject",
    "require", "row", "select", "set", "site", "tonumber", "tostring", "type", "under", "warn",
  },
}
files["tests/policy/mistakes.lua"] = { max_line_length = false }
files["policies/**/*.lua"] = { std = "policy", max_line_length = false }
files["tests/fixtures/function_rule.lua"] = { std = "policy" }
files["tests/fixtures/any_speed.lua"] = { std = "policy" }
files["tests/fixtures/wide.lua"] = { std = "policy" }
files["tests/fuzz/specs/policy.lua"] = { std = "policy" }
files["examples/sites/hall-7.lua"] = { std = "policy" }
files["examples/sites/aws-p5.lua"] = { std = "policy" }
files["examples/sites/campus.lua"] = { std = "policy" }
files["examples/sites/frontier-moe.lua"] = { std = "policy" }
files["examples/sites/ml-hall-3.lua"] = { std = "policy" }
files["examples/sites/own-numbers.lua"] = { std = "policy" }
files["examples/sites/pipeline-anyway.lua"] = { std = "policy" }
files["examples/sites/worth-a-pipeline.lua"] = { std = "policy" }
-- Slurm's plugins load Lua 5.1 and call these.
stds.slurm = {
  globals = { "slurm_job_submit", "slurm_job_modify", "slurm_cli_setup_defaults", "slurm_cli_pre_submit", "slurm_cli_post_submit" },
  read_globals = { "slurm" },
}
files["examples/slurm/*.lua"] = { std = "lua51+slurm" }
exclude_files = {
  "tests/hostile/",      -- they misbehave on purpose
  "stdlib/meta/*.lua",   -- declarations for LuaLS, generated
}
