-- SPDX-License-Identifier: Apache-2.0
-- suppress.lua: findings of `policy check` that a comment at the line takes back, with a reason:
--   -- check: ignore overlap: the order says what we mean
-- at the end of the line that a finding names, or on the comment lines right above it. Several codes stand with commas between them.

local findings = require "pipeplan.analysis.findings"
local text_of = require "pipeplan.base.text"

local suppress = {}

local function lines_of(text)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\r?\n" do lines[#lines + 1] = line end
  return lines
end

-- A comment's codes and reason: { code → true }, list of codes, reason; nil: no such comment.
local function parse(line)
  local codes, reason
  for at in line:gmatch "%-%-%s*check:%s*ignore()" do
    codes, reason = line:match("^%s([%w_,%s]*):(.*)$", at)
    if not codes then codes, reason = line:match("^[%w_,%s]*$", at), "" end
    if codes then break end
  end
  if not codes then return nil end
  local set, list = {}, {}
  for code in codes:gmatch "[%w_]+" do
    set[code] = true
    list[#list + 1] = code
  end
  return set, list, text_of.trimmed(reason)
end

-- The comments that speak for a line: line numbers.
local function speaking(lines, number)
  local list = { number }
  local above = number - 1
  while lines[above] and lines[above]:match "^%s*%-%-" do
    list[#list + 1] = above
    above = above - 1
  end
  return list
end

local function is_code(code)
  for _, entry in ipairs(findings.codes) do
    if entry.code == code then return true end
  end
  return false
end

local function problem(file, number, layer, format, ...)
  return { code = "suppression", file = file, line = number, layer = layer, message = string.format(format, ...), related = {} }
end

-- suppress.apply(policy, findings) → those that stay, how many were taken back. A comment without a reason, with a code that does not
-- exist, or that takes nothing back is a finding itself.
function suppress.apply(policy, list)
  local files, used, kept, count = {}, {}, {}, 0
  for path, text in pairs(policy.texts) do files[path] = lines_of(text) end
  for _, finding in ipairs(list) do
    local lines, taken = files[finding.file], false
    for _, number in ipairs(lines and finding.line > 0 and speaking(lines, finding.line) or {}) do
      local codes, _, reason = parse(lines[number] or "")
      if codes and codes[finding.code] then
        used[finding.file .. ":" .. number .. ":" .. finding.code] = true
        taken = taken or reason ~= ""
      end
    end
    if taken then count = count + 1 else kept[#kept + 1] = finding end
  end
  for _, layer in ipairs(policy.layers) do
    for _, path in ipairs(layer.files) do
      for number, line in ipairs(files[path] or {}) do
        local _, codes, reason = parse(line)
        for _, code in ipairs(codes or {}) do
          local entry
          if not is_code(code) then entry = problem(path, number, layer.name, "no finding has the code '%s'", code)
          elseif reason == "" then entry = problem(path, number, layer.name, "it needs a reason: -- check: ignore %s: why", code)
          elseif not used[path .. ":" .. number .. ":" .. code] then
            entry = problem(path, number, layer.name, "there is no finding '%s' here to ignore", code)
          end
          kept[#kept + 1] = entry
        end
      end
    end
  end
  return findings.sort(kept), count
end

return suppress
