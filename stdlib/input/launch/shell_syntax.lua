-- SPDX-License-Identifier: Apache-2.0
-- shell_syntax.lua: the text of a shell script → its commands, as a tree. Nothing is expanded here, and nothing executed anywhere. What is
-- read is what launch scripts are written in: words, quotes, $ in all its forms, assignments, arrays, if, case, loops, functions, here
-- documents. A quote or a bracket that never ends is a usage failure with its file and line.
--
-- A node is { type, line, after: "&&" or "||" where one stands before it, inverted: a ! does } and
--   command   words: { word, … }, assigns: { assignment, … }
--   assign    name, index: word or nil, append: bool, value: word, or array: { word, … }
--   branch    clauses: { { test: nodes, body: nodes } }, otherwise: nodes or nil
--   case      word, arms: { { patterns: { text, … }, body } }
--   loop      name or nil, words, test: nodes or nil, negated, body         group   body         heredoc  text, literal
-- A word is a list of parts with { line, quoted }: text; name (and index, op, default: word) for ${…}; arithmetic; command.

local failure = require "pipeplan.base.failure"

local MOST_LEVELS = 48  -- of brackets, substitutions and blocks in each other

local reader = {}
reader.__index = reader

function reader:fail(line, text, ...)
  failure.usage("%s:%d: " .. text, self.file, line, ...)
end

