-- SPDX-License-Identifier: Apache-2.0
-- cli_filter.lua: the gate on the login node, with the user's rights and before slurmctld hears of the job: it says at once what
-- job_submit.lua would say. Advice, for a user can go around it.

local gate = dofile((debug.getinfo(1, "S").source:match "^@(.*/)" or "/etc/slurm/") .. "pipeplan_gate.lua")

-- "8", "4k"; nil of what is not said, which Slurm has as 0 or -2.
local function number(text)
  local digits, k = (text or ""):match "^(%d+)([kK]?)$"
  local value = digits and digits * (k == "" and 1 or 1024)
  return value ~= 0 and value or nil
end

-- "4", "1-256" → fewest, most; "1-0" has no most.
local function nodes_of(text)
  local first, last = (text or ""):match "^(%w+)%-(%w+)$"
  if first then return number(first), number(last) end
  return number(text), number(text)
end

-- "8" or "h100:8,a100:2" of an option that speaks of GPUs only, as --gres says it.
local function as_gres(text) return text and "gpu:" .. text:gsub(",", ",gpu:") or "" end

local function gpus(text) return gate.gpus(as_gres(text)) end

local function asked(options, offset)
  local least, most = nodes_of(options.nodes)
  local tasks = number(options.ntasks)
  if tasks == 1 then tasks = nil end  -- said of a job that does not say it
  return {
    comment = options.comment, folder = options.chdir or os.getenv "PWD", partition = options.partition, account = options.account,
    qos = options.qos, per_job = gpus(options.gpus), per_node = gate.gpus(as_gres(options["gpus-per-node"]) .. "," .. (options.gres or "")),
    per_task = gpus(options["gpus-per-task"]), per_socket = gpus(options["gpus-per-socket"]), sockets = number(options["sockets-per-node"]),
    least_nodes = least, most_nodes = most, hosts = options.nodelist, tasks = tasks, tasks_per_node = number(options["ntasks-per-node"]),
    tasks_per_gpu = number(options["ntasks-per-gpu"]),
    whole = options.exclusive == "exclusive", together = (offset or 0) > 0 or gate.expands(options.dependency),
  }
end

function slurm_cli_setup_defaults() return slurm.SUCCESS end

function slurm_cli_post_submit() return slurm.SUCCESS end

function slurm_cli_pre_submit(options, offset)
  if options.type == "srun" and os.getenv "SLURM_JOB_ID" then return slurm.SUCCESS end  -- a step of a job that was judged
  local good, may = pcall(function()
    return gate.judge(asked(options, offset), function(line) slurm.log_error("%s", line) end,
                      function(line) slurm.log_info("pipeplan: %s", line) end)
  end)
  if not good then slurm.log_error("pipeplan: %s", tostring(may)) end
  return good and may and slurm.SUCCESS or slurm.ERROR
end
