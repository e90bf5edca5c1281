-- SPDX-License-Identifier: Apache-2.0
-- shell_script.lua: what the commands of a shell script would be given, as far as the script itself says. Nothing is executed: $(…),
-- files that a script sources, its arguments and variables that come from outside are not known, and what needs them says so.
--
-- script.run(text, file, given, on_command) calls on_command(words, line) for each command; given: name → text of variables. A word is
--   { text, line, rests: { name → why } or nil, unknown: { name, … } or nil, open: is it not known how many words it is? }
-- rests: what it is taken for that somebody may say otherwise: a default, a branch. In a text what is not known stands as it was written.
-- Of branches whose condition is not known the first is taken, of loops one turn; of a script's own arguments, where a condition asks,
-- none.

local arithmetic = require "pipeplan.input.launch.shell_arithmetic"
local failure = require "pipeplan.base.failure"
local lists = require "pipeplan.base.lists"
local syntax = require "pipeplan.input.launch.shell_syntax"

local MOST_BYTES = 4 << 20      -- that all expansions of a script make
local MOST_LEVELS = 24          -- of scripts in words of scripts

local machine = {}
machine.__index = machine

function machine:spend(bytes, line)
  self.shared.spent = self.shared.spent + bytes + 16
  if self.shared.spent > MOST_BYTES then
    failure.usage("%s:%d: the script expands to more than %d MiB: not read", self.file, line > 0 and line or self.shared.line,
                  MOST_BYTES >> 20)
  end
end