-- Moves on; lines are counted where the text has them.
function reader:advance(to)
  to = math.min(to, #self.text + 1)   -- behind a backslash the text may end
  for _ in self.text:sub(self.at, to - 1):gmatch "\n" do self.line = self.line + 1 end
  self.at = to
end

function reader:deeper(line)
  self.level = self.level + 1
  if self.level > MOST_LEVELS then self:fail(line, "brackets and blocks are nested more than %d deep", MOST_LEVELS) end
end

-- The text up to the closing character of what opened here, brackets and quotes in it skipped.
function reader:enclosed(open, close, what)
  local start, line, depth = self.at, self.line, 1
  while true do
    local at = self.text:find("[\\'\"" .. "%" .. open .. "%" .. close .. "]", self.at)
    if not at then self:fail(line, "%s is never closed", what) end
    local c = self.text:sub(at, at)
    self:advance(at + 1)
    if c == "\\" then self:advance(self.at + 1)
    elseif c == close then
      depth = depth - 1
      if depth == 0 then return self.text:sub(start, at - 1), line end
    elseif c == open then depth = depth + 1
    elseif open ~= "`" then
      local stop = self.text:find(c, self.at, true)
      if stop then self:advance(stop + 1) end
    end
  end
end

-- What stands behind a $.
local function dollar(self, parts, quoted)
  local line, text = self.line, self.text
  local function add(part)
    part.line, part.quoted = line, quoted
    parts[#parts + 1] = part
  end
  if text:sub(self.at, self.at + 1) == "((" then
    self:advance(self.at + 2)
    local inner = self:enclosed("(", ")", "$((")
    if text:sub(self.at, self.at) ~= ")" then return add { command = inner } end
    self:advance(self.at + 1)
    return add { arithmetic = inner }
  end
  local c = text:sub(self.at, self.at)
  if c == "(" then
    self:advance(self.at + 1)
    return add { command = self:enclosed("(", ")", "$(") }
  elseif c == "[" then
    self:advance(self.at + 1)
    return add { arithmetic = self:enclosed("[", "]", "$[") }
  elseif c == "{" then
    self:advance(self.at + 1)
    return add { braces = self:enclosed("{", "}", "${") }
  elseif c == "'" and not quoted then
    self:advance(self.at + 1)
    local stop = text:find("'", self.at, true)
    if not stop then self:fail(line, "a quote ' is never closed") end
    local inner = text:sub(self.at, stop - 1)
    self:advance(stop + 1)
    return add { text = (inner:gsub("\\n", "\n"):gsub("\\t", "\t"):gsub("\\(.)", "%1")), quoted = true }
  end
  local name = text:match("^[%a_][%w_]*", self.at) or text:match("^[%d@*#?$!-]", self.at)
  if not name then return add { text = "$" } end
  self:advance(self.at + #name)
  add { name = name }
end

-- Parts of a text in double quotes, up to the quote; or of all of a text, where `whole`.
local function double_quoted(self, parts, whole)
  local start = self.line
  while true do
    local at = self.text:find(whole and "[\\$`\n]" or "[\\$`\"\n]", self.at)
    if not at and not whole then self:fail(start, 'a quote " is never closed') end
    local stop = at or #self.text + 1
    if stop > self.at then parts[#parts + 1] = { text = self.text:sub(self.at, stop - 1), line = self.line, quoted = true } end
    local line = self.line
    self:advance(stop)
    if not at then return end
    local c = self.text:sub(at, at)
    self:advance(at + 1)
    if c == '"' then return
    elseif c == "\n" then parts[#parts + 1] = { text = "\n", line = line, quoted = true }
    elseif c == "$" then dollar(self, parts, true)
    elseif c == "`" then parts[#parts + 1] = { command = self:enclosed("`", "`", "`"), line = line, quoted = true }
    else
      local next_one = self.text:sub(self.at, self.at)
      self:advance(self.at + 1)
      if next_one ~= "\n" then
        parts[#parts + 1] = { text = next_one:find '["\\$`]' and next_one or "\\" .. next_one, line = line, quoted = true }
      end
    end
  end
end

-- A word, or nil where none begins here.
function reader:word(in_test)
  local parts = {}
  while true do
    local at = self.at
    local run = self.text:match(in_test and "^[^%s\\'\"$`;]+" or "^[^%s\\'\"$`;&|()<>]+", at)
    if run then
      parts[#parts + 1] = { text = run, line = self.line, quoted = false }
      self.at = at + #run
    else
      local c, line = self.text:sub(at, at), self.line
      if c == "\\" then
        local next_one = self.text:sub(at + 1, at + 1)
        if self.text:find("^\r?\n", at + 1) then
          self:advance(self.text:find("\n", at, true) + 1)
          if #parts == 0 then self:blanks() end
          if not self.text:find("^[^%s;&|()<>]", self.at) then break end
        else
          if next_one ~= "" then parts[#parts + 1] = { text = next_one, line = line, quoted = true } end   -- bash drops the last of a file
          self:advance(at + 2)
        end
      elseif c == "'" then
        local stop = self.text:find("'", at + 1, true)
        if not stop then self:fail(line, "a quote ' is never closed") end
        local number = line
        for piece, ending in self.text:sub(at + 1, stop - 1):gmatch "([^\n]*)(\n?)" do
          parts[#parts + 1] = { text = piece .. ending, line = number, quoted = true }
          if ending == "" then break end
          number = number + 1
        end
        self:advance(stop + 1)
      elseif c == '"' then
        self:advance(at + 1)
        parts[#parts + 1] = { text = "", line = line, quoted = true }
        double_quoted(self, parts)
      elseif c == "$" then
        self:advance(at + 1)
        dollar(self, parts, false)
      elseif c == "`" then
        self:advance(at + 1)
        parts[#parts + 1] = { command = self:enclosed("`", "`", "`"), line = line, quoted = false }
      else break end
    end
  end
  return #parts > 0 and parts or nil
end

-- Spaces, and lines that go on.
function reader:blanks()
  while true do
    local stop = self.text:match("^[ \t\r]*()", self.at)
    self.at = stop
    if not self.text:find("^\\\r?\n", stop) then return end
    self:advance(self.text:find("\n", stop, true) + 1)
  end
end

function reader:comment()
  if self.text:sub(self.at, self.at) ~= "#" then return end
  self.at = self.text:find("\n", self.at, true) or #self.text + 1
end

-- Bodies of the here documents that the line that ends here began.
local function here_documents(self, nodes)
  for _, pending in ipairs(self.pending) do
    local lines, start = {}, self.line
    while self.at <= #self.text do
      local stop = self.text:find("\n", self.at, true) or #self.text + 1
      local line = self.text:sub(self.at, stop - 1):gsub("\r$", "")
      self:advance(math.min(stop + 1, #self.text + 1))
      if (pending.tabs and line:gsub("^\t+", "") or line) == pending.word then break end
      lines[#lines + 1] = line
    end
    nodes[#nodes + 1] = { type = "heredoc", text = table.concat(lines, "\n"), line = start, literal = pending.literal }
  end
  self.pending = {}
end

-- Redirections: their words are no arguments.
local function redirection(self)
  local operator = self.text:match("^%d*[<>][<>&|-]*", self.at) or self.text:match("^&>>?", self.at)
  if not operator then return false end
  self.at = self.at + #operator
  if operator:find("<(", 1, true) then return false end
  self:blanks()
  if self.text:sub(self.at, self.at) == "(" then  -- <(…)
    self.at = self.at + 1
    self:enclosed("(", ")", operator .. "(")
    return true
  end
  local word = self:word() or {}
  if operator:find "^%d*<<%-?$" then
    local text, literal = {}, false
    for _, part in ipairs(word) do
      text[#text + 1] = part.text or ""
      literal = literal or part.quoted
    end
    self.pending[#self.pending + 1] = { word = table.concat(text), literal = literal, tabs = operator:find "-" ~= nil }
  end
  return true
end

-- name=…, name+=…, name[…]=… at the start of a word: what is assigned, or nil.
local function assignment(self)
  local name, index, append, stop = self.text:match("^([%a_][%w_]*)%[([^%]\n]*)%](%+?)=()", self.at)
  if not name then
    name, append, stop = self.text:match("^([%a_][%w_]*)(%+?)=()", self.at)
  end
  if not name then return nil end
  local node = { type = "assign", name = name, append = append == "+", line = self.line }
  if index then node.index = { { text = index:gsub("^['\"](.*)['\"]$", "%1"), line = self.line, quoted = true } } end
  if index and index:find "%$" then
    local inner = setmetatable({ text = index, at = 1, line = self.line, file = self.file, level = self.level, pending = {} }, reader)
    node.index = inner:word() or node.index
  end
  self.at = stop
  local placeholder = self.text:match("^<[^<>\n]*>", stop)  -- X=<path to …>: to be filled in
  if placeholder then
    self.at = stop + #placeholder
    node.value = { { braces = placeholder, line = self.line, quoted = true } }
    return node
  end
  if self.text:sub(stop, stop) ~= "(" then
    node.value = self.text:find("^[%s;&|)]", stop) == nil and self:word() or {}
    return node
  end
  self.at, node.array = stop + 1, {}
  while true do
    self:blanks()
    local c = self.text:sub(self.at, self.at)
    if c == "\n" then self:advance(self.at + 1)
    elseif c == "#" then self:comment()
    elseif c == ")" then
      self.at = self.at + 1
      return node
    elseif c == "" then self:fail(node.line, "the array %s=( is never closed", name)
    else
      local key, from = self.text:match("^%[([^%]\n]*)%]=()", self.at)
      if key then self.at = from end
      local word = self:word()
      if not word and not key then  -- a character that no array has: it stays one
        word = { { text = c, line = self.line, quoted = true } }
        self:advance(self.at + 1)
      end
      node.array[#node.array + 1] = word or {}
      if key then node.array[#node.array].key = key:gsub("^['\"](.*)['\"]$", "%1") end
    end
  end
end

local function plain(word)
  return word and #word == 1 and not word[1].quoted and word[1].text or nil
end

local parse_list

-- From `open` on, which was read, to one of the words `ends`: nodes, and that word.
local function block(self, line, ends, what)
  self:deeper(line)
  local nodes, stop = parse_list(self, ends)
  self.level = self.level - 1
  if not stop then self:fail(line, "%s is never closed: expected %s", what, table.concat(ends, " or ")) end
  return nodes, stop
end

local function branch(self, line)
  local node = { type = "branch", clauses = {}, line = line }
  local stop = "elif"
  while stop == "elif" do
    local clause = { line = self.line }
    clause.test = block(self, line, { "then" }, "if")
    clause.body, stop = block(self, line, { "elif", "else", "fi" }, "if")
    node.clauses[#node.clauses + 1] = clause
  end
  if stop == "else" then node.otherwise = block(self, line, { "fi" }, "if") end
  return node
end

local function loop(self, line, kind)
  local node = { type = "loop", words = {}, line = line }
  if kind == "for" or kind == "select" then
    self:blanks()
    if self.text:find("^%(%(", self.at) then
      self.at = self.at + 2
      self:enclosed("(", ")", "((")
      self.at = self.at + 1
    else
      node.name = plain(self:word())
      self:blanks()
      if self.text:find("^in[%s;]", self.at) then
        self.at = self.at + 2
        while true do
          self:blanks()
          local word = self:word()
          if not word then break end
          node.words[#node.words + 1] = word
        end
      end
    end
    block(self, line, { "do" }, kind)
  else
    node.test, node.negated = block(self, line, { "do" }, kind), kind == "until"
  end
  node.body = block(self, line, { "done" }, kind)
  return node
end

local function skip_lines(self)
  while true do
    self:blanks()
    local c = self.text:sub(self.at, self.at)
    if c == "\n" then self:advance(self.at + 1) elseif c == "#" then self:comment() else return c end
  end
end

local function case(self, line)
  self:blanks()
  local node = { type = "case", word = self:word() or {}, arms = {}, line = line }
  skip_lines(self)
  if not self.text:find("^in%f[^%w]", self.at) then self:fail(line, "case without in") end
  self.at = self.at + 2
  while true do
    local c = skip_lines(self)
    if c == "" then self:fail(line, "case is never closed: expected esac") end
    if self.text:find("^esac%f[^%w_]", self.at) then
      self.at = self.at + 4
      return node
    end
    if c == "(" then self.at = self.at + 1 end
    local stop = self.text:find(")", self.at, true)
    if not stop then self:fail(line, "case is never closed: expected esac") end
    local arm = { patterns = {} }
    for pattern in self.text:sub(self.at, stop - 1):gmatch "[^|%s]+" do arm.patterns[#arm.patterns + 1] = (pattern:gsub("['\"]", "")) end
    self:advance(stop + 1)
    local ending
    arm.body, ending = block(self, line, { ";;", "esac" }, "case")
    node.arms[#node.arms + 1] = arm
    if ending == "esac" then return node end
  end
end

-- One command from here on, without a ! before it; nil and the word where it is one of `ends`.
local function bare_command(self, ends)
  local line = self.line
  local node = { type = "command", words = {}, assigns = {}, line = line }
  local in_test = false
  while true do
    self:blanks()
    if not in_test then
      while redirection(self) do self:blanks() end
    end
    local c = self.text:sub(self.at, self.at)
    if #node.words == 0 then
      if c == "(" then
        if #node.assigns > 0 then break end
        if self.text:sub(self.at, self.at + 1) == "((" then
          self.at = self.at + 2
          self:enclosed("(", ")", "((")
          self.at = self.at + 1
          return { type = "group", body = {}, line = line }
        end
        self.at = self.at + 1
        return { type = "group", body = block(self, line, { ")" }, "("), line = line }
      end
      local assigned = assignment(self)
      if assigned then
        node.assigns[#node.assigns + 1] = assigned
        goto continue
      end
    end
    if c == "#" and (self.at == 1 or self.text:find("^[%s;]", self.at - 1)) then self:comment() end
    do
      local declared = #node.words > 0 and self.declaring and assignment(self)
      if declared then
        node.assigns[#node.assigns + 1] = declared
        goto continue
      end
      local word = self:word(in_test)
      if not word then
        if in_test and self.text:find("^;", self.at) then self.at = self.at + 1 goto continue end
        break
      end
      local text = plain(word)
      if #node.words == 0 then
        if #node.assigns == 0 and text then
          for _, stop in ipairs(ends) do
            if text == stop then return nil, stop end
          end
          if text == "if" then return branch(self, line) end
          if text == "for" or text == "while" or text == "until" or text == "select" then return loop(self, line, text) end
          if text == "case" then return case(self, line) end
          if text == "{" then return { type = "group", body = block(self, line, { "}" }, "{"), line = line } end
          if text == "time" or text == "then" or text == "do" then goto continue end
          if text == "function" then
            self:blanks()
            self:word()
            self:blanks()
            if self.text:find("^%(%s*%)", self.at) then self.at = self.text:find(")", self.at, true) + 1 end
            goto continue
          end
          if self.text:find("^%s*%(%s*%)", self.at) then  -- name ()
            self.at = self.text:find(")", self.at, true) + 1
            skip_lines(self)
            goto continue
          end
        end
        in_test = text == "[["
        self.declaring = text == "export" or text == "declare" or text == "local" or text == "readonly" or text == "typeset"
      elseif in_test and text == "]]" then
        node.words[#node.words + 1] = word
        in_test = false
        goto continue
      end
      node.words[#node.words + 1] = word
    end
    ::continue::
  end
  self.declaring = false
  return node
end

-- The same with any ! before it, which turn its status round.
local function command(self, ends)
  local inverted = false
  while self.text:find("^![ \t]", self.at) do
    self.at = self.at + 1
    inverted = not inverted
    self:blanks()
  end
  local node, stop = bare_command(self, ends)
  if node then node.inverted = inverted or nil end
  return node, stop
end

-- Commands up to one of the words `ends`, which is read too and given back; nil: up to the end of the text.
function parse_list(self, ends)
  local nodes, after = {}, nil
  while true do
    self:blanks()
    local c = self.text:sub(self.at, self.at)
    if c == "" then return nodes, nil end
    local two = self.text:sub(self.at, self.at + 1)
    if c == "\n" then
      self:advance(self.at + 1)
      if #self.pending > 0 then here_documents(self, nodes) end
    elseif c == "#" then self:comment()
    elseif two == ";;" then
      self.at = self.at + 2
      if ends[1] == ";;" then return nodes, ";;" end
    elseif two == "&&" or two == "||" then
      after = two
      self.at = self.at + 2
    elseif c == ")" and ends[1] == ")" then
      self.at = self.at + 1
      return nodes, ")"
    elseif c == ";" or c == "&" or c == "|" or c == ")" then
      self.at = self.at + 1
    else
      local from = self.at
      local node, stop = command(self, ends)
      if stop then return nodes, stop end
      if self.at == from then self.at = from + 1 end  -- what no command begins with
      if node.type ~= "command" or #node.words + #node.assigns > 0 then
        node.after, after = after, nil
        nodes[#nodes + 1] = node
      end
    end
  end
end

local syntax = {}

-- The commands of a text. file, line: where it stands, for messages; level: of what it stands in.
function syntax.parse(text, file, line, level)
  local self = setmetatable({ text = text, at = 1, line = line or 1, file = file, level = level or 0, pending = {} }, reader)
  self:deeper(self.line)
  return (parse_list(self, {}))
end

-- The parts of a text as if it stood in double quotes: of ${…}'s defaults, of here documents.
function syntax.parts(text, file, line)
  local self = setmetatable({ text = text, at = 1, line = line, file = file, level = 0, pending = {} }, reader)
  local parts = {}
  double_quoted(self, parts, true)
  return parts
end

-- The words of a text.
function syntax.words(text, file, line)
  local self = setmetatable({ text = text, at = 1, line = line, file = file, level = 0, pending = {} }, reader)
  local list = {}
  while true do
    self:blanks()
    local word = self:word()
    if word then list[#list + 1] = word
    elseif self.at > #text then return list
    else self:advance(self.at + 1) end
  end
end

return syntax
