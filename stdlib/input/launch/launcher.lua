-- SPDX-License-Identifier: Apache-2.0
-- launcher.lua: what launchers (torchrun, srun, deepspeed, torch.distributed) and #SBATCH lines say of the number of GPUs.

local lists = require "pipeplan.base.lists"

local launcher = {}

-- Flags of launchers (torchrun, torch.distributed) for processes a node and nodes.
local of_launchers = {
  ["--nproc_per_node"] = "processes", ["--nproc-per-node"] = "processes", ["--nnodes"] = "nodes", ["--num_nodes"] = "nodes",
  ["--ntasks-per-node"] = "processes", ["--nodes"] = "nodes", ["-N"] = "nodes", ["--ntasks"] = "tasks", ["-n"] = "tasks",
  ["--gpus-per-node"] = "gpus_per_node", ["--num_gpus"] = "processes",
}

local function number(word)
  if not word or word.unknown then return nil end
  local count = word.text:match "^%d+$" and math.tointeger(tonumber(word.text))
  return count and count >= 1 and count <= 10 ^ 9 and count or nil
end

-- Notes in `counts` what the words from first to last say, a word each: processes, nodes, tasks, gpus_per_node.
function launcher.count(counts, words, first, last)
  for i = first, last do
    local text = words[i].text
    local name, value = text:match "^(%-%-?[%w_-]+)=(.*)$"
    local what = of_launchers[name or text]
    if what then
      local word = name and lists.with(words[i], { text = value }) or words[i + 1]
      if word then counts[what] = word end
    end
  end
end

local function merged(a, b)
  if not a or not b then return a or b end
  return lists.with(a, b)
end

-- { value, line, rests, key } or nil; key of what is missing in launch.unresolved.
function launcher.gpus(counts, launch)
  local processes, nodes, tasks = counts.processes or counts.gpus_per_node, counts.nodes, counts.tasks
  local function missing(word)
    for _, name in ipairs(word and word.unknown or {}) do
      launch.unresolved[#launch.unresolved + 1] = { key = name, file = launch.file, line = word.line }
    end
  end
  if tasks and not processes then
    local count = number(tasks)
    if count then return { value = count, file = launch.file, line = tasks.line, rests = tasks.rests } end
  end
  if not processes then return nil end
  local per_node, count = number(processes), nodes and number(nodes) or not nodes and 1
  if not per_node then missing(processes) end
  if not count then missing(nodes) end
  if not per_node or not count or per_node * count > 10 ^ 9 then return nil end
  local rests = merged(processes.rests, nodes and nodes.rests)
  if not nodes and counts.launcher ~= "torchrun" then rests = merged(rests, { ["the number of nodes, which nobody says"] = true }) end
  return { value = per_node * count, file = launch.file, line = processes.line, rests = rests }
end

-- By the name of their program.
launcher.kinds = { torchrun = "torchrun", srun = "srun", python = "torchrun", python3 = "torchrun", deepspeed = "deepspeed" }

-- The same of the #SBATCH lines of a text.
function launcher.of_slurm(text)
  local counts, line = {}, 0
  for each in text:gmatch "([^\n]*)\n?" do
    line = line + 1
    if line > 400 then break end
    local rest = each:match "^#SBATCH%s+(.*)$"
    if rest then
      local words = {}
      for word in rest:gmatch "[^%s]+" do words[#words + 1] = { text = word:gsub("^(%-%a)(%d+)$", "%1=%2"), line = line } end
      for _, word in ipairs(words) do word.text = word.text:gsub("^(.-=)gpu:", "%1") end
      launcher.count(counts, words, 1, #words)
    end
  end
  return counts
end

return launcher
