--[[
readme.lua: what README.md shows of the program, made anew. Between a marker and `<!-- end -->` stands one fenced block:

  <!-- run: ARGUMENTS -->   the program's output, run in the source tree
  <!-- file: NAME -->       a file that the sessions below it find in their directory
  <!-- fidelity -->         without a fence: what examples/torch/compare.py makes of every file in examples/runs
  <!-- session -->          commands after "$ ", each with its output below it, run in one directory, pipeplan on the path

  readme.blocks(text) → { { kind, name, shown }, … }        shown: what stands in the block
  readme.shell(program) → an object with :output(block), what should stand there, and :close()
  readme.render(text, program) → the text with all blocks made anew
]]

local readme = {}

local pattern = "(<!%-%- (%l+):?([^\n]-) %-%->\n```%l*\n)(.-)(```\n<!%-%- end %-%->)"

local unfenced = "(<!%-%- fidelity %-%->\n)(.-)(<!%-%- end %-%->)"

function readme.blocks(text)
  local list = {}
  for _, kind, name, shown in text:gmatch(pattern) do list[#list + 1] = { kind = kind, name = name:match "^ ?(.*)", shown = shown } end
  for _, shown in text:gmatch(unfenced) do list[#list + 1] = { kind = "fidelity", name = "", shown = shown } end
  return list
end

local methods = {}

local function output_of(directory, program, command)
  local handle = assert(io.popen(string.format("cd '%s' && export PATH='%s':\"$PATH\" && unset LD_PRELOAD; (%s) 2>&1", directory,
                                               program:match "^(.*)/", command)))
  local text = handle:read "a"
  handle:close()
  return text
end

function methods:output(block)
  if block.kind == "run" then return output_of(".", self.program, "pipeplan " .. block.name) end
  if block.kind == "file" then
    local file = assert(io.open(self.directory .. "/" .. block.name, "wb"))
    file:write(block.shown)
    file:close()
    return block.shown
  end
  if block.kind == "fidelity" then
    return output_of(".", self.program, "for runs in examples/runs/*.json; do if test -e $runs; then python3 examples/torch/compare.py "
      .. "$runs --summary --format markdown --pipeplan '" .. self.program .. "'; echo; fi; done")
  end
  local lines = {}
  for command in block.shown:gmatch "%$ ([^\n]+)\n" do
    lines[#lines + 1] = "$ " .. command .. "\n" .. output_of(self.directory, self.program, command)
  end
  return table.concat(lines)
end

function methods:close()
  os.execute("rm -rf '" .. self.directory .. "'")
end

-- `program`: a path of the program whose name is pipeplan.
function readme.shell(program)
  local absolute = program:match "^/" and program or io.popen("pwd"):read "l" .. "/" .. program
  local directory = os.tmpname()
  os.remove(directory)
  assert(os.execute("mkdir '" .. directory .. "'"))
  return setmetatable({ program = absolute, directory = directory }, { __index = methods })
end

function readme.render(text, program)
  local shell = readme.shell(program)
  local out = text:gsub(pattern, function(head, kind, name, shown, tail)
    return head .. shell:output { kind = kind, name = name:match "^ ?(.*)", shown = shown } .. tail
  end)
  out = out:gsub(unfenced, function(head, _, tail) return head .. shell:output { kind = "fidelity" } .. tail end)
  shell:close()
  return out
end

return readme
