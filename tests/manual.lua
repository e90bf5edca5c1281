-- SPDX-License-Identifier: Apache-2.0
--[[
manual.lua: the pages of the manual, and what they show of the program, made anew. Between a marker and `<!-- end -->` stands one fenced
block:

  <!-- run: ARGUMENTS -->   the program's output, run in the source tree
  <!-- file: NAME -->       a file that the sessions below it find in their directory
  <!-- source: PATH -->     a file of the source tree
  <!-- session -->          commands after "$ ", each with its output below it, run in one directory, pipeplan on the path
  <!-- session: examples --> the same where `examples` is the source tree's
  <!-- session: source -->  the same in the source tree
  <!-- session: fails -->   a session that shows what the program complains of; no other block may
  <!-- fidelity -->         without a fence: what examples/torch/compare.py makes of every file in examples/runs

scripts/generate-meta writes what stands behind `<!-- names -->`, `<!-- fields -->` and `<!-- properties -->`, PIPEPLAN_DOCS=1
tests/lua/shipped_launches_spec.lua what stands behind `<!-- launches -->`. Above a block of commands
whose output no page shows:

  <!-- run by: PATH -->     the test that runs them
  <!-- not run: REASON -->  why none does

  manual.pages() → paths of all pages, in the source tree
  manual.blocks(text) → { { kind, name, shown }, … }        shown: what stands in the block
  manual.shell(program) → an object with :output(block), what should stand there, and :close()
  manual.render(text, program) → the text with all blocks made anew
]]

local manual = {}

-- Made by scripts/generate-meta, tests/fuzz/run, and tests/lua/shipped_launches_spec.lua.
manual.generated = { launches = true, names = true, fields = true, models = true, properties = true, fuzzed = true }

