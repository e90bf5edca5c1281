-- SPDX-License-Identifier: Apache-2.0
-- lint.lua: `pipeplan lint FILE…`: launch configurations held against the rules of their frameworks, or against a plan.

local argparse = require "pipeplan.argparse"
local command_line = require "pipeplan.cli.arguments"
local failure = require "pipeplan.base.failure"
local launch = require "pipeplan.input.launch.init"
local lint = require "pipeplan.analysis.lint.init"
local options = require "pipeplan.input.options"
local output = require "pipeplan.cli.output"
local reads = require "pipeplan.analysis.lint.reads"

local command = {}

local examples = [[
Read are: shell scripts that start Megatron-LM (variables with defaults, arrays, arithmetic; nothing
of them is executed), the block of arguments that Megatron-LM logs, YAML of FlagScale (a top file
with its train/NAME.yaml, or that alone), run_config.yaml of Megatron-Bridge, YAML of NeMo, Primus,
and MODEL_ARGS of Megatron's tests; torchtitan's command lines; DeepSpeed's configuration, alone or
beside what starts it. A recipe in Python is a program: print it and lint that.
What a file does not say, fields of a spec say: --gpus 128. What it takes from its environment,
--variable says: --variable NNODES=16. What stays unknown is listed, and what rests on a default or
on a branch of a script says so. With --accelerator and what else a plan needs, memory is computed.
YAML is read with lyaml (Debian: lua-yaml).

Exit status: 0 no finding above a note; 1 findings, or a difference from --plan; 2 a file cannot be
read or understood. Over several files the worst, 2 before 1.

Examples:
   pipeplan lint examples/launch/llama3_70b.sh
       would Megatron-LM start with these arguments, and what would it run?
   pipeplan lint examples/launch/llama3_70b.sh --variable SLURM_NNODES=32 --format json
       on 32 nodes, for a machine
   pipeplan lint examples/launch/dualpipev.yaml --gpus 8 --format github
       annotations in a pull request; --format sarif for code scanning
   pipeplan plan examples/launch/llama3_70b.sh --accelerator GB200 --format json -o plan.json
       the plan of what a script starts, which
   pipeplan lint examples/launch/llama3_70b.sh --plan plan.json
       then holds against the script as it becomes]]

function command.parser()
  local parser = argparse("pipeplan lint", "Holds launch configurations against the rules of their frameworks, without a GPU.")
    :add_help(false):help_max_width(100):help_description_margin(30):usage("Usage: pipeplan lint FILE... [OPTIONS]"):epilog(examples)
  parser:argument("file", "launch configurations; - is standard input"):args("+")
  parser:option("--format", "what to print (default text)"):argname("FORMAT"):choices { "text", "json", "sarif", "github" }
  parser:option("--plan", "hold each against this plan (plan --format json) too"):argname("FILE")
  parser:option("--variable", "what a variable of the environment holds"):argname("NAME=VALUE"):count("*")
  parser:option("--output", "write to this file instead, whole or not at all (also: -o FILE)"):argname("FILE"):hidden_name("-o")
  parser:flag("-h --help", "show this help")
  parser:group("The policy, for memory", command_line.declare_policy(parser))
  options.declare(parser)
  return parser
end

local function variables_of(list)
  local out = {}
  for _, text in ipairs(list) do
    local name, value = text:match "^([%a_][%w_]*)=(.*)$"
    if not name then failure.usage("--variable: '%s' is not NAME=VALUE", text) end
    out[name] = value
  end
  return out
end

local function gpus_of(given)
  if not given.gpus then return nil end
  local fields = require "pipeplan.input.fields"
  local value, problem = fields.check(fields.by_path["cluster.gpus"], given.gpus)
  if math.type(value) ~= "integer" then failure.usage("lint: --gpus is %s", problem or "minimum: expected how many there are") end
  return value
end

-- The results of one file.
local function results_of(path, shared)
  local list = launch.read(path, { variables = shared.variables, given = shared.given })
  for i, each in ipairs(list) do
    local result = lint.of(each, { gpus = shared.gpus })
    if result.record then result.reads = reads.of(result) end
    if result.record and (shared.given.accelerator or shared.given.memory_per_gpu) then
      shared.policy = shared.policy or command_line.policy(shared.parsed)
      result.memory, result.memory_why = require("pipeplan.analysis.lint.memory").of(result, shared.given, shared.policy)
    end
    if shared.plan and result.reads then
      local against = require "pipeplan.analysis.lint.against"
      local more = against.compare(result, result.reads, shared.plan, shared.parsed.plan)
      result.findings = lint.sorted(table.move(more, 1, #more, #result.findings + 1, result.findings))
    end
    list[i] = result
  end
  return list
end

function command.run(arguments)
  local parsed, help = command_line.parse(command.parser(), arguments, "lint")
  if not parsed then return help, failure.status.ok end
  local given = options.given(parsed)
  local shared = { parsed = parsed, given = given, variables = variables_of(parsed.variable), gpus = gpus_of(given) }
  if parsed.plan then shared.plan = require("pipeplan.analysis.lint.against").read(parsed.plan) end
  local results, status = {}, failure.status.ok
  for _, path in ipairs(parsed.file) do
    local good, outcome = failure.try(results_of, path, shared)
    if good then table.move(outcome, 1, #outcome, #results + 1, results)
    else
      if not failure.is(outcome) or outcome.status ~= failure.status.usage or #parsed.file == 1 then error(outcome, 0) end
      output.complain(outcome.message)
      status = failure.status.usage
    end
  end
  for _, result in ipairs(results) do
    if status == failure.status.ok and lint.count(result.findings) > 0 then status = failure.status.refused end
  end
  if #results == 0 then return nil, status end
  return require("pipeplan.report.lint")[parsed.format or "text"](results), status, parsed.output
end

return command
