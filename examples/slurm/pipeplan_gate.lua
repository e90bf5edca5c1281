-- SPDX-License-Identifier: Apache-2.0
--[[
pipeplan_gate.lua: judges a Slurm job by the plan of its spec. job_submit.lua (in slurmctld, which nobody goes around) and cli_filter.lua
(on the login node, sooner) lie beside it and ask it. docs/slurm.md says how to install it. Slurm's plugins are Lua 5.1.

A job names its spec in its comment: sbatch --comment pipeplan=SPEC.json, which is relative to the job's working folder. From `from` GPUs
on it has to. It is refused unless pipeplan plans the spec, for as many GPUs as the job gets.

Whatever goes wrong, the answer is no: an error that leaves a plugin's function would let the job run.
]]

local gate = {}

-- Yours to change; touch job_submit.lua afterwards, for slurmctld looks at its time only.
gate.settings = {
  pipeplan = "/usr/local/bin/pipeplan",  -- the program, on the computer of slurmctld and on login nodes
  system = "/etc/pipeplan",        -- its policies.d holds without being named (PIPEPLAN_SYSTEM)
  policies = {},                   -- laid over those, in this order: paths of files and folders
  digest = nil,                    -- none but these together: the digest of `pipeplan plan … --format verdict`
  from = 64,                       -- so many GPUs or more need a plan
  gpus_per_node = 8,               -- what a job has of a node that it has whole, though it asks for none
  exempt = { partition = {}, account = {}, qos = {} },  -- names whose jobs need no plan
  seconds = 2,                     -- for a verdict, and again for the nearest change: other submissions wait meanwhile
  closed = true,                   -- where pipeplan is missing or the policies do not load: false lets the job run, and notes it
  accelerator = "H100-SXM",        -- in the example that users are shown
  record = nil,                    -- file to which slurmctld's decisions are appended (docs/approval.md)
  help = nil,                      -- a line for users at the end of each refusal: whom to ask
}

local settings = gate.settings

-- ------------------------------------------------------------------------------------------------------------------ counting GPUs

-- "4k" as Slurm takes it (_is_valid_number, suffix_mult): 4096; nil of what is no number: "1g.10gb" is a kind of GPU.
local powers = { k = 1, m = 2, g = 3, t = 4, p = 5 }

local function number(text)
  local digits, letter, rest = text:lower():match "^(%d+)(%a?)(%a*)$"
  if not digits or letter ~= "" and not powers[letter] then return nil end
  local base = rest == "b" and 1000 or (rest == "" or rest == "ib") and 1024
  if not base then return nil end
  local value = tonumber(digits) * base ^ (powers[letter] or 0)
  return value < 2 ^ 53 and math.floor(value) or math.huge   -- Slurm's overflows
end

-- "", ":8", ":h100", ":h100:8", "=8" behind "gpu" → kind, "" of any; how many, huge of what versions of Slurm read differently, or refuse.
local function kind_of(rest)
  local before, sign, last = rest:match "^(.*)([:=])([^:=]*)$"
  if not before then return "", 1 end
  local kind, count = before:gsub("^:", ""), number(last)
  if count then return kind, count end
  local one = sign == ":" and before == "" and last:find "^%w"   -- "h100": one of that kind
  return one and last or kind, one and 1 or math.huge
end

-- The GPUs in "gres:gpu:8", "gres/gpu:h100:4,gres:nic:2" or "gpu", by kind: { h100 = 4 }; nil of none. As Slurm does, "gres" is looked for
-- in all of an item (_get_next_gres in its gres.c, slurm_get_next_tres by 24.11), and of one kind the larger number is the total.
-- However many shares of GPUs a job has on a node, they are of one GPU (gres.shtml; unless MULTIPLE_SHARING_GRES_PJ is set).
local shares = { mps = true, shard = true }

function gate.gpus(tres)
  local kinds
  for item in (tres or ""):gmatch "[^,]+" do
    local name, rest = item:gsub("^.-gres[:/]?", ""):match "^(%w+)(.*)$"
    if (name == "gpu" or shares[name]) and (rest == "" or rest:find "^[:=]") then
      local kind, count = kind_of(rest)
      if shares[name] then kind, count = name, math.min(count, 1) end
      kinds = kinds or {}
      kinds[kind] = math.max(count, kinds[kind] or 0)
    end
  end
  return kinds
end

