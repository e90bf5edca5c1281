-- SPDX-License-Identifier: Apache-2.0
-- commands.lua: the commands of the program, and what `pipeplan --help` says of them.

local commands = {}

commands.list = { "plan", "lint", "simulate", "monitor", "facts", "policy" }

commands.usage = [[
Usage: pipeplan COMMAND ...

  plan SPEC...      plan a training run: from a model, a cluster and a token budget to one page
  lint CONFIG...    hold launch scripts and YAML against the rules of their frameworks
  simulate NAME     build, verify and simulate one pipeline schedule
  monitor PLAN LOG  hold a run's log against its plan: keep the schedule, or roll back
  facts TOPIC       its tables: accelerators, links, kernels, frameworks, schedules, fields, schemas
  policy COMMAND    init, show, check, test, diff, mutate: a policy of your own, from its first
                    rule to its review

  COMMAND --help    options of a command, and examples
  --version, --help

Examples:
   pipeplan plan examples/specs/deepseek-v3.json
   pipeplan plan examples/specs/rules/too_deep.json --explain
   pipeplan simulate dualpipe --ranks 8 --microbatches 20
   pipeplan policy check --policy examples/sites/aws-p5.lua
]]

return commands
