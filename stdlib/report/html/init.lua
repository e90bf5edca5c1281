-- SPDX-License-Identifier: Apache-2.0
-- init.lua: what commands print as a page for a browser (--format html): one file, whose parts stand in this folder, each by its subject.

local html = {}

-- A plan, or why there is none; it has its explanation. program: from stdlib/plan/program.lua; command: the words of the command line.
function html.plan(plan, program, command)
  if plan.status == "planned" then return require("pipeplan.report.html.plan").planned(plan, program, command) end
  return require("pipeplan.report.html.refused").refused(plan, command)
end

-- A simulated schedule: see report/simulation.lua.
function html.simulation(run, command) return require("pipeplan.report.html.simulation").write(run, command) end

-- A monitored run: see report/monitor.lua.
function html.monitor(run, command) return require("pipeplan.report.html.monitor").write(run, command) end

return html