function manual.pages()
  local list = { "README.md", "examples/agent-skill/SKILL.md" }
  local handle <close> = assert(io.popen "ls docs/*.md")
  for path in handle:lines() do list[#list + 1] = path end
  return list
end

local marker = "^<!%-%- (%l+):? ?(.-) %-%->$"
local the_end = "<!-- end -->"

-- The page as a list of what stands between blocks and of blocks, whose `fence` is their line of backticks, or nil.
local function parts_of(text)
  local parts, current = { "" }, nil
  for line in text:gmatch "[^\n]*\n?" do
    local bare = line:match "^(.-)\n?$"
    local kind, name = bare:match(marker)
    if bare == the_end then
      assert(current, "an end without a block")
      parts[#parts + 1], current = line, nil
    elseif kind and kind ~= "not" and not (kind == "run" and name:find "^by: ") then
      assert(not current, bare .. ": inside another block")
      parts[#parts] = parts[#parts] .. line
      current = { kind = kind, name = name, shown = "" }
      parts[#parts + 1] = current
    elseif not current then
      parts[#parts] = parts[#parts] .. line
    elseif current.shown == "" and not current.fence and bare:find "^```%l" then
      current.fence = line
    elseif current.fence and bare == "```" then
      current.closed = true
    else
      assert(not current.closed, "text between a block's fence and its end: " .. bare)
      current.shown = current.shown .. line
    end
  end
  assert(not current, "a block without an end")
  return parts
end

function manual.blocks(text)
  local list = {}
  for _, part in ipairs(parts_of(text)) do
    if type(part) == "table" then list[#list + 1] = part end
  end
  return list
end

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function output_of(directory, program, command)
  local handle <close> = assert(io.popen(string.format("cd '%s' && export PATH='%s':\"$PATH\" && unset LD_PRELOAD; (%s) 2>&1", directory,
                                                       program:match "^(.*)/", command)))
  return handle:read "a"
end

local outputs = {}

function outputs:run(block) return output_of(".", self.program, "pipeplan " .. block.name) end

function outputs:file(block)
  local file <close> = assert(io.open(self.directory .. "/" .. block.name, "wb"))
  file:write(block.shown)
  return block.shown
end

function outputs:source(block) return read(block.name) end  -- luacheck: ignore self

function outputs:fidelity()
  return output_of(".", self.program, "for runs in examples/runs/*.json; do if test -e $runs; then python3 examples/torch/compare.py "
    .. "$runs --summary --format markdown --pipeplan '" .. self.program .. "'; echo; fi; done")
end

function outputs:session(block)
  local lines = {}
  if block.name == "examples" then assert(os.execute(string.format("ln -s \"$PWD/examples\" '%s/examples'", self.directory))) end
  for command in block.shown:gmatch "%$ ([^\n]+)\n" do
    lines[#lines + 1] = "$ " .. command .. "\n" .. output_of(block.name == "source" and "." or self.directory, self.program, command)
  end
  return table.concat(lines)
end

local methods = {}

-- Of a decision, on the page: it is another after each change of pipeplan's sources, so a page shows one that was.
local DECISION = "276eb5d96956"

-- Raises where a block shows a complaint of the program that is not there on purpose.
function methods:output(block)
  if manual.generated[block.kind] then return block.shown end
  local shown = assert(outputs[block.kind], "no such block: " .. block.kind)(self, block)
  local complaint = block.name ~= "fails" and ("\n" .. shown):match "\n(pipeplan: [^\n]*)"
  if complaint then error(string.format("a block of the kind %s shows an error: %s", block.kind, complaint), 0) end
  return (shown:gsub("; digest %x+; judged at", "; digest " .. DECISION .. "; judged at"))
end

function methods:close()
  os.execute("rm -rf '" .. self.directory .. "'")
end

-- `program`: a path of the program whose name is pipeplan.
function manual.shell(program)
  local absolute = program:match "^/" and program or io.popen("pwd"):read "l" .. "/" .. program
  local directory = os.tmpname()
  os.remove(directory)
  assert(os.execute("mkdir '" .. directory .. "'"))
  return setmetatable({ program = absolute, directory = directory }, { __index = methods })
end

function manual.render(text, program)
  local shell, out = manual.shell(program), {}
  for _, part in ipairs(parts_of(text)) do
    out[#out + 1] = type(part) == "string" and part or (part.fence or "") .. shell:output(part) .. (part.fence and "```\n" or "")
  end
  shell:close()
  return table.concat(out)
end

-- ------------------------------------------------------------------------------------------------------------ commands on a page

-- Fenced blocks of commands outside the blocks above → { { text, note = the marker above it or nil, line }, … }
function manual.commands(text)
  local list, above, current, inside, number = {}, nil, nil, false, 0
  for line in text:gmatch "([^\n]*)\n" do
    number = number + 1
    if current then
      if line == "```" then current = nil else current.text = current.text .. line .. "\n" end
    elseif line:match(marker) and not line:find "^<!%-%- not run: " and not line:find "^<!%-%- run by: " then
      inside = line ~= the_end
    elseif not inside and (line:find "^```sh" or line:find "^```console") then
      current = { text = "", note = above, line = number }
      list[#list + 1] = current
    end
    if line ~= "" then above = line:match "^<!%-%- (.-) %-%->$" end
  end
  return list
end

-- Spans of code in running text → { { text, line }, … }; those of fenced blocks are left out.
function manual.spans(text)
  local list, fenced, number = {}, false, 0
  for line in text:gmatch "([^\n]*)\n" do
    number = number + 1
    if line:find "^```" then fenced = not fenced
    elseif not fenced then
      for span in line:gmatch "`([^`]+)`" do list[#list + 1] = { text = span, line = number } end
    end
  end
  return list
end

-- Targets of links → { { path, anchor, line }, … }: those inside the source tree.
function manual.links(text)
  local list, number = {}, 0
  for line in text:gmatch "([^\n]*)\n" do
    number = number + 1
    for target in line:gmatch "%]%(([^)]+)%)" do
      if not target:find "^%a+:" then
        local path, anchor = target:match "^([^#]*)#?(.*)$"
        list[#list + 1] = { path = path, anchor = anchor, line = number }
      end
    end
  end
  return list
end

-- The anchors that a forge makes of a page's headings.
function manual.anchors(text)
  local set = {}
  for line in text:gmatch "([^\n]*)\n" do
    local title = line:match "^#+ (.*)$"
    if title then set[title:lower():gsub("[^%w%- _]", ""):gsub(" ", "-")] = true end
  end
  return set
end

return manual
