-- native.lua: policies that work or grow inside one instruction of Lua's, where no instruction is counted. Each { name, status =, says =, text }.

-- A text that runs at load; `site` states something, so that what ends well is planned.
local function loading(text) return text .. "\nset { small_run_gpus = 100 }\n" end

local spent = 4

return {
  { "a loop that never ends", status = spent, says = "policy.lua:1", loading "while true do end" },
  { "a loop of nothing", status = spent, says = "over budget", loading "for i = 1, math.maxinteger do end" },
  { "a loop of floats that never moves", status = spent, says = "over budget", loading "for x = 2^53, 2^54, 0.25 do end" },
  { "a loop of gotos", status = spent, says = "policy.lua", loading "::a:: goto a" },
  { "a recursion", status = { 4, 6 }, says = "policy.lua", loading "local function f() return 1 + f() end f()" },
  { "a recursion through a table", status = { 4, 6 }, says = "policy.lua", loading "local t = {} function t.f() return { t.f() } end t.f()" },
  { "tail calls for ever", status = spent, says = "policy.lua", loading "local function f() return f() end f()" },
  { "two functions that call each other", status = spent, says = "policy.lua",
    loading "local f, g function f() return g() end function g() return f() end f()" },
  { "arguments that double", status = { 4, 6 }, says = "policy.lua",
    loading "local function f(n, ...) if n == 0 then return end return f(n - 1, 1, ..., ...) end local function g(n, ...) if n > 0 then g(n - 1, 1, 2, 3, 4, ...) end end g(10000000)" },
  { "select of many, many times", status = spent, says = "policy.lua", loading
    "local function n(...) return select('#', ...) end local t = {} local function f(k, ...) if k > 0 then return f(k - 1, k, ...) end while true do n(...) end end f(200)" },
  { "select from the end of many", status = { 4, 6 }, says = "policy.lua", loading
    "local function f(k, ...) if k > 0 then return f(k - 1, k, k, k, k, k, k, k, k, ...) end while true do local x = select(-1, ...) end end f(3000)" },
  { "math.max of ever more", status = { 4, 6 }, says = "policy.lua", loading
    "local function f(k, ...) if k > 0 then return f(k - 1, k, k, k, k, k, k, k, k, ...) end while true do local x = math.max(...) end end f(3000)" },
  { "math.min of ever more", status = { 4, 6 }, says = "policy.lua", loading
    "local function f(k, ...) if k > 0 then return f(k - 1, k, k, k, k, k, k, k, k, ...) end while true do local x = math.min(...) end end f(3000)" },
  { "strings that double", status = spent, says = "policy.lua", loading "local s = 'x' while true do s = s .. s end" },
  { "strings that grow by a byte", status = spent, says = "policy.lua", loading "local s = 'x' while true do s = s .. 'y' end" },
  { "strings that double in one instruction", status = spent, says = "policy.lua",
    loading "local s = 'xxxxxxxx' while true do s = s..s..s..s..s..s..s..s..s..s..s..s..s..s..s..s end" },
  { "long strings compared for order", status = { 4, 6 }, says = "policy.lua", loading
    "local s = 'x' for i = 1, 20 do s = s .. s end local a, b = s .. 'a', s .. 'b' while true do local x = a < b end" },
  { "long strings of zeros compared for order", status = { 4, 6 }, says = "policy.lua", loading
    "local s = '\\0\\0\\0\\0' for i = 1, 18 do s = s .. s end local a, b = s .. 'a', s .. 'b' while true do local x = a <= b end" },
  { "long strings compared for order, by a for", status = { 4, 6 }, says = "policy.lua", loading
    "local s = '\\0' for i = 1, 19 do s = s .. s end local a, b = s .. 'a', s .. 'b' for i = 1, 1e9 do if a > b then i = 1 end end" },
  { "long strings compared for being equal", status = { 4, 6 }, says = "policy.lua", loading
    "local s = 'x' for i = 1, 19 do s = s .. s end local a, b = s .. 'a', s .. 'a' while true do local x = a == b end" },
  { "long strings that are not equal", status = { 4, 6 }, says = "policy.lua", loading
    "local s = 'x' for i = 1, 19 do s = s .. s end local a, b = s .. 'a', s .. 'b' while true do local x = a ~= b end" },
  { "long strings as keys", status = { 4, 6 }, says = "policy.lua", loading
    "local s, t = 'x', {} for i = 1, 15 do s = s .. s end while true do t[s .. 'a'] = 1 end" },
  { "long strings as numbers", status = { 4, 6 }, says = "policy.lua", loading
    "local z = '0' for i = 1, 19 do z = z .. z end z = z .. '1' local n = 0 while true do n = n + z end" },
  { "long strings of blanks as numbers", status = { 4, 6 }, says = "policy.lua", loading
    "local z = ' ' for i = 1, 19 do z = z .. z end z = z .. '1' local n = 0 while true do n = n + z end" },
  { "long strings as numbers in math.max", status = { 4, 6 }, says = "policy.lua", loading
    "local z = ' ' for i = 1, 19 do z = z .. z end z = z .. '1' while true do local x = math.max(z, z, z, z) end" },
  { "long strings as bits", status = { 4, 6 }, says = "policy.lua", loading
    "local z = '0' for i = 1, 19 do z = z .. z end z = z .. '1' while true do local x = z & 1 end" },
  { "long strings as a limit of for", status = { 0, 4, 6 }, says = "policy.lua", loading
    "local z = '0' for i = 1, 19 do z = z .. z end for i = 1, z .. '1' do end" },
  { "long strings negated", status = { 4, 6 }, says = "policy.lua", loading
    "local z = '0' for i = 1, 19 do z = z .. z end z = z .. '1' while true do local x = -z end" },
  { "long strings through tostring", status = { 4, 6 }, says = "policy.lua", loading
    "local z = 'x' for i = 1, 19 do z = z .. z end while true do local x = tostring(z .. 'a') end" },
  { "long strings through tonumber", status = 6, says = "at most 64 characters", loading
    "local z = '1' for i = 1, 10 do z = z .. z end tonumber(z)" },
  { "long strings in messages", status = { 4, 6 }, says = "policy.lua", loading "local z = 'x' for i = 1, 19 do z = z .. z end error(z)" },
  { "a message of controls", status = 6, says = "\\x1b", loading "error('\\27[2J\\7')" },
  { "a message that writes right to left", status = 6, says = "\\u{202e}", loading "error('\\u{202e}txet')" },
  { "a message of half a character", status = 6, says = "\\xe2", loading "error('\\xe2\\x82')" },
  { "a table that grows", status = spent, says = "policy.lua", loading "local t = {} while true do t[#t + 1] = 1 end" },
  { "a table of tables", status = spent, says = "policy.lua", loading "local t while true do t = { t } end" },
  { "a table that grows by keys", status = spent, says = "policy.lua", loading "local t, i = {}, 0 while true do i = i + 1 t['k' .. i] = true end" },
  { "a table that grows by floats", status = spent, says = "policy.lua", loading "local t, i = {}, 0.5 while true do i = i + 1 t[i] = true end" },
  { "functions without end", status = spent, says = "policy.lua", loading "local t = {} while true do t[#t + 1] = function() return t end end" },
  { "a table with holes, asked for its length", status = spent, says = "policy.lua", loading
    "local t = {} for i = 1, 60 do t[2 ^ i // 1 | 0] = 1 end while true do local n = #t end" },
  { "pairs of a large table, many times", status = spent, says = "policy.lua", loading
    "local t = {} for i = 1, 20000 do t['k' .. i] = i end while true do for k in pairs(t) do break end end" },
  { "pairs within pairs", status = spent, says = "policy.lua", loading
    "local t = {} for i = 1, 3000 do t[i] = i end while true do for _ in pairs(t) do for _ in pairs(t) do end end end" },
  { "ipairs of a table that grows", status = spent, says = "policy.lua", loading "local t = { 1 } for i in ipairs(t) do t[i + 1] = 1 end" },
  { "garbage without end", status = spent, says = "policy.lua", loading "while true do local t = { {}, {}, {} } end" },
  { "strings without end", status = spent, says = "policy.lua", loading "local i = 0 while true do i = i + 1 local s = 'k' .. i end" },
  { "integers divided by zero", status = 6, says = "divide by zero", loading "local x = 1 // 0" },
  { "the rest of a division by zero", status = 6, says = "perform", loading "local x = 1 % 0" },
  { "arithmetic on nothing", status = 6, says = "policy.lua:1:", loading "local x = nil + 1" },
  { "a call of nothing", status = 6, says = "policy.lua:1:", loading "local x; x()" },
  { "an index of nothing", status = 6, says = "policy.lua:1:", loading "local x; local y = x.y" },
  { "a key of nothing", status = 6, says = "policy.lua:1:", loading "local t = {} t[nil] = 1" },
  { "a key that is no number", status = 6, says = "policy.lua:1:", loading "local t = {} t[0/0] = 1" },
  { "an error of nothing", status = 6, says = "policy.lua", loading "error(nil)" },
  { "an error of a table", status = 6, says = "policy.lua", loading "error({})" },
  { "a failed assertion", status = 6, says = "here", loading "assert(false, 'here')" },
  { "a failed assertion of nothing", status = 6, says = "policy.lua", loading "assert(nil)" },
}
