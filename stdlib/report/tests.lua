-- SPDX-License-Identifier: Apache-2.0
-- tests.lua: results of `pipeplan policy test` as text, TAP (version 13), JUnit XML and JSON, with the coverage of the policy.

local coverage = require "pipeplan.analysis.coverage"
local documents = require "pipeplan.base.documents"
local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"
local xml = require("pipeplan.report.xml").escape

local report = {}

local marks = { passed = "ok", failed = "FAILED", error = "ERROR", skipped = "skipped" }

function report.count(results, status)
  local count = 0
  for _, result in ipairs(results) do
    if result.status == status then count = count + 1 end
  end
  return count
end

-- "12 passed, 1 failed"
local function summary(results)
  local parts = {}
  for _, status in ipairs { "passed", "failed", "error", "skipped" } do
    local count = report.count(results, status)
    if count > 0 then parts[#parts + 1] = string.format("%d %s", count, status == "error" and count > 1 and "errors" or status) end
  end
  return table.concat(parts, ", ")
end

local function share(covered, all)
  if all == 0 then return "nothing to cover" end
  local percent = 100 * covered / all
  return covered < all and percent >= 99.5 and format.share(covered, all) or string.format("%.0f %%", percent)
end

local does = { boundary = "tries both sides of", answer = "gets both answers of" }

local function coverage_lines(items, lines)
  local parts = {}
  for _, kind in ipairs(coverage.kinds) do
    local covered, all = coverage.count(items, kind)
    if all > 0 then parts[#parts + 1] = string.format("%s %d/%d", kind, covered, all) end
  end
  local covered, all = coverage.count(items)
  lines[#lines + 1] = string.format("coverage: %s%s", share(covered, all), #parts > 0 and " (" .. table.concat(parts, ", ") .. ")" or "")
  for _, item in ipairs(items) do
    if not item.covered then
      lines[#lines + 1] = string.format("  %s:%d: no test %s %s", item.file, item.line,
                                        does[item.kind] or "reaches", item.text)
    end
  end
end

-- What a test says, which may be several lines, each behind `margin`.
local function add_message(lines, margin, message)
  for line in (message or ""):gmatch "[^\n]+" do lines[#lines + 1] = margin .. line end
end

function report.text(results, items)
  local lines = {}
  for _, result in ipairs(results) do
    lines[#lines + 1] = string.format("%s  %s", format.pad(marks[result.status], 7), result.name)
    add_message(lines, "         ", result.message)
  end
  lines[#lines + 1] = ""
  lines[#lines + 1] = summary(results)
  coverage_lines(items, lines)
  return format.page(lines)
end

function report.tap(results, items)
  local lines = { "TAP version 13", "1.." .. #results }
  for i, result in ipairs(results) do
    local bad = result.status == "failed" or result.status == "error"
    lines[#lines + 1] = string.format("%s %d - %s%s", bad and "not ok" or "ok", i, result.name:gsub("[\\#]", "\\%0"),
                                      result.status == "skipped" and " # SKIP" or "")
    if bad then add_message(lines, "# ", result.message) end
  end
  local notes = {}
  coverage_lines(items, notes)
  for _, line in ipairs(notes) do lines[#lines + 1] = "# " .. line end
  return format.page(lines)
end

-- The JUnit schema that CI servers read: testsuite, testcase, failure, error, skipped.
function report.junit(results)
  local total = 0
  for _, result in ipairs(results) do total = total + result.seconds end
  local lines = { '<?xml version="1.0" encoding="UTF-8"?>',
    string.format('<testsuite name="pipeplan policy test" tests="%d" failures="%d" errors="%d" skipped="%d" time="%.3f">', #results,
                  report.count(results, "failed"), report.count(results, "error"), report.count(results, "skipped"), total) }
  for _, result in ipairs(results) do
    lines[#lines + 1] = string.format('  <testcase classname="%s" name="%s" file="%s" line="%d" time="%.3f">', xml(result.file),
                                      xml(result.name), xml(result.file), result.line, result.seconds)
    if result.status == "failed" then lines[#lines + 1] = string.format('    <failure message="%s"/>', xml(result.message))
    elseif result.status == "error" then lines[#lines + 1] = string.format('    <error message="%s"/>', xml(result.message))
    elseif result.status == "skipped" then lines[#lines + 1] = "    <skipped/>" end
    lines[#lines + 1] = "  </testcase>"
  end
  lines[#lines + 1] = "</testsuite>"
  return table.concat(lines, "\n") .. "\n"
end

function report.json(results, items)
  local tests, list = json.array {}, json.array {}
  for i, result in ipairs(results) do
    tests[i] = { name = result.name, file = result.file, line = result.line, status = result.status, message = result.message or json.null,
                 assertions = result.assertions }
  end
  for i, item in ipairs(items) do
    list[i] = { kind = item.kind, id = item.id, text = item.text, file = item.file, line = item.line, layer = item.layer,
                covered = item.covered }
  end
  local covered, all = coverage.count(items)
  return documents.encode("tests", { tests = tests, coverage = { covered = covered, all = all, items = list } }, { indent = 2 }) .. "\n"
end

return report
