-- SPDX-License-Identifier: Apache-2.0
-- mutants.lua: results of `pipeplan policy mutate` as text and JSON.

local documents = require "pipeplan.base.documents"
local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"

local report = {}

function report.count(results, outcome)
  local count = 0
  for _, result in ipairs(results) do
    if result.outcome == outcome then count = count + 1 end
  end
  return count
end

-- Killed of those that can be killed, as a fraction; 1 where there are none.
function report.score(results)
  local killed, survived = report.count(results, "killed"), report.count(results, "survived")
  return killed + survived > 0 and killed / (killed + survived) or 1
end

function report.text(results)
  local lines = {}
  for _, result in ipairs(results) do
    local mutant = result.mutant
    if result.outcome == "survived" then
      lines[#lines + 1] = string.format("%s:%d: survived: %s", mutant.file, mutant.line, mutant.id)
      if result.witness then lines[#lines + 1] = "  a spec that tells them apart: " .. json.encode(result.witness.spec) end
    end
  end
  local equivalent = report.count(results, "equivalent")
  lines[#lines + 1] = string.format("%d mutants: %d killed, %d survived%s; score %s", #results, report.count(results, "killed"),
                                    report.count(results, "survived"),
                                    equivalent > 0 and string.format(", %d listed as equivalent", equivalent) or "",
                                    format.share(report.score(results), 1))
  return format.page(lines)
end

function report.json(results)
  local list = json.array {}
  for i, result in ipairs(results) do
    local mutant = result.mutant
    list[i] = { id = mutant.id, kind = mutant.kind, file = mutant.file, line = mutant.line, outcome = result.outcome,
                by = result.by or json.null, reason = result.reason or json.null,
                witness = result.witness and result.witness.spec or json.null }
  end
  return documents.encode("mutants", { mutants = list, score = report.score(results) }, { indent = 2 }) .. "\n"
end

return report
