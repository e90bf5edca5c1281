-- statements.lua: statements that cannot be meant, each a policy that is not loaded. { name, status =, says =, text }; says 6 where no status stands.

local rule = "reject { id = 'x', gpus = over(1e9), message = 'm' "

local list = {
  { "a row of nothing", says = "id", "row {}" },
  { "a row without schedules", says = "try", "row { id = 'x' }" },
  { "a row of no schedule", says = "try", "row { id = 'x', try = {} }" },
  { "a row of a schedule that does not exist", says = "1f2b", "row { id = 'x', try = { '1f2b' } }" },
  { "a row of numbers", says = "try", "row { id = 'x', try = { 1, 2 } }" },
  { "a row of itself", says = "contain themselves", "local t = { id = 'x' } t.try = t row(t)" },
  { "a rule without a message", says = "message", "reject { id = 'x', gpus = over(1) }" },
  { "a rule without a condition", says = "condition", "reject { id = 'x', message = 'm' }" },
  { "a rule without a name", says = "id", "reject { gpus = over(1), message = 'm' }" },
  { "a rule whose name is a number", says = "id", "reject { id = 3, gpus = over(1), message = 'm' }" },
  { "a rule whose name is a sentence", says = "id", "reject { id = 'no no', gpus = over(1), message = 'm' }" },
  { "a rule whose name would be obeyed by a terminal", says = "id", "reject { id = '\\27[31m', gpus = over(1), message = 'm' }" },
  { "a rule twice", says = "x", rule .. "} " .. rule .. "}" },
  { "a rule with the name of a default one", says = "too_deep", "reject { id = 'too_deep', gpus = over(1), message = 'm' }" },
  { "a rule with the name of a field", says = "gpus", "reject { id = 'gpus', tokens = over(1), message = 'm' }" },
  { "a field that does not exist", says = "gpus", "reject { id = 'x', gpu = 3, message = 'm' }" },
  { "a word where a number belongs", says = "many", "reject { id = 'x', gpus = 'many', message = 'm' }" },
  { "a table where a number belongs", says = "gpus", "reject { id = 'x', gpus = over({}), message = 'm' }" },
  { "a function where a number belongs", says = "gpus", "reject { id = 'x', gpus = function() end, message = 'm' }" },
  { "a quantity of another kind", says = "gpus", "reject { id = 'x', gpus = over('80GiB'), message = 'm' }" },
  { "no number", says = "nan", "reject { id = 'x', gpus = over(0/0), message = 'm' }" },
  { "more than any number", says = "inf", "reject { id = 'x', gpus = over(1/0), message = 'm' }" },
  { "a name that does not exist", says = "small_runs", "reject { id = 'x', gpus = over 'small_runs', message = 'm' }" },
  { "a condition of a condition", says = "gpus", "reject { id = 'x', gpus = over(over(1)), message = 'm' }" },
  { "a condition without its right side", says = "over", "reject { id = 'x', gpus = over(), message = 'm' }" },
  { "a between of one", says = "between", "reject { id = 'x', gpus = between(1), message = 'm' }" },
  { "a list of nothing", says = "gpus", "reject { id = 'x', schedule = {}, gpus = {}, message = 'm' }" },
  { "a schedule that does not exist", says = "zb_h3", "reject { id = 'x', schedule = 'zb_h3', message = 'm' }" },
  { "a message of a field that does not exist", says = "gpu", "reject { id = 'x', gpus = over(1), message = '{gpu}' }" },
  { "a message that is a number", says = "message", "reject { id = 'x', gpus = over(1), message = 7 }" },
  { "a refusal that recommends what does not exist", says = "nope", "refuse { id = 'x', gpus = over(1), message = 'm', recommend = 'nope' }" },
  { "a parameter that does not exist", says = "small_run_gpus", "set { small_run_gpu = 1 }" },
  { "a parameter of another kind", says = "memory_headroom", "set { memory_headroom = 'much', reason = 'r' }" },
  { "a share over all", says = "12 %", "set { memory_headroom = 12 }" },
  { "a share under nothing", says = "memory_headroom", "set { memory_headroom = -0.1, reason = 'r' }" },
  { "a count of nothing to divide by", says = "context_rank_tokens", "set { context_rank_tokens = 0 }" },
  { "a count that is no integer", says = "small_run_gpus", "set { small_run_gpus = 1.5 }" },
  { "a count over all", says = "default_batch_tokens", "set { default_batch_tokens = 1e300 }" },
  { "a parameter of no number", says = "tie_fraction", "set { tie_fraction = 0/0 }" },
  { "schedules of none", says = "schedules", "set { schedules = {} }" },
  { "a parameter without a meaning", says = "meaning", "parameter { id = 'mine', value = 1, unit = 'gpu', loosens = 'none' }" },
  { "a parameter of a unit that does not exist", says = "unit", "parameter { id = 'mine', value = 1, unit = 'parsec', loosens = 'none', meaning = 'm' }" },
  { "a parameter with the name of a field", says = "gpus", "parameter { id = 'gpus', value = 1, unit = 'gpu', loosens = 'none', meaning = 'm' }" },
  { "a rule taken away without a reason", says = "reason", "disable { id = 'too_deep' }" },
  { "a rule taken away that does not exist", says = "too_deeper", "disable { id = 'too_deeper', reason = 'r' }" },
  { "a rule taken away until a day that is none", says = "2027-02-30", "disable { id = 'too_deep', reason = 'r', expires = '2027-02-30' }" },
  { "a rule loosened without a reason", says = "reason", "change { id = 'too_deep', pipeline_parallel = over(128) }" },
  { "a limit loosened without a reason", says = "reason", "set { max_pipeline_depth = 128 }" },
  { "a change of nothing", says = "too_deep", "change { id = 'too_deep' }" },
  { "a change of what does not exist", says = "nope", "change { id = 'nope', gpus = over(1) }" },
  { "a kernel without a reason", says = "why", "kernel { id = 'deepep' }" },
  { "a preference without its width", says = "within", "prefer { id = 'x', gpus = over(1) }" },
  { "a site without a name", says = "name", "site '' set { small_run_gpus = 100 }" },
  { "a site of a number", says = "site", "site(3)" },
  { "two names of a site", says = "site", "site 'x' site 'y' set { small_run_gpus = 100 }" },
  { "the name of the default layer", says = "default", "site 'default' set { small_run_gpus = 100 }" },
  { "a statement of nothing", says = "reject", "reject()" },
  { "a statement of a text", says = "reject", "reject 'x'" },
  { "a statement that does not exist", says = "rejct", "rejct { id = 'x' }" },
  { "a file beside that is not there", says = "nothere", "require 'nothere'" },
  { "a file above", says = "plain name", "require '../policy'" },
  { "a file by its path", says = "plain name", "require '/etc/passwd'" },
  { "a file with a NUL in its name", says = "plain name", "require 'a\\0b'" },
  { "itself", says = "requires itself", "require 'policy'" },
  { "too many values", says = "20000 values", "local t = { id = 'x', try = {} } for i = 1, 30000 do t.try[i] = '1f1b' end row(t)" },
  { "values that nest too deep", says = "nested deeper than 8", "local t = {} for i = 1, 100 do t = { t } end row { id = 'x', try = t }" },
}

