-- SPDX-License-Identifier: Apache-2.0
-- linting.lua: what lint finds in a launch that a test writes.

local files = require "policy_files"
local launch = require "pipeplan.input.launch.init"
local lint = require "pipeplan.analysis.lint.init"

local linting = {}

-- Of each run that a file of that name and text starts.
local function results(name, text, options)
  local list = launch.read(files.write(name, text), options or {})
  for i, each in ipairs(list) do list[i] = lint.of(each, options or {}) end
  return list
end

function linting.first(name, text, options) return results(name, text, options)[1] end

-- "id:line" of every finding of that severity.
function linting.found(result, severity)
  local list = {}
  for _, finding in ipairs(result.findings) do
    if finding.severity == severity then list[#list + 1] = finding.id .. ":" .. finding.line end
  end
  return list
end

return linting
