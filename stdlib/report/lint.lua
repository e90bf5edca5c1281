-- SPDX-License-Identifier: Apache-2.0
-- lint.lua: what `pipeplan lint` found, as text, JSON, SARIF and GitHub's annotations.

local annotations = require "pipeplan.report.annotations"
local documents = require "pipeplan.base.documents"
local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"
local layout = require "pipeplan.base.layout"
local lists = require "pipeplan.base.lists"

local report = {}

local WIDTH = 100

local severities = { "error", "warning", "note" }

-- "3 errors, 1 note"
local function summary(findings)
  local parts = {}
  for _, severity in ipairs(severities) do
    local count = 0
    for _, finding in ipairs(findings) do count = count + (finding.severity == severity and 1 or 0) end
    if count > 0 then parts[#parts + 1] = format.plural(count, severity) end
  end
  return #parts > 0 and table.concat(parts, ", ") or "nothing to say"
end

-- "12 × 8 layers", "7, 8, 8, 7 layers".
local function layers_text(list)
  local same = true
  for _, count in ipairs(list) do same = same and count == list[1] end
  if same then return string.format("%d × %d layers", #list, list[1]) end
  if #list > 24 then
    local ordered = table.move(list, 1, #list, 1, {})
    table.sort(ordered)
    return string.format("%d stages of %d to %d layers", #list, ordered[1], ordered[#ordered])
  end
  return "layers " .. table.concat(list, " ")
end

local function reads_text(read)
  local parts = {}
  if read.gpus then parts[1] = format.plural(read.gpus, "GPU") end
  if read.parallelism.pipeline and read.parallelism.tensor then
    parts[#parts + 1] = layout.line(lists.with(read.parallelism, { expert = read.parallelism.expert or 1 }), read.microbatches)
  end
  if read.schedule then parts[#parts + 1] = format.schedule(read.schedule) end
  if read.layers_per_stage then parts[#parts + 1] = layers_text(read.layers_per_stage) end
  if read.bubble then
    parts[#parts + 1] = string.format("bubble %s%s where stages take equally long", read.bubble.exact and "" or "at least ",
                                      format.percent(read.bubble.fraction))
  end
  return #parts > 0 and "what it amounts to: " .. table.concat(parts, "; ")
end

local function memory_text(memory)
  local fullest
  for _, rank in ipairs(memory.ranks) do
    if not fullest or rank.total_bytes > fullest.total_bytes then fullest = rank end
  end
  local words = { fits = "fits", tight = "is tight", does_not_fit = "does not fit" }
  return string.format("memory: %s: rank %d is the fullest, %s of %s", words[memory.fit] or memory.fit, fullest.rank,
                       format.bytes(fullest.total_bytes), format.bytes(memory.device_bytes))
end

local function unresolved_text(result)
  local parts, seen = {}, {}
  for _, each in ipairs(result.unresolved) do
    if not seen[each.key] then
      seen[each.key] = true
      parts[#parts + 1] = string.format("%s (line %d)", each.key, each.line)
    end
  end
  local most = 12
  local shown = table.concat(parts, ", ", 1, math.min(most, #parts))
  return #parts > 0 and "not known: " .. shown .. (#parts > most and string.format(" and %d more", #parts - most) or "")
end

local function add_wrapped(lines, text, indent)
  for _, line in ipairs(format.wrap(text, WIDTH, indent)) do lines[#lines + 1] = line end
end

local function one_text(lines, result)
  for _, finding in ipairs(result.findings) do
    lines[#lines + 1] = string.format("%s: %s[%s]", format.place(finding), finding.severity, finding.id)
    add_wrapped(lines, finding.message, "  ")
    if finding.nearest then add_wrapped(lines, "nearest: " .. finding.nearest, "  ") end
    if finding.conditional then add_wrapped(lines, "rests on " .. finding.conditional, "  ") end
    if finding.source and finding.severity ~= "note" then add_wrapped(lines, "source: " .. finding.source, "  ") end
  end
  if #result.findings > 0 then lines[#lines + 1] = "" end
  lines[#lines + 1] = string.format("%s: %s (%s): %s", result.file, result.entry.title, result.version, summary(result.findings))
  for _, text in ipairs { result.reads and reads_text(result.reads) or "", result.memory and memory_text(result.memory) or "",
                          result.memory_why or "", unresolved_text(result) or "" } do
    if text ~= "" then add_wrapped(lines, text, "  ") end
  end
end

function report.text(results)
  local lines = {}
  for i, result in ipairs(results) do
    if i > 1 then lines[#lines + 1] = "" end
    one_text(lines, result)
  end
  return format.page(lines)
end

local function finding_data(finding)
  local out = {}
  for _, name in ipairs { "id", "severity", "message", "file", "line", "key", "value", "nearest", "source", "conditional" } do
    out[name] = json.or_null(finding[name])
  end
  return out
end

local degrees = { "tensor", "context", "pipeline", "virtual", "expert", "expert_tensor", "data" }

local function reads_data(read, memory)
  if not read then return json.null end
  local out = { parallelism = {}, gpus = json.or_null(read.gpus), microbatches = json.or_null(read.microbatches),
                schedule = json.or_null(read.schedule),
                layers_per_stage = read.layers_per_stage and json.array(read.layers_per_stage) or json.null,
                bubble = read.bubble or json.null, training = {}, model = {}, memory = json.or_null(memory) }
  for _, name in ipairs(degrees) do out.parallelism[name] = json.or_null(read.parallelism[name]) end
  for _, name in ipairs { "micro_batch_size", "global_batch_size", "sequence_length", "precision", "zero", "recompute" } do
    out.training[name] = json.or_null(read.training[name])
  end
  for _, name in ipairs { "layers", "hidden", "heads", "experts", "mtp_layers", "tied_embeddings" } do
    out.model[name] = json.or_null(read.model[name])
  end
  return out
end

local function data_of(result)
  local findings, unresolved = json.array {}, json.array {}
  for i, finding in ipairs(result.findings) do findings[i] = finding_data(finding) end
  for i, each in ipairs(result.unresolved) do unresolved[i] = { key = each.key, file = each.file, line = each.line } end
  return { framework = result.framework, version = result.version, file = result.file, findings = findings, unresolved = unresolved,
           reads = reads_data(result.reads, result.memory) }
end

-- One launch as it is; several as a list, `launches`.
function report.json(results)
  if #results == 1 then return documents.encode("lint", data_of(results[1]), { indent = 2 }) .. "\n" end
  local list = json.array {}
  for i, result in ipairs(results) do list[i] = data_of(result) end
  return documents.encode("lint", { launches = list }, { indent = 2 }) .. "\n"
end

local function each_finding(results, use)
  for _, result in ipairs(results) do
    for _, finding in ipairs(result.findings) do use(finding, result) end
  end
end

local function told(finding)
  return finding.message .. (finding.nearest and "; nearest: " .. finding.nearest or "")
         .. (finding.conditional and "; rests on " .. finding.conditional or "")
end

function report.sarif(results)
  local rules, list, seen = {}, {}, {}
  each_finding(results, function(finding)
    if not seen[finding.id] then
      seen[finding.id] = true
      local rule = { id = finding.id, shortDescription = { text = finding.message }, defaultConfiguration = { level = finding.severity } }
      local link = finding.source and finding.source:match "https?://[^%s,;]+"
      if link then rule.helpUri = link end
      if finding.source then rule.help = { text = "source: " .. finding.source } end
      rules[#rules + 1] = rule
    end
    list[#list + 1] = { ruleId = finding.id, level = finding.severity, message = { text = told(finding) },
                        locations = json.array { annotations.location(finding) } }
  end)
  return annotations.sarif(rules, list)
end

function report.github(results)
  local lines = {}
  each_finding(results, function(finding)
    lines[#lines + 1] = annotations.github(finding.severity, finding, finding.id, told(finding))
  end)
  return table.concat(lines)
end

return report
