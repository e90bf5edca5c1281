-- SPDX-License-Identifier: Apache-2.0
-- annotations.lua: findings for other programs: SARIF 2.1.0 (OASIS; what code scanning reads) and GitHub's workflow commands
-- ("::warning file=…,line=…::…").

local json = require "pipeplan.base.json"
local visible = require "pipeplan.base.visible"

local annotations = {}

-- A path as SARIF wants it: a relative reference (RFC 3986, 4.2), other characters than those of a path in percent.
local function uri(path)
  return (path:gsub("[^%w%-._~!$&'()*+,;=@/]", function(byte) return string.format("%%%02X", byte:byte()) end))
end

-- A place, and what is said of it.
function annotations.location(at, message)
  return {
    physicalLocation = { artifactLocation = { uri = uri(at.file) }, region = { startLine = math.max(1, at.line) } },
    message = message and { text = message } or nil,
  }
end

-- rules: { { id, shortDescription, … }, … }, results: as SARIF has them.
function annotations.sarif(rules, results)
  local driver = { name = "pipeplan", version = require("engine").version, rules = json.array(rules) }
  return json.encode({ version = "2.1.0", ["$schema"] = "https://json.schemastore.org/sarif-2.1.0.json",
                       runs = json.array { { tool = { driver = driver }, results = json.array(results) } } }, { indent = 2 }) .. "\n"
end

-- Workflow commands: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
local commands = { error = "error", warning = "warning", note = "notice" }

local function escaped(text, property)
  text = visible.lines(text):gsub("%%", "%%25"):gsub("\n", "%%0A")
  return property and text:gsub(":", "%%3A"):gsub(",", "%%2C") or text
end

-- One line for one finding.
function annotations.github(severity, at, title, message)
  return string.format("::%s file=%s,line=%d,title=%s::%s\n", commands[severity], escaped(at.file, true), math.max(1, at.line),
                       escaped(title, true), escaped(message))
end

return annotations