-- How many hosts "far[1-3,07],login" are.
function gate.hosts(list)
  local sum = 0
  list = (list or ""):gsub("(%b[])", function(inside)
    return "[" .. inside:sub(2, -2):gsub(",", ";") .. "]"
  end)
  for name in list:gmatch "[^,]+" do
    local product = 1
    for inside in name:gmatch "%[(.-)%]" do
      local count = 0
      for part in inside:gmatch "[^;]+" do
        local first, last = part:match "^(%d+)%-(%d+)$"
        count = count + (first and last - first + 1 or 1)
      end
      product = product * count
    end
    sum = sum + product
  end
  return sum
end

-- Fewest and most nodes of a job.
local function nodes_of(job)
  local least = math.max(job.least_nodes or 1, gate.hosts(job.hosts))
  local by_tasks = job.tasks or 1
  if job.tasks and job.tasks_per_node then
    by_tasks = math.ceil(job.tasks / job.tasks_per_node)
    least = math.max(least, math.min(by_tasks, job.most_nodes or by_tasks))
  elseif not job.tasks and job.cpus then
    by_tasks = math.ceil(job.cpus / (job.cpus_per_task or 1))
  end
  return least, math.max(least, job.most_nodes or by_tasks)
end

local function of_a_kind(job, kind, least_nodes, most_nodes)
  local function asked(field) return job[field] and job[field][kind] end
  local per_job, per_node, per_task, per_socket = asked "per_job", asked "per_node", asked "per_task", asked "per_socket"
  if per_job then return per_job, per_job end
  if per_node then return per_node * least_nodes, per_node * most_nodes end
  if per_task then
    local of_a_node = job.tasks_per_gpu or job.tasks_per_node or 1
    local least = per_task * (job.tasks or least_nodes * of_a_node)
    return least, job.tasks and least or job.lost and math.huge or per_task * most_nodes * of_a_node
  end
  return per_socket * (job.sockets or 1) * least_nodes, job.sockets and per_socket * job.sockets * most_nodes or math.huge
end

