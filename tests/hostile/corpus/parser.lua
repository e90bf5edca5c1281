-- parser.lua: policy texts that are hard on Lua's parser, most of them within the size of a policy file. Each { name, status =, says =, text }.
-- `status` may be a list where it is Lua's release that decides: what is refused by one limit here is refused by another there.

local function many(piece, size) return piece:rep((size or 250000) // #piece) end

local refused = { 4, 6 }          -- too much for the budget, or for a limit of Lua's parser
local either = { 0, 4, 6 }        -- or small enough to be run

return {
  { "a syntax error", status = 6, says = "policy.lua:1:", "reject {{" },
  { "a text that ends in a string", status = 6, says = "policy.lua:1:", "site 'x" },
  { "a text that ends in a comment", status = 6, says = "policy.lua", "--[[ no end" },
  { "bytecode", status = 6, says = "policy.lua", "\27Lua\x54\0\x19\x93\r\n\x1a\n" },
  { "a byte that is no Lua", status = 6, says = "policy.lua:1:", "\1" },
  { "a NUL byte", status = 6, says = "policy.lua:1:", "site 'x'\0" },
  { "nothing", status = 5, says = "states nothing", "" },
  { "only a comment", status = 5, says = "states nothing", "-- reject everything" },
  { "one byte more than a policy file may have", status = 6, says = "at most", (" "):rep(256 * 1024 + 1) },
  { "a megabyte", status = 6, says = "at most", ("-"):rep(1024 * 1024) },
  { "parentheses within each other", status = refused, says = "policy.lua", "local x = " .. ("("):rep(100000) .. "1" .. (")"):rep(100000) },
  { "tables within each other", status = refused, says = "policy.lua", "local x = " .. ("{"):rep(100000) .. ("}"):rep(100000) },
  { "functions within each other", status = refused, says = "policy.lua", "local x = " .. many("function() return ", 100000) },
  { "blocks within each other", status = refused, says = "policy.lua", many("do ", 100000) },
  { "operators before each other", status = refused, says = "policy.lua", "local x = " .. ("-"):rep(3) .. many("not ", 200000) .. "1" },
  { "powers within each other", status = refused, says = "policy.lua", "local x = 1" .. many(" ^ 1", 200000) },
  { "a long chain of ..", status = refused, says = "policy.lua", "local a = 'x' local x = a" .. many(" .. a", 200000) },
  { "a long chain of and", status = either, "local a local x = a" .. many(" and a") .. " set { small_run_gpus = 100 }" },
  { "a long chain of or", status = either, "local a local x = a" .. many(" or a") .. " set { small_run_gpus = 100 }" },
  { "a long chain of and not", status = either, "local a local x = a" .. many(" and not a") .. " set { small_run_gpus = 100 }" },
  { "a long chain of comparisons", status = either, "local a local x = 1 < 2" .. many(" and 1 < 2") .. " set { small_run_gpus = 100 }" },
  { "a long chain of elseif", status = either, "local a if a then" .. many(" elseif a then") .. " end set { small_run_gpus = 100 }" },
  { "many breaks out of one loop", status = either,
    "local a while a do" .. many(" if a then break end") .. " end set { small_run_gpus = 100 }" },
  { "many gotos to one label", status = either, "local a do" .. many(" if a then goto x end") .. " ::x:: end set { small_run_gpus = 100 }" },
  { "many gotos that nest", status = refused, says = "policy.lua", many("do goto x ") },
  { "many labels", status = either, (function()
      local list = {}
      for i = 1, 25000 do list[i] = "::a" .. i .. "::" end
      return table.concat(list) .. " set { small_run_gpus = 100 }"
    end)() },
  { "a label that is nowhere", status = 6, says = "policy.lua:1:", "goto nowhere" },
  { "more local variables than Lua has", status = 6, says = "policy.lua", many("local a ", 8 * 300) },
  { "many local functions", status = 6, says = "policy.lua", many("local function f() end ", 23 * 300) },
  { "many names", status = either, (function()
      local list = {}
      for i = 1, 15000 do list[i] = "do local v" .. i .. " end" end
      return table.concat(list, " "):sub(1, 240000):match("^(.*end)") .. " set { small_run_gpus = 100 }"
    end)() },
  { "many constants", status = either, (function()
      local list = {}
      for i = 1, 30000 do list[i] = tostring(1e6 + i) end
      return "local x = {" .. table.concat(list, ",") .. "} set { small_run_gpus = 100 }"
    end)() },
  { "many closures", status = either, "local x = {" .. many("function() end,") .. "} set { small_run_gpus = 100 }" },
  { "many empty tables", status = either, "local x = {" .. many("{},") .. "} set { small_run_gpus = 100 }" },
  { "a long string", status = 0, "local x = '" .. ("x"):rep(100000) .. "' set { small_run_gpus = 100 }" },
  { "a string of escapes", status = 0, "local x = '" .. ("\\x41"):rep(50000) .. "' set { small_run_gpus = 100 }" },
  { "a long comment", status = 0, "--[==[" .. ("\n"):rep(200000) .. "]==] set { small_run_gpus = 100 }" },
  { "a number of many digits", status = { 0, 6 }, "local x = 1" .. ("0"):rep(150) .. " set { small_run_gpus = 100 }" },
  { "a number of a hundred thousand digits", status = { 0, 6 }, "local x = " .. ("9"):rep(100000) .. " set { small_run_gpus = 100 }" },
  { "a hexadecimal number of a hundred thousand digits", status = { 0, 6 }, "local x = 0x" .. ("f"):rep(100000) .. " set { small_run_gpus = 100 }" },
  { "an attribute that would close something", status = 6, says = "policy.lua", "local x <close> = {} set { small_run_gpus = 100 }" },
  { "an attribute that does not exist", status = 6, says = "policy.lua:1:", "local x <nope> = 1" },
  { "an integer for that overflows", status = 0, "for i = math.maxinteger - 1, math.maxinteger do end set { small_run_gpus = 100 }" },
  { "a for of step 0", status = 6, says = "step is zero", "for i = 1, 2, 0 do end" },
  { "call after call", status = { 4, 6 }, says = "policy.lua", "local function f() end f" .. many("()", 100000) },
  { "a method of a method", status = { 4, 6 }, says = "policy.lua", "local a = {} a" .. many(".a", 100000) .. " = 1" },
}
