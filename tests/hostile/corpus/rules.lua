-- rules.lua: policies that load, and whose rules misbehave when they are asked. Each { name, status =, says =, text }.

local function when(body) return "reject { id = 'rule_x', message = 'm', when = function(f)\n" .. body .. "\nend }" end

return {
  { "a rule that never ends", status = 4, says = "policy.lua:2", when "while true do end" },
  { "a rule that eats memory", status = 4, says = "over budget", when "local t = {} while true do t[#t + 1] = {} end" },
  { "a rule that makes long strings", status = 4, says = "over budget", when "local s = 'x' while true do s = s .. s end" },
  { "a rule that compares long strings", status = 4, says = "over budget", when
    "local s = '\\0' for i = 1, 18 do s = s .. s end local a, b, n = s .. 'a', s .. 'b', 0 while true do if a < b then n = n + 1 end end" },
  { "a rule that simulates for ever", status = 4, says = "over budget", when
    "while true do engine.schedule { kind = 'zb_auto', ranks = 16, microbatches = 64 }:simulate { F = 1, I = 1, W = 1 } end" },
  { "a rule that recurses", status = { 3, 4 }, says = "policy.lua:2", when "local function g() return 1 + g() end return g() > 0" },
  { "a rule that raises", status = 3, says = "policy.lua:2: boom", when "error('boom')" },
  { "a rule that raises nothing", status = 3, says = "rule_x", when "error(nil)" },
  { "a rule that raises a table", status = 3, says = "rule_x", when "error({})" },
  { "a rule that asserts", status = 3, says = "policy.lua", when "assert(f.gpus < 0, 'gpus are counted')" },
  { "a rule that raises controls", status = 3, says = "\\x1b", when "error('\\27]0;x\\7')" },
  { "a rule that answers nothing", status = 3, says = "must return true or false", when "local x = 1" },
  { "a rule that answers nil", status = 3, says = "must return true or false", when "return nil" },
  { "a rule that answers a number", status = 3, says = "must return true or false", when "return 1" },
  { "a rule that answers twice", status = 3, says = "2 values", when "return true, false" },
  { "a rule that reads a field that does not exist", status = 3, says = "gpu", when "return f.gpu > 1" },
  { "a rule that reads the record by number", status = 3, says = "policy.lua:2", when "return f[1] == 1" },
  { "a rule that writes into the record", status = 3, says = "read-only", when "f.gpus = 1 return false" },
  { "a rule that adds to the record", status = 3, says = "read-only", when "f.mine = 1 return false" },
  { "a rule that makes a global", status = 3, says = "global", when "x = 1 return false" },
  { "a rule that states", status = 3, says = "statement", when "reject { id = 'y', gpus = over(1), message = 'm' } return false" },
  { "a rule that loads", status = 3, says = "load is not available", when "load('x')() return false" },
  { "a rule that asks the clock", status = 3, says = "os is not available", when "return os.time() > 0" },
  { "a rule that rolls dice", status = 3, says = "random", when "return math.random() > 0.5" },
  { "a rule that hides its error", status = 3, says = "pcall is not available", when "return pcall(error)" },
  { "a rule that requires", status = 3, says = "rule_x", when "return require 'nothere'" },
  { "a rule that compares a number with a text", status = 3, says = "policy.lua:2", when "return f.gpus > '8'" },
  { "a rule that divides by zero", status = 3, says = "policy.lua:2", when "return 1 // 0 > 1" },
  { "a rule that counts its calls", status = 3, says = "'n'", "local n = 0\n" .. when "n = n + 1 return false" },
  { "a rule that remembers in a table", status = 3, says = "policy.lua:3", "local seen = {}\n" .. when "seen[1] = true return false" },
  { "a rule that remembers in a table of a table", status = 3, says = "policy.lua:3", "local seen = { deep = {} }\n" .. when "seen.deep.x = 1 return false" },
  { "a rule that remembers by a function", status = 3, says = "'n'",
    "local n = 0\nlocal function count() n = n + 1 return n end\n" .. when "return count() > 1e9" },
  { "a rule that remembers by a function in a table", status = 3, says = "'n'",
    "local n = 0\nlocal lib = { count = function() n = n + 1 return n end }\n" .. when "return lib.count() > 1e9" },
  { "two rules that speak with each other", status = 3, says = "'said'",
    "local said = false\n" .. when "said = true return false" .. "\nreject { id = 'rule_y', message = 'm', when = function(f) return said end }" },
  { "a rule that replaces its helper", status = 3, says = "'helper'", "local helper = function() return false end\n"
    .. when "local h = helper helper = function() return true end return h()" },
  { "a rule that reads what its file made", status = 0, "local limit = { depth = 1e9 }\n" .. when "return f.pipeline_parallel > limit.depth" },
  { "a rule that walks what its file made", status = 0, "local list = { 3, 5, 7 }\n"
    .. when "local n = 0 for _, v in ipairs(list) do n = n + v end for _, v in pairs(list) do n = n + v end return n ~= 30 or #list ~= 3" },
  { "a rule that makes tables of its own", status = 0, when "local t = {} for i = 1, 100 do t[i] = i end return #t ~= 100" },
  { "an invariant that does not hold", status = 1, says = "mine",
    "invariant { id = 'mine', pipeline_parallel = over(1) }", on = "stdout" },
  { "an invariant that raises", status = 3, says = "policy.lua:1", "invariant { id = 'mine', when = function(f) error('boom') end }" },
  { "a warning that raises", status = 3, says = "policy.lua:1", "warn { id = 'mine', message = 'm', severity = 'note', when = function(f) error('boom') end }" },
  { "a preference that raises", status = 3, says = "policy.lua:1", "prefer { id = 'mine', within = 'any', when = function(f) error('boom') end }" },
  { "a kernel that raises", status = 3, says = "policy.lua:1", "kernel { id = 'mine', why = 'w', recommend = 'deepep', when = function(f) error('boom') end }" },
  { "a row that raises", status = 3, says = "policy.lua:1", "row { id = 'mine', try = { '1f1b' }, when = function(f) error('boom') end }" },
  { "sixty thousand variables that sixty rules read", status = 4, says = "over budget", [[
    local steps = {} for i = 1, 60000 do local n = i steps[i] = function() return n end end
    for k = 1, 60 do reject { id = 'r' .. k, message = 'm', when = function(f) return steps[k]() == -f.gpus end } end]] },
  { "keys whose order is hard to tell", status = 0, [[
    local t = {} for i = 1, 12 do t["k" .. i] = true end
    t[2^63] = 1 t[math.maxinteger] = 2 t[math.maxinteger - 1] = 3 t[math.maxinteger - 2] = 4
    for i = 1, 12 do t["k" .. i] = nil end
    local first for k, v in pairs(t) do first = first or v end
    assert(first == 4, "the least key is not the first: " .. first)
    set { small_run_gpus = 100 }]] },
}