--[[ Fewest and most GPUs that a job may get. job, nil where not said:
  comment, folder, partition, account, qos, user (number; specs must be theirs, or everybody's to read), user_name
  per_job, per_node, per_task, per_socket    gate.gpus of each
  least_nodes, most_nodes, hosts, tasks, tasks_per_node, tasks_per_gpu, cpus, cpus_per_task, sockets
  whole       has all of each of its nodes
  together    runs with other jobs as one
  lost        its tasks are not told: it is a change
  kept        a kind of GPU that a change does not name, so that Slurm leaves it to the job ]]
function gate.count(job)
  local least_nodes, most_nodes = nodes_of(job)
  local least, most, kinds = 0, 0, {}
  for _, field in ipairs { "per_job", "per_node", "per_task", "per_socket" } do
    for kind in pairs(job[field] or {}) do kinds[kind] = true end
  end
  -- What is asked of one kind in several ways has to agree; kinds add up (Slurm's gres.c, gres_job_state_validate: a record a kind).
  for kind in pairs(kinds) do
    local fewest, top = of_a_kind(job, kind, least_nodes, most_nodes)
    least, most = least + fewest, most + top
  end
  if not next(kinds) and job.tasks_per_gpu then
    least = job.tasks and math.ceil(job.tasks / job.tasks_per_gpu) or least_nodes
    most = job.tasks and least or job.lost and math.huge or most_nodes
  end
  if job.kept then most = math.huge end
  if job.whole then
    least = math.max(least, settings.gpus_per_node * least_nodes)
    most = math.max(most, settings.gpus_per_node * most_nodes)
  end
  return least, most
end

-- --------------------------------------------------------------------------------------------------------------- asking pipeplan

local function quote(word) return "'" .. word:gsub("'", "'\\''") .. "'" end

-- What may be read of a user's spec by whoever runs the gate: a file that waits for nobody, and that its user may read too.
local checks = [[
[ ! -e "$1" ] || [ -f "$1" ] || { echo "pipeplan: $1: is no regular file"; exit 2; }
[ ! -e "$1" ] || [ -z "$2" ] || [ -n "$(find -L "$1" -maxdepth 0 \( -user "$2" -o -perm -o=r \))" ] ||
  { echo "pipeplan: $1: is not yours, and not for everybody to read: chmod o+r"; exit 2; }
spec=$1 program=$3; shift 3
exec "$program" plan --format verdict "$@" -- "$spec"
]]

-- What a command prints. slurmctld gets signals: of a read that one ends (EINTR) what was read is lost, so the command is run again.
local function output_of(command)
  local text, problem, code
  for _ = 1, 5 do
    local pipe = assert(io.popen(command))
    text, problem, code = pipe:read "*a"
    pipe:close()
    if text or code ~= 4 then break end
  end
  return text or problem
end

-- Exit status and output of a plan, in an environment of its own: a user's variables name policies. (close() says neither in Lua 5.1.)
local function plan(spec, owner, more)
  local words = { "env -i PATH=/usr/local/bin:/usr/bin:/bin", "PIPEPLAN_SYSTEM=" .. quote(settings.system),
                  "timeout --signal=KILL " .. settings.seconds, "sh -c", quote(checks), "gate", quote(spec), quote(owner or ""),
                  quote(settings.pipeplan) }
  for _, policy in ipairs(settings.policies) do words[#words + 1] = quote("--policy=" .. policy) end
  if settings.digest then words[#words + 1] = quote("--policy-digest=" .. settings.digest) end
  local text = output_of("(" .. table.concat(words, " ") .. " " .. more .. ") </dev/null 2>&1; echo $?")
  local out, status = text:match "^(.-)\n?(%d+)\n$"
  return tonumber(status), out or text
end

-- The answers of a verdict behind that word.
local function answers(out, word)
  local list = {}
  for line in (out .. "\n"):gmatch "([^\n]*)\n" do
    list[#list + 1] = line:match("^" .. word .. " (.*)$")
  end
  return list
end

-- ------------------------------------------------------------------------------------------------------------------- the verdict

local function span(least, most)
  if most == math.huge then return "an unknown number of" end
  return least == most and tostring(most) or least .. " to " .. most
end

-- How a job says for certain what it gets.
local function say_how_many(job)
  if job.kept then return "a change of GPUs leaves those of kind '" .. job.kept .. "' to the job: cancel it and submit it again" end
  if job.lost then return "a change does not tell its tasks: cancel the job and submit it again" end
  if job.per_socket then return "ask with --gpus-per-node instead of --gpus-per-socket" end
  return "say how many nodes, and no range: --nodes N"
end

local function without_a_plan(job, least, most, from)
  local lines = { string.format("this job gets %s GPUs, and one of %d or more needs a plan that this cluster's rules accept",
                                span(least, most), from) }
  if job.whole then lines[2] = string.format("(it has its nodes whole, with %d GPUs each)", settings.gpus_per_node) end
  if job.together then lines[#lines + 1] = "(it runs together with other jobs, so each of them that has GPUs needs one)" end
  if least ~= most then lines[#lines + 1] = say_how_many(job) end
  lines[#lines + 1] = "1. describe the run in a file, run.json, with your model, GPUs and tokens:"
  local example = '   {"cluster": {"gpus": %d, "accelerator": "%s"}, "model": "config.json", "training": {"tokens": "1T"}}'
  lines[#lines + 1] = example:format(least == math.huge and from or least, settings.accelerator)
  lines[#lines + 1] = "   (config.json: the model's, as Hugging Face has it)"
  lines[#lines + 1] = "2. see whether and how it is planned: " .. settings.pipeplan .. " plan run.json"
  lines[#lines + 1] = "3. submit with --comment pipeplan=run.json"
  if from > 1 then lines[#lines + 1] = string.format("or ask for fewer than %d GPUs", from) end
  return lines
end

local function another_count(job, name, planned, least, most)
  if least ~= most then
    return { string.format("%s plans %d GPUs, and this job may get %s", name, planned, span(least, most)), say_how_many(job) }
  end
  local lines = { string.format("%s plans %d GPUs, and this job gets %d", name, planned, most),
                  string.format("make cluster.gpus %d there, or ask for %d GPUs here", most, planned) }
  if job.whole then lines[3] = string.format("(it has its nodes whole, with %d GPUs each)", settings.gpus_per_node) end
  return lines
end

local function refused(name, spec, owner, out)
  local lines = { (answers(out, "status")[1] or "not planned") .. ": " .. name }
  for _, reason in ipairs(answers(out, "reason")) do lines[#lines + 1] = "because " .. reason end
  local status, more = plan(spec, owner, "--explain")
  local nearest = status == 1 and answers(more, "nearest") or {}
  for i = 1, math.min(2, #nearest) do lines[#lines + 1] = "change " .. nearest[i] end
  for i, way in ipairs(#nearest == 0 and answers(out, "would_fit") or {}) do
    if i <= 2 then lines[#lines + 1] = "change " .. way end
  end
  for _, instead in ipairs(answers(out, "instead")) do lines[#lines + 1] = "or plan " .. instead end
  lines[#lines + 1] = "the whole page: " .. settings.pipeplan .. " plan " .. name .. " --explain"
  return lines
end

-- The spec that a comment names; nil of none; nil and what is wrong with it.
function gate.spec(comment)
  local found
  for path in (" " .. (comment or "")):gmatch "[ ,;]pipeplan=([^%s,;]*)" do
    if path == "" or found and found ~= path then return nil, "the comment is to name one spec: pipeplan=SPEC.json" end
    found = path
  end
  return found
end

-- The whole path of a spec; nil and why there is none. slurmctld takes any text for a working folder (scontrol update workdir=…): one that
-- does not begin at the root would be an option of whoever reads it, or lie in slurmctld's own folder.
local function path_of(name, folder)
  if name:sub(1, 1) == "/" then return name end
  if (folder or "") == "" then return nil, name .. ": the job has no working folder: name a whole path" end
  if folder:sub(1, 1) ~= "/" then
    return nil, string.format("%s: the job's working folder is '%s', expected one that begins with /: name a whole path", name, folder)
  end
  return folder .. "/" .. name
end

-- Does a dependency make the job a part of another? Slurm takes the word in any case (job_scheduler.c, update_job_dependency).
function gate.expands(dependency) return (dependency or ""):lower():find "expand:" ~= nil end

local function is_exempt(job)
  for field, names in pairs(settings.exempt) do
    local known, all, some = {}, true, false
    for _, name in ipairs(names) do known[name] = true end
    for name in (job[field] or ""):gmatch "[^,]+" do all, some = all and known[name], true end
    if some and all then return true end
  end
  return false
end

-- Lines that say why a job may not run; or nil, and what to note of it.
function gate.verdict(job)
  if is_exempt(job) then return nil end
  local least, most = gate.count(job)
  local name, problem = gate.spec(job.comment)
  if problem then return { problem } end
  local from = job.together and 1 or settings.from
  if not name then return most >= from and without_a_plan(job, least, most, from) or nil end
  local spec, nowhere = path_of(name, job.folder)
  if nowhere then return { nowhere } end
  local record = settings.record and job.user
                 and quote("--record=" .. settings.record) .. " " .. quote("--record-for=" .. (job.user_name or job.user))
  local status, out = plan(spec, job.user, record or "")
  local words = out:gsub("^pipeplan: ", ""):match "[^\n]*"
  if status == 0 then
    local planned = tonumber(answers(out, "gpus")[1])
    if least ~= planned or most ~= planned then return another_count(job, name, planned, least, most) end
    return nil, string.format("%s on %d GPUs, spec %s, policies %s", answers(out, "schedule")[1], planned, answers(out, "spec")[1],
                              answers(out, "digest")[1])
  elseif status == 1 then return refused(name, spec, job.user, out)
  elseif status == 2 and not (settings.record and out:find(settings.record, 1, true)) then
    local hint = out:find "Permission denied" and "slurmctld reads it, not you: let everybody enter its folder and read it"
                 or "(a spec that pipeplan cannot read; try it: " .. settings.pipeplan .. " plan " .. name .. ")"
    return { words, hint }
  elseif status == 124 or status == 137 then
    return { string.format("%s: no verdict within %s s, so the answer is no", name, settings.seconds),
             "try it: " .. settings.pipeplan .. " plan " .. name }
  end
  local whose = status == 6 and "this cluster's policies do not load, which is no fault of yours"
                or string.format("no verdict (status %d)", status)
  -- What a user's spec can bring about is never let through.
  if not settings.closed and (status == 6 or status == 126 or status == 127) then return nil, "no verdict, status " .. status end
  return { whose .. ": tell those who run this cluster", words }
end

-- What Slurm is to hear: may it run? `say` tells the user a line, `note` keeps one.
function gate.judge(job, say, note)
  local good, lines, noted = pcall(gate.verdict, job)
  if not good then lines = { "the gate failed, so the answer is no: tell those who run this cluster", tostring(lines) } end
  if not lines then
    if noted then note(noted) end
    return true
  end
  if settings.help then lines[#lines + 1] = settings.help end
  for i, line in ipairs(lines) do say((i == 1 and "pipeplan: " or "  ") .. line:gsub("%c", "?")) end
  return false
end

return gate