-- What conditions around here add to what a value rests on.
function machine:resting(rests)
  if not next(self.conditions) then return rests end
  self:spend(16 * #self.conditions, self.shared.line)
  local out = lists.with(rests or {})
  for _, condition in ipairs(self.conditions) do out[condition] = true end
  return out
end

-- Adds what a value rests on to `into`, which its caller alone holds; nil where there is none.
local function add_rests(into, rests)
  if not rests then return into end
  into = into or {}
  for name in pairs(rests) do into[name] = true end
  return into
end

-- -------------------------------------------------------------------------------------------------------------------------- expansion

local function piece(text, part, more)
  return lists.with({ text = text, line = part.line, quoted = part.quoted, split = not part.quoted }, more)
end

-- "$@" and "${list[@]}" are any number of words in quotes too.
local function unknown(name, written, part)
  local many = written == "$@" or written == "${@}" or written:find "^%${[%w_]+%[@%]}$" ~= nil
  return piece(written, part, { unknown = name, split = many or not part.quoted })
end

local function is_positional(name) return name:find "^[%d@*#]" ~= nil end

-- The pieces of a variable's value; nil: nobody sets it.
function machine:value(name, part)
  local held = self.variables[name]
  if not held then return nil end
  if held.words then  -- an array without an index is its first element
    local first = held.words[1]
    if not first then return {} end
    held = { pieces = { { text = first.text, line = first.line, rests = first.rests, unknown = first.unknown and first.unknown[1] } } }
  elseif held.map then return nil end
  local out = {}
  for i, each in ipairs(held.pieces) do
    self:spend(#each.text, part.line)
    out[i] = { text = each.text, line = each.line or part.line, rests = each.rests, unknown = each.unknown, quoted = part.quoted,
               split = not part.quoted }
  end
  return out
end

-- All elements of an array, each a word of its own, as pieces with breaks between.
function machine:elements(name, part)
  local held, out = self.variables[name], {}
  if not held or not held.words then return self:value(name, part) end
  for i, word in ipairs(held.words) do
    self:spend(#word.text, part.line)
    if i > 1 then out[#out + 1] = { break_here = true } end
    out[#out + 1] = { text = word.text, line = word.line, rests = word.rests, unknown = word.unknown and word.unknown[1], quoted = true,
                      split = word.open or not part.quoted }
  end
  return out
end

local function text_of(pieces)
  local list, known, rests = {}, true, nil
  for i, each in ipairs(pieces) do
    list[i] = each.break_here and " " or each.text
    known = known and not each.unknown
    rests = add_rests(rests, each.rests)
  end
  return table.concat(list), known, rests
end

local function with_rest(pieces, name)
  for _, each in ipairs(pieces) do
    if not each.break_here then each.rests = lists.with(each.rests or {}, { [name] = true }) end
  end
  return pieces
end

-- ${…}
function machine:braces(part)
  local inner, written = part.braces, "${" .. part.braces .. "}"
  local name, rest = inner:match "^([%a_][%w_]*)(.*)$"
  if not name then
    name, rest = inner:match "^([%d@*]+)(.*)$"
  end
  if not name then return { unknown(inner, inner:find "^<" and inner or written, part) } end
  local index, after = rest:match "^%[([^%]]*)%](.*)$"
  if index then rest = after end
  local found
  if index == "@" or index == "*" then found = self:elements(name, part)
  elseif index then
    local key = text_of(self:expand(syntax.parts(index:gsub("^['\"](.*)['\"]$", "%1"), self.file, part.line)))
    local held = self.variables[name]
    local word = held and (held.map and held.map[key] or held.words and held.words[(math.tointeger(tonumber(key)) or -2) + 1])
    if word then
      found = { piece(word.text, part, { rests = word.rests, unknown = word.unknown and word.unknown[1], line = word.line }) }
    end
  else found = self:value(name, part) end
  local op, default = rest:match "^(:?[-=+?])(.*)$"
  if default then  -- one quoted word: its quotes go, as a shell's do
    local literal = not part.quoted and default:match "^'([^']*)'$"
    default = literal and literal:gsub("[\\$`]", "\\%0") or default:match '^"([^"\\`]*)"$' or default
  end
  if rest == "" then
    return found or { unknown(name, written, part) }
  elseif not op then return { unknown(name, written, part) } end
  local kind, empty = op:sub(-1), false
  if found and op:sub(1, 1) == ":" then
    local text, known = text_of(found)
    empty = known and text == ""
  end
  local set = found and not empty
  local function otherwise()
    if self.shared.level >= MOST_LEVELS then return { unknown(name, written, part) } end
    self.shared.level = self.shared.level + 1
    local pieces = self:expand(syntax.parts(default, self.file, part.line), part.quoted)
    self.shared.level = self.shared.level - 1
    return pieces
  end
  if kind == "+" then
    if set then return otherwise() end
    return found and {} or { piece("", part, { rests = { [name] = true } }) }
  elseif set then return found
  elseif kind == "?" then return { unknown(name, written, part) } end
  local pieces = otherwise()
  if #pieces == 0 then pieces = { piece("", part) } end
  if not found then with_rest(pieces, name) end  -- what was set to nothing here needs nobody outside
  if kind == "=" then self.variables[name] = { pieces = table.move(pieces, 1, #pieces, 1, {}) } end
  return pieces
end

-- The number that a variable holds, for arithmetic.
function machine:number(name, rests)
  local pieces = self:value(name, { line = 0 })
  if not pieces then return nil end
  local text, known, more = text_of(pieces)
  for key in pairs(more or {}) do rests[key] = true end
  return known and arithmetic.value(text, function() return nil end) or nil
end

function machine:calculated(part)
  local rests = {}
  local text = part.arithmetic
  if text:find "%${[^}]*[^%w_}]" or text:find "%$%(" then  -- defaults in it
    local pieces = self:expand(syntax.parts(text, self.file, part.line))
    local known, more
    text, known, more = text_of(pieces)
    if not known then return unknown("$((" .. part.arithmetic .. "))", "$((" .. part.arithmetic .. "))", part) end
    rests = lists.with(more or {})
  end
  local value = arithmetic.value(text, function(name) return self:number(name, rests) end)
  if not value then
    local missing = text:match "%$?([%a_][%w_]*)"
    for name in text:gmatch "([%a_][%w_]*)" do
      if not self:number(name, {}) then
        missing = name
        break
      end
    end
    return unknown(missing or "$((" .. text .. "))", "$((" .. part.arithmetic .. "))", part)
  end
  return piece(string.format("%d", value), part, { rests = next(rests) and rests or nil, split = false })
end

-- Parts of a word → pieces.
function machine:expand(parts, quoted)
  local out = {}
  for _, part in ipairs(parts) do
    if quoted ~= nil and part.quoted ~= quoted then part = lists.with(part, { quoted = quoted }) end
    if part.text then
      out[#out + 1] = { text = part.text, line = part.line, quoted = part.quoted, split = quoted == false }
    elseif part.arithmetic then out[#out + 1] = self:calculated(part)
    elseif part.command then
      local written = "$(" .. part.command .. ")"
      out[#out + 1] = unknown(#written > 40 and written:sub(1, 37) .. "…" or written, written, part)
    elseif part.braces then
      for _, each in ipairs(self:braces(part)) do out[#out + 1] = each end
    else
      local found = self:value(part.name, part)
      for _, each in ipairs(found or { unknown("$" .. part.name, "$" .. part.name, part) }) do out[#out + 1] = each end
      if not found and part.name:find "^[%a_]" then out[#out].unknown = part.name end
    end
  end
  for _, each in ipairs(out) do
    local size = each.text and #each.text or 0
    for _ in pairs(each.rests or {}) do size = size + 16 end
    self:spend(size, each.line or 0)
  end
  return out
end

-- Pieces → words. What was not quoted falls into words at its spaces.
local function words_of(pieces)
  local out, current = {}, nil
  local function add(text, from)
    current = current or { texts = {}, line = from.line, open = true }
    current.texts[#current.texts + 1] = text
    if text ~= "" and #current.texts == 1 then current.line = from.line end
    current.rests = add_rests(current.rests, from.rests)
    if from.unknown then
      current.unknown = current.unknown or {}
      current.unknown[#current.unknown + 1] = from.unknown
      current.open = current.open and from.split and #current.unknown == 1
    elseif text ~= "" then current.open = false end
  end
  local function finish()
    if current then
      out[#out + 1] = { text = table.concat(current.texts), line = current.line, rests = current.rests, unknown = current.unknown,
                        open = current.open and current.unknown ~= nil or nil }
    end
    current = nil
  end
  for _, each in ipairs(pieces) do
    if each.break_here then finish()
    elseif each.split and not each.unknown then
      local at = 1
      while at <= #each.text do
        local first, last = each.text:find("[ \t\r\n]+", at)
        if first ~= at then add(each.text:sub(at, (first or 0) - 1), each) end
        if not first then break end
        finish()
        at = last + 1
      end
    else add(each.text, each) end
  end
  finish()
  return out
end

function machine:words(list)
  local out = {}
  for _, word in ipairs(list) do
    local found = words_of(self:expand(word))
    if word.key and found[1] then found[1].key = word.key end
    for _, each in ipairs(found) do
      each.rests = self:resting(each.rests)
      out[#out + 1] = each
    end
  end
  return out
end

-- -------------------------------------------------------------------------------------------------------------------------- statements

function machine:assign(node)
  if node.array then
    local words = self:words(node.array)
    local held = { words = words }
    for _, word in ipairs(words) do
      if word.key then
        held.map = held.map or {}
        held.map[word.key] = word
      end
    end
    if held.map then held.words = nil end
    local before = node.append and self.variables[node.name]
    if before and before.words and held.words then
      table.move(words, 1, #words, #before.words + 1, before.words)
      held = before
    end
    self.variables[node.name] = held
    return
  end
  local pieces = self:expand(node.value)
  for _, each in ipairs(pieces) do
    if each.break_here then each.text, each.break_here = " ", nil end
    each.rests = self:resting(each.rests)
  end
  if #pieces == 0 and next(self.conditions) then pieces[1] = { text = "", line = node.line, rests = self:resting() } end
  if node.index then
    local key = text_of(self:expand(node.index))
    local held = self.variables[node.name]
    if not held or not held.map then held = { map = {} } end
    local text, known, rests = text_of(pieces)
    held.map[key] = { text = text, line = node.line, rests = rests, unknown = not known and { node.name } or nil }
    self.variables[node.name] = held
  else
    local before = node.append and self.variables[node.name]
    local list = before and before.pieces or {}
    self.variables[node.name] = { pieces = table.move(pieces, 1, #pieces, #list + 1, list) }
  end
end

local compare = {
  ["="] = function(a, b) return a == b end, ["=="] = function(a, b) return a == b end, ["!="] = function(a, b) return a ~= b end,
  ["-eq"] = function(a, b) return a == b end, ["-ne"] = function(a, b) return a ~= b end, ["-lt"] = function(a, b) return a < b end,
  ["-le"] = function(a, b) return a <= b end, ["-gt"] = function(a, b) return a > b end, ["-ge"] = function(a, b) return a >= b end,
}

-- The word of a condition as a text, where nobody sets what is not set here: empty. nil: not known.
function machine:tested(word, rests)
  local texts = {}
  for _, each in ipairs(self:expand(word)) do
    if each.unknown then
      if not each.unknown:find "^%$?[%a_][%w_]*$" and not is_positional(each.unknown:gsub("^%$", "")) then return nil end
      rests[is_positional(each.unknown:gsub("^%$", "")) and "no arguments" or each.unknown:gsub("^%$", "")] = true
      texts[#texts + 1] = each.unknown == "$#" and "0" or ""
    else texts[#texts + 1] = each.break_here and " " or each.text end
    for name in pairs(each.rests or {}) do rests[name] = true end
  end
  return table.concat(texts)
end

local function both(a, b)
  if a == false or b == false then return false end
  return a and b   -- nil where one is not known
end

local function either(a, b)
  if a or b then return true end
  if a == nil or b == nil then return nil end
  return false
end

local function bare(word) return word and #word == 1 and not word[1].quoted and word[1].text end

-- One condition, without what joins it to others.
function machine:test_of(list, rests)
  local negated, result = bare(list[1]) == "!", nil
  if negated then table.remove(list, 1) end
  if #list == 1 then
    local text = self:tested(list[1], rests)
    if text then result = text ~= "" end
  elseif #list == 2 and (bare(list[1]) == "-z" or bare(list[1]) == "-n") then
    local text = self:tested(list[2], rests)
    if text then result = (text == "") == (bare(list[1]) == "-z") end
  elseif #list == 3 and compare[bare(list[2])] then
    local a, b = self:tested(list[1], rests), self:tested(list[3], rests)
    if bare(list[2]):find "^%-" then a, b = math.tointeger(tonumber(a)), math.tointeger(tonumber(b)) end
    if a and b and not (type(b) == "string" and b:find "[*?]") then result = compare[bare(list[2])](a, b) end
  end
  if result ~= nil and negated then result = not result end
  return result
end

-- [ … ], [[ … ]], test …: true, false or nil, and what that rests on. "And" binds tighter than "or", in a test as in [[ … ]].
function machine:test(words, rests)
  local any, all, list = false, true, {}
  local function join()
    all = both(all, self:test_of(list, rests))
    list = {}
  end
  for _, word in ipairs(words) do
    local op = bare(word)
    if (op == "&&" or op == "-a") and #list > 0 then join()
    elseif (op == "||" or op == "-o") and #list > 0 then
      join()
      any, all = either(any, all), true
    elseif op ~= "[" and op ~= "[[" and op ~= "]" and op ~= "]]" and op ~= "test" then list[#list + 1] = word end
  end
  join()
  return either(any, all)
end

function machine:under(condition, run)
  self.conditions[#self.conditions + 1] = condition
  run()
  self.conditions[#self.conditions] = nil
end

local quiet = { echo = true, printf = true, cat = true }

function machine:nested(text, line)
  if self.level >= MOST_LEVELS then failure.usage("%s:%d: scripts in words of scripts, more than %d deep", self.file, line, MOST_LEVELS) end
  local inner = setmetatable({ file = self.file, variables = self.variables, conditions = self.conditions, on_command = self.on_command,
                               shared = self.shared, level = self.level + 1 }, machine)
  self:spend(#text, line)
  inner:run(syntax.parse(text, self.file, line, self.level))
end

-- Is that word a script of its own, as in bash -c "…"?
local function is_script(word, before)
  return word.text:find "%s" and (before == "-c" or before == "eval" or before == "-lc") and not word.open
end

function machine:command(node)
  for _, assigned in ipairs(node.assigns) do self:assign(assigned) end
  local first = node.words[1] and #node.words[1] == 1 and node.words[1][1].text
  if #node.words == 0 or quiet[first] then return true end
  if first == "[" or first == "[[" or first == "test" then
    local rests = {}
    local result = self:test(node.words, rests)
    return result, rests
  elseif first == "true" or first == ":" then return true
  elseif first == "false" then return false end
  local words = self:words(node.words)
  if first == "eval" then
    local texts = {}
    for i = 2, #words do texts[#texts + 1] = words[i].text end
    self:nested(table.concat(texts, " "), words[1].line)
    return true
  end
  for i, word in ipairs(words) do
    if is_script(word, words[i - 1] and words[i - 1].text) then
      self.on_command(words, node.line, true)
      self:nested(word.text, word.line)
      return true
    end
  end
  self.on_command(words, node.line, false)
  return true
end

-- Names that these commands would assign, into a set.
local function assigned_by(nodes, names)
  for _, node in ipairs(nodes or {}) do
    for _, each in ipairs(node.assigns or {}) do names[each.name] = true end
    assigned_by(node.body, names)
    assigned_by(node.otherwise, names)
    for _, list in ipairs { node.clauses or {}, node.arms or {} } do
      for _, each in ipairs(list) do assigned_by(each.body, names) end
    end
  end
  return names
end

-- Commands that were not run, for a condition that somebody may fulfil: what they would assign is what it is because of that.
function machine:passed_over(nodes, reasons)
  if #reasons == 0 then return end
  for name in pairs(assigned_by(nodes, {})) do
    local held = self.variables[name] or {}
    for _, each in pairs(held.words or held.map or held.pieces or {}) do
      self:spend(16 * #reasons, self.shared.line)
      each.rests = lists.with(each.rests or {})
      for _, reason in ipairs(reasons) do each.rests[reason] = true end
    end
  end
end

function machine:branch(node)
  local added, taken = 0, node.otherwise
  for _, clause in ipairs(node.clauses) do
    local result, rests = self:run(clause.test)
    for _, name in ipairs(lists.sorted_keys(rests or {})) do   -- what was not taken was not by them either
      self.conditions[#self.conditions + 1] = name
      added = added + 1
    end
    if result ~= false then
      taken = clause.body
      if result == nil then
        self.conditions[#self.conditions + 1] = "the condition at line " .. node.line
        added = added + 1
      end
      break
    end
  end
  local reasons = table.move(self.conditions, #self.conditions - added + 1, #self.conditions, 1, {})
  if taken then self:run(taken) end
  for _ = 1, added do self.conditions[#self.conditions] = nil end
  for _, clause in ipairs(node.clauses) do
    if clause.body ~= taken then self:passed_over(clause.body, reasons) end
  end
  if node.otherwise ~= taken then self:passed_over(node.otherwise, reasons) end
end

-- A shell's pattern of * and ?. Only the last * that was met is ever tried again: what those before it took fits as well as anything.
local function matches(text, pattern)
  local at, from, star, taken = 1, 1, nil, nil
  while at <= #text do
    local c = pattern:sub(from, from)
    if c == "*" then star, taken, from = from, at, from + 1
    elseif c == "?" or c ~= "" and c == text:sub(at, at) then at, from = at + 1, from + 1
    elseif star then at, from, taken = taken + 1, star + 1, taken + 1
    else return false end
  end
  return pattern:find("^%**$", from) ~= nil
end

function machine:case(node)
  local rests = {}
  local text = self:tested(node.word, rests)
  if rests["no arguments"] then return end
  for _, arm in ipairs(node.arms) do
    local hit = text == nil
    for _, pattern in ipairs(arm.patterns) do
      if text and not hit and #pattern < 200 then
        self:spend(#text * (1 + #pattern // 8), node.line)
        hit = matches(text, pattern)
      end
    end
    if hit then
      if text == nil or next(rests) then self:under("the case at line " .. node.line, function() self:run(arm.body) end)
      else self:run(arm.body) end
      return
    end
  end
end

function machine:loop(node)
  if node.test then
    local result = self:run(node.test)
    if result ~= (node.negated or false) then self:run(node.body) end
    return
  elseif not node.name then
    self:run(node.body)
    return
  end
  local words = self:words(node.words)
  local first = words[1]
  if first then
    local rests = #words > 1 and lists.with(first.rests or {}, { ["the loop at line " .. node.line] = true }) or first.rests
    self.variables[node.name] = { pieces = { { text = first.text, line = first.line, rests = rests,
                                               unknown = first.unknown and first.unknown[1] } } }
  end
  self:run(node.body)
end

-- Runs a list; the status of its last command: true, false, nil: not known; and what that rests on.
function machine:run(nodes)
  local status, rests = true, nil
  for _, node in ipairs(nodes) do
    local skip = node.after == "&&" and status == false or node.after == "||" and status == true
    local condition = node.after and status == nil and not skip and "the condition at line " .. node.line or nil
    local added = 0
    if node.after and not skip then
      for _, name in ipairs(lists.sorted_keys(rests or {})) do
        self.conditions[#self.conditions + 1] = name
        added = added + 1
      end
    end
    if condition then
      self.conditions[#self.conditions + 1] = condition
      added = added + 1
    end
    self.shared.line = node.line or self.shared.line
    self:spend(0, self.shared.line)
    if skip then
      self:passed_over({ node }, lists.sorted_keys(rests or {}))
      goto continue
    end
    if node.type == "command" then
      status, rests = self:command(node)
    elseif node.type == "branch" then self:branch(node) status, rests = true, nil
    elseif node.type == "case" then self:case(node) status, rests = true, nil
    elseif node.type == "loop" then self:loop(node) status, rests = true, nil
    elseif node.type == "group" then status, rests = self:run(node.body)
    elseif node.type == "heredoc" and node.text:find "%-%-[%a]" then self:nested(node.text, node.line) end
    if node.inverted and status ~= nil then status = not status end
    ::continue::
    for _ = 1, added do self.conditions[#self.conditions] = nil end
  end
  return status, rests
end

local script = {}

-- Returns the variables as they are at the end: name → { words } or { pieces } or { map }; script.words makes words of one.
function script.run(text, file, given, on_command)
  local shared = { spent = 0, level = 0, line = 1 }
  local self = setmetatable({ file = file, variables = {}, conditions = {}, on_command = on_command, shared = shared, level = 0 }, machine)
  for name, value in pairs(given or {}) do self.variables[name] = { pieces = { { text = value } } } end
  self:run(syntax.parse(text, file))
  return self.variables
end

-- The words of a variable that script.run gave.
function script.words(held)
  if held.words then return held.words end
  local pieces = {}
  for i, each in ipairs(held.pieces or {}) do pieces[i] = lists.with(each, { split = true }) end
  return words_of(pieces)
end

return script