-- More of each statement than a table has room for: loaded, or refused by a limit that is named; never a bug.
for _, count in ipairs { 60, 100, 300, 3000 } do
  list[#list + 1] = { count .. " rules", status = count < 100 and 0 or { 0, 6 },
                      string.format("for i = 1, %d do reject { id = 'r' .. i, pipeline_parallel = over(1000 + i), message = 'm' } end", count) }
  list[#list + 1] = { count .. " refusals", status = { 0, 6 },
                      string.format("for i = 1, %d do refuse { id = 'r' .. i, pipeline_parallel = over(1000 + i), message = 'm', recommend = '1f1b' } end", count) }
  list[#list + 1] = { count .. " rows", status = { 0, 6 },
                      string.format("for i = 1, %d do row { id = 'r' .. i, gpus = over(100000 + i), try = { '1f1b' } } end", count) }
  list[#list + 1] = { count .. " warnings", status = { 0, 6 },
                      string.format("for i = 1, %d do warn { id = 'r' .. i, gpus = over(100000 + i), message = 'm', severity = 'note' } end", count) }
  list[#list + 1] = { count .. " preferences", status = { 0, 6 },
                      string.format("for i = 1, %d do prefer { id = 'r' .. i, gpus = over(100000 + i), within = 'any' } end", count) }
  list[#list + 1] = { count .. " parameters", status = { 0, 6 }, string.format(
                      "for i = 1, %d do parameter { id = 'r' .. i, value = 1, unit = 'gpu', loosens = 'none', meaning = 'm' } end", count) }
  list[#list + 1] = { count .. " functions", status = { 0, 1, 6 },
                      string.format("for i = 1, %d do reject { id = 'r' .. i, when = function(f) return false end, message = 'm' } end", count) }
end

for _, entry in ipairs(list) do entry.status = entry.status or 6 end
return list
