-- SPDX-License-Identifier: Apache-2.0
-- corpus.lua: the specs that a command is about: files, and a file with a spec on each line.

local files = require "pipeplan.input.files"
local json = require "pipeplan.base.json"

local corpus = {}

-- The directory of the files that a spec names, as spec.from_table takes it.
local function base_of(path)
  local directory = files.directory_of(path)
  return directory ~= "" and directory or nil
end

-- corpus.read({ path, … }, path of a file of lines or nil) → { { name, spec, base }, … }
function corpus.read(paths, lines)
  local specs = {}
  for _, path in ipairs(paths) do specs[#specs + 1] = { name = path, spec = json.read(path), base = base_of(path) } end
  if not lines then return specs end
  for number, line in files.lines(lines) do
    if line:find "%S" then
      local name = string.format("%s:%d", lines, number)
      specs[#specs + 1] = { name = name, spec = json.decode(line, name), base = lines ~= "-" and base_of(lines) or nil }
    end
  end
  return specs
end

return corpus
