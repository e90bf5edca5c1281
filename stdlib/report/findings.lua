-- SPDX-License-Identifier: Apache-2.0
-- findings.lua: findings of `pipeplan policy check` as text, JSON, SARIF and GitHub's annotations.

local annotations = require "pipeplan.report.annotations"
local documents = require "pipeplan.base.documents"
local findings = require "pipeplan.analysis.findings"
local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"

local report = {}

local WIDTH = 100

local place = format.place

local function spec_text(witness)
  return json.encode(witness.spec)
end

-- "3 errors, 1 warning, 2 notes"
local function summary(list)
  local parts = {}
  for i = #findings.severities, 1, -1 do
    local severity, count = findings.severities[i], 0
    for _, finding in ipairs(list) do
      if findings.severity(finding) == severity then count = count + 1 end
    end
    if count > 0 then parts[#parts + 1] = string.format("%d %s%s", count, severity, count == 1 and "" or "s") end
  end
  return #parts > 0 and table.concat(parts, ", ") or "nothing to say"
end

local function layers_text(policy)
  return table.concat(lists.column(policy.layers, "name"), " ← ")
end

function report.text(list, policy, left_out)
  local lines = {}
  for _, finding in ipairs(list) do
    lines[#lines + 1] = string.format("%s: %s[%s]", place(finding), findings.severity(finding), finding.code)
    for _, line in ipairs(format.wrap(finding.message, WIDTH, "  ")) do lines[#lines + 1] = line end
    for _, other in ipairs(finding.related) do
      lines[#lines + 1] = string.format("  %s: '%s' %s", place(other), other.id, other.message)
    end
    if finding.witness then lines[#lines + 1] = "  spec: " .. spec_text(finding.witness)
    elseif finding.unreached then lines[#lines + 1] = "  no spec was found that shows it; that is no proof that there is none" end
  end
  if #list > 0 then lines[#lines + 1] = "" end
  lines[#lines + 1] = string.format("%s: %s", layers_text(policy), summary(list))
  if left_out > 0 then lines[#lines + 1] = left_out .. " notes about the default policy alone are left out; --all shows them" end
  return format.page(lines)
end

local function data_of(finding)
  local related = json.array {}
  for i, other in ipairs(finding.related) do
    related[i] = { file = other.file, line = other.line, id = other.id, message = other.message }
  end
  return {
    code = finding.code, severity = findings.severity(finding), file = finding.file, line = finding.line, layer = finding.layer,
    id = finding.id, message = finding.message, related = related, advice = findings.entry(finding.code).advice,
    witness = finding.witness and finding.witness.spec or json.null,
  }
end

function report.json(list, policy)
  local out = json.array {}
  for i, finding in ipairs(list) do out[i] = data_of(finding) end
  local layers = json.array(lists.column(policy and policy.layers or {}, "name"))
  local object = { findings = out, layers = layers, digest = policy and policy.digest or json.null }
  return documents.encode("findings", object, { indent = 2 }) .. "\n"
end

local function sarif_rules()
  local list = json.array {}
  for i, entry in ipairs(findings.codes) do
    list[i] = { id = entry.code, shortDescription = { text = entry.meaning }, help = { text = entry.advice },
                defaultConfiguration = { level = entry.severity } }
  end
  return list
end

function report.sarif(list)
  local results = json.array {}
  for i, finding in ipairs(list) do
    local related = json.array {}
    for j, other in ipairs(finding.related) do
      related[j] = annotations.location(other, string.format("'%s' %s", other.id, other.message))
    end
    results[i] = {
      ruleId = finding.code, level = findings.severity(finding), message = { text = finding.message },
      locations = json.array { annotations.location(finding) }, relatedLocations = related,
      properties = finding.witness and { witness = finding.witness.spec } or nil,
    }
  end
  return annotations.sarif(sarif_rules(), results)
end

function report.github(list)
  local lines = {}
  for i, finding in ipairs(list) do
    lines[i] = annotations.github(findings.severity(finding), finding, finding.code, finding.message)
  end
  return table.concat(lines)
end

-- The codes, for who meets one.
function report.codes()
  local lines, widest = {}, 0
  for _, entry in ipairs(findings.codes) do widest = math.max(widest, #entry.code) end
  for _, entry in ipairs(findings.codes) do
    lines[#lines + 1] = string.format("%s  %s  %s", format.pad(entry.code, widest), format.pad(entry.severity, 7), entry.meaning)
    lines[#lines + 1] = string.rep(" ", widest + 11) .. "to do: " .. entry.advice
  end
  return format.page(lines)
end

return report
