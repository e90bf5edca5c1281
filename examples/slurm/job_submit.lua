-- SPDX-License-Identifier: Apache-2.0
-- job_submit.lua: the gate in slurmctld: jobs as they are submitted, and as they are changed before they start. It decides.
-- SlurmUser must be able to read the specs. Where you have a job_submit.lua already, call judge from it.

local gate = dofile((debug.getinfo(1, "S").source:match "^@(.*/)" or "/etc/slurm/") .. "pipeplan_gate.lua")

-- Fields that a change may give a job more GPUs by, or take its plan away by.
local numbers = { "min_nodes", "max_nodes", "num_tasks", "ntasks_per_node", "min_cpus", "cpus_per_task", "sockets_per_node", "shared",
                  "ntasks_per_gpu", "ntasks_per_tres" }
local texts = { "tres_per_job", "tres_per_node", "tres_per_task", "tres_per_socket", "req_nodes", "partition", "account", "qos" }

local function is_set(value) return value ~= nil and value ~= slurm.NO_VAL and value ~= slurm.NO_VAL16 end

-- A field as it is once the change is made. Slurm says 0 of the most nodes of a job that has no limit.
local function value(job, old, field)
  if is_set(job[field]) then return job[field] end
  local before = old and old[field]
  return is_set(before) and before or nil
end

-- Of every node that it gets a job of this partition has all.
local function is_whole(parts, names)
  for name, part in pairs(parts or {}) do
    local named = names and ("," .. names .. ","):find("," .. name .. ",", 1, true) or not names and part.flag_default == 1
    if named and part.max_share == 0 then return true end
  end
  return false
end

-- The first kind of GPU that a job asked for in one of those ways and its change of that way does not name: Slurm lays the change over what
-- was asked (src/slurmctld/job_mgr.c, gres_job_state_list_dup), and the record shows the change alone.
local function kept_kind(job, old)
  for _, field in ipairs { "tres_per_job", "tres_per_node", "tres_per_task", "tres_per_socket" } do
    local now = old and job[field] and job[field] ~= "" and (gate.gpus(job[field]) or {})
    for kind in pairs(now and gate.gpus(old[field]) or {}) do
      if not now[kind] then return kind end
    end
  end
end

-- In the note, for a job's record says neither.
local WHOLE, PART = "whole nodes", "part of another job"

local function asked(job, old, parts)
  local function get(field) return value(job, old, field) end
  local most = get "max_nodes"
  local shared = is_set(job.shared) and job.shared or nil
  local function noted(mark) return (old and old.admin_comment or ""):find("pipeplan: [^;]*" .. mark) ~= nil end
  local was_whole, was_part = noted(WHOLE), noted(PART)
  local part = gate.expands(job.dependency) or job.dependency == nil and was_part
  return {
    comment = get "comment", folder = get "work_dir", user = tostring(old and old.user_id or job.user_id), user_name = job.user_name,
    partition = get "partition", account = get "account" or job.default_account, qos = get "qos",
    per_job = gate.gpus(get "tres_per_job"), per_node = gate.gpus(get "tres_per_node"), per_task = gate.gpus(get "tres_per_task"),
    per_socket = gate.gpus(get "tres_per_socket"), sockets = get "sockets_per_node",
    least_nodes = get "min_nodes", most_nodes = most ~= 0 and most or nil, hosts = get "req_nodes",
    tasks = get "num_tasks", tasks_per_node = get "ntasks_per_node", tasks_per_gpu = get "ntasks_per_gpu" or get "ntasks_per_tres",
    cpus = get "min_cpus", cpus_per_task = get "cpus_per_task" or old and value(old, nil, "pn_min_cpus"),
    whole = shared == 0 or not shared and was_whole or is_whole(parts, get "partition"),
    part = part, fresh = job.shared == 0 and not was_whole or gate.expands(job.dependency) and not was_part,  -- what no note says yet
    together = not old and is_set(job.het_job_offset) or old ~= nil and (old.het_job_id or 0) ~= 0 or part,
    lost = old ~= nil and not is_set(job.num_tasks), kept = kept_kind(job, old),
  }
end

-- What this gate noted before is taken out, what others did stays.
local function note(job, old, text)
  local kept = (job.admin_comment or old and old.admin_comment or ""):gsub(";? ?pipeplan: [^;]*", "")
  local all = kept .. (kept ~= "" and text and "; " or "") .. (text and "pipeplan: " .. text or "")
  if all ~= (job.admin_comment or old and old.admin_comment or "") then job.admin_comment = all end
end

-- Whose change may set the note? Slurm lets administrators alone, and asks again after this plugin (job_mgr.c, _update_job); a change that
-- it sets for anybody else is denied. Lua hears no more of who that is than a user's number.
local function may_note(job, old, uid) return not old or uid == 0 or job.admin_comment ~= nil end

local function judge(job, old, parts, uid)
  local good, may = pcall(function()
    local ask = asked(job, old, parts)
    local notes = may_note(job, old, uid)
    if ask.fresh and not notes then
      slurm.log_user("%s", "pipeplan: such a change is noted in the job's AdminComment, and root alone can do that: submit it anew")
      return false
    end
    local marks = {}
    if ask.whole then marks[#marks + 1] = WHOLE end
    if ask.part then marks[#marks + 1] = PART end
    local may = gate.judge(ask, function(line) slurm.log_user("%s", line) end,
                           function(line) table.insert(marks, 1, line) end)
    local noted = marks[1] and table.concat(marks, ", ")
    if may and notes then note(job, old, noted)
    elseif may and noted then slurm.log_info("pipeplan: a change of job %s: %s", tostring(old.job_id), noted) end
    return may
  end)
  if not good then slurm.log_error("pipeplan: %s", tostring(may)) end
  return good and may and slurm.SUCCESS or slurm.ESLURM_ACCESS_DENIED
end

-- May this change give a job that waits more, or something else to be judged by? (A job that runs can only shrink.)
local function is_judged(job, old)
  if (old.job_state or 0) % 256 ~= 0 then return false end
  for _, field in ipairs(numbers) do
    if is_set(job[field]) and job[field] ~= old[field] then return true end
  end
  for _, field in ipairs(texts) do
    if job[field] ~= nil and job[field] ~= old[field] then return true end
  end
  if gate.expands(job.dependency) then return true end
  return job.comment ~= nil and gate.spec(job.comment) ~= gate.spec(old.comment)
end

function slurm_job_submit(job, parts)
  return judge(job, nil, parts)
end

function slurm_job_modify(job, old, parts, uid)
  local good, judged = pcall(is_judged, job, old)
  if good and not judged then return slurm.SUCCESS end
  return judge(job, old, parts, uid)
end
