-- SPDX-License-Identifier: Apache-2.0
-- The gate of examples/slurm before a real slurmctld: which jobs it takes, which it refuses, and what their users are told.

local cjson = require "cjson"
local files = require "policy_files"
local manual = require "manual"
local program = require "program"
local slurm = require "slurm"

local source, pipeplan = os.getenv "PIPEPLAN_SOURCE", os.getenv "PIPEPLAN"

local missing = slurm.missing { "slurmctld", "munged", "sbatch", "scontrol" }
if missing then
  describe("the gate of Slurm", function() it("judges jobs", function() pending(missing) end) end)
  return
end

local read = require "read_file"

-- Settings of the gate as Lua text, by name, in place of the shipped ones.
local function gate(changes)
  local text = read(source .. "/examples/slurm/pipeplan_gate.lua")
  for name, value in pairs(changes) do
    local count
    text, count = text:gsub("\n  " .. name .. " = [^\n]-,( +%-%- )", function(tail) return "\n  " .. name .. " = " .. value .. "," .. tail end)
    assert(count == 1, "no setting " .. name)
  end
  return text
end

local installed = 0

-- Puts the plugins where both look for them. slurmctld reads job_submit.lua again when its time is later than before.
local function install(cluster, changes)
  local settings = { pipeplan = "'" .. pipeplan .. "'", system = "'" .. cluster.folder .. "/system'", seconds = "20" }
  for name, value in pairs(changes or {}) do settings[name] = value end
  for _, folder in ipairs { "submit", "login" } do cluster:write(folder .. "/pipeplan_gate.lua", gate(settings)) end
  cluster:write("submit/job_submit.lua", read(source .. "/examples/slurm/job_submit.lua"))
  cluster:write("login/cli_filter.lua", read(source .. "/examples/slurm/cli_filter.lua"))
  installed = installed + 1
  os.execute(string.format("touch -d '2037-01-01 00:00:00 UTC +%d seconds' '%s/submit/job_submit.lua'", installed, cluster.folder))
end

local cluster = slurm.start(install)
teardown(function()
  cluster:stop()
  files.remove()
end)
before_each(function() install(cluster) end)

local function spec(gpus, parallelism, more)
  return string.format('{ "cluster": { "gpus": %d, "accelerator": "H100-SXM" }, "model": { "architecture": "dense", "total": "70B", "layers": 96 },\n'
                       .. '  "training": { "tokens": "1T", "global_batch_size": 1152 }, "parallelism": { %s }%s }\n', gpus, parallelism or "", more or "")
end

cluster:write("jobs/run.json", spec(256))
cluster:write("jobs/half.json", spec(128))
cluster:write("jobs/deep.json", spec(1152, '"pipeline": 72, "tensor": 8, "schedule": "1f1b"'))
cluster:write("jobs/broken.json", '{ "cluster": { "gpus": 256 ')
cluster:write("jobs/colour.json", spec(256, nil, ', "colour": "red"'))
cluster:write("jobs/job.sh", "#!/bin/sh\nsleep 1000\n")
os.execute(string.format("mkfifo '%s/jobs/fifo.json'; ln -s run.json '%s/jobs/link.json'; mkdir '%s/jobs/sub'", cluster.folder, cluster.folder, cluster.folder))
cluster:write("jobs/sub/near.json", spec(256))

-- A job that is refused; these lines, in this order, are among what its user is told. → all of it
local function refused(arguments, lines, command)
  local status, text = cluster:shell((command or "sbatch") .. " " .. arguments .. " job.sh")
  assert.equal(1, status, text)
  local at = 1
  for _, line in ipairs(lines) do
    local first, last = text:find(line, at, true)
    assert(first, "not said: " .. line .. "\n" .. text)
    at = last
  end
  return text
end

-- A job that is taken → its number, what stands in its admin_comment
local function accepted(arguments)
  local status, text = cluster:shell("sbatch --parsable " .. arguments .. " job.sh")
  assert.equal(0, status, text)
  local job = text:match "(%d+)\n?$"
  local _, shown = cluster:shell("scontrol show job " .. job)
  return job, (shown:match "AdminComment=([^\n]-) *\n" or "")
end

local function update(job, change) return cluster:shell("scontrol update jobid=" .. job .. " " .. change) end

local function verdict(arguments)
  return program.run("plan --format verdict " .. arguments, nil, "PIPEPLAN_SYSTEM='" .. cluster.folder .. "/system'").stdout
end

local FROM_RUN = "--comment pipeplan=run.json"

local am_root = io.popen("id -u"):read "l" == "0"
local as_nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups "

describe("a job with a plan", function()
  it("is accepted, and its record says what was approved", function()
    local said = verdict("'" .. cluster.folder .. "/jobs/run.json'")
    local _, note = accepted("-N 32 --gpus-per-node 8 " .. FROM_RUN)
    assert.equal(string.format("pipeplan: %s on 256 GPUs, spec %s, policies %s", said:match "schedule (%S+)", said:match "\nspec (%S+)",
                               said:match "digest (%S+)"), note)
  end)

  for _, asked in ipairs { "-N 32 --gres gpu:8", "-N 32 --gres gpu:h100:8,nic:2", "--gpus 256", "--gpus h100:256", "-n 256 --gpus-per-task 1",
                           "-N 32 --ntasks-per-node 8 --gpus-per-task 1", "-n 256 --ntasks-per-node 8 --gpus-per-node 8",
                           "-w far[1-30,40-41] --gpus-per-node 8", "-N 32 --exclusive", "-N 32 -p whole", "-N 32 --exclusive --gpus-per-node 8",
                           "-N 32 --gpus-per-socket 4 --sockets-per-node 2", "--array 0-9 --gpus 256" } do
    it("is accepted with its 256 GPUs said as " .. asked, function() accepted(asked .. " " .. FROM_RUN) end)
  end

  it("names its spec relative to its folder, by a whole path, through a link, among other words, and in its script", function()
    accepted("--gpus 256 --chdir sub --comment pipeplan=near.json")
    accepted("--gpus 256 --comment 'pipeplan=" .. cluster.folder .. "/jobs/run.json'")
    accepted "--gpus 256 --comment 'team=nlp, pipeplan=link.json; urgent'"
    cluster:write("jobs/with.sh", "#!/bin/sh\n#SBATCH --gpus=256\n#SBATCH " .. FROM_RUN .. "\nsleep 1000\n")
    assert.equal(0, (cluster:shell "sbatch with.sh"))
  end)

  it("is accepted with a large environment", function()
    local status, text = cluster:shell("export LARGE=$(head -c 100000 /dev/zero | tr '\\0' x); sbatch --gpus 256 " .. FROM_RUN .. " job.sh")
    assert.equal(0, status, text)
  end)

  it("is accepted from salloc and srun too", function()
    for _, command in ipairs { "salloc --no-shell", "srun" } do
      local _, text = cluster:shell(command .. " --immediate=1 -N 32 --gpus-per-node 8 " .. FROM_RUN .. " true")
      -- its nodes do not answer, and after a while they count as down: past the gate, the scheduler says so
      local scheduled = text:find("Immediate execution impossible", 1, true) or text:find("Required node not available", 1, true)
      assert.is_truthy(scheduled, text)
      _, text = cluster:shell(command .. " --immediate=1 -N 32 --gpus-per-node 8 true")
      assert.matches("this job gets 256 GPUs", text, 1, true)
    end
  end)
end)

describe("a job without a plan", function()
  it("is told what to do, without having heard of pipeplan", function()
    local text = refused("-N 32 --gpus-per-node 8", {
      "pipeplan: this job gets 256 GPUs, and one of 64 or more needs a plan that this cluster's rules accept",
      "1. describe the run in a file, run.json", '"gpus": 256', "2. see whether and how it is planned: " .. pipeplan .. " plan run.json",
      "3. submit with --comment pipeplan=run.json", "or ask for fewer than 64 GPUs" })
    local example = text:match "(%b{})\n":gsub("config%.json", source .. "/examples/models/llama-3-70b.json")
    local path = files.write("example.json", example)
    assert.matches("^status planned\ngpus 256\n", verdict(path))
  end)

  it("is accepted with fewer GPUs than need one, or none", function()
    accepted "-N 7 --gpus-per-node 8"
    accepted "--gpus 63"
    accepted "--gres gpu:4 -c 32"
    accepted "-N 300 --gres nic:4"
    accepted "-n 4096"
    -- one of a kind; Slurm 22.05 takes it for a number all the same, but that is Slurm's to say (src/slurmctld/job_mgr.c:8982 valid_tres_cnt)
    assert.not_matches("GPUs", select(2, cluster:shell "sbatch -N 2 --gres gpu:1g.10gb job.sh"), 1, true)
  end)

  it("is refused where nobody can tell how many it gets", function()
    refused("-N 1-32 --gpus-per-node 8", { "gets 8 to 256 GPUs", "--nodes N" })
    refused("-n 256 --gpus-per-node 8", { "gets 8 to 2048 GPUs" })
    refused("-N 2 --gpus-per-node +100", { "gets an unknown number of GPUs" })
    refused("-n 256 --ntasks-per-gpu 2", { "gets 128 GPUs" })
    refused("-N 64 --ntasks-per-gpu 2", { "gets 64 GPUs" })
  end)

  -- What slurmctld itself makes of each option, of each kind of GPU: total_gres in its log (src/common/gres.c, gres_job_state_log)
  it("is refused from as many GPUs on as Slurm counts over all kinds", function()
    cluster:shell "scontrol setdebugflags +gres"
    for _, arguments in ipairs { "-n 3 --gpus=a100:3 --gpus-per-task=h100:1", "-N 1 --gpus=a100:1 --gpus-per-node=h100:4",
                                 "-n 3 --gres=gpu:a100:1 --gpus-per-task=h100:1", "-N 4 --gpus-per-node=a100:1,h100:2",
                                 "-N 4 --gpus-per-node=h100:2 --gres=gpu:h100:1", "-N 5 --ntasks-per-gpu=2", "-N 3 --gres=gpu:1g.10gb:1" } do
      install(cluster)
      local job = accepted(arguments)
      local sum, kinds = 0, {}
      for kind, count in cluster:read("slurmctld.log"):gmatch("type:(%S-)%(%d+%) job:" .. job .. " flags:.-total_gres:(%d+)") do
        sum, kinds[kind] = sum + (kinds[kind] and 0 or count), true
      end
      assert.is_true(sum >= 3, arguments)
      install(cluster, { from = tostring(sum) })
      refused(arguments, { "this job gets " .. sum })
    end
    cluster:shell "scontrol setdebugflags -gres"
  end)

  it("is refused for nodes that it has whole, although it asks for no GPU", function()
    refused("-N 32 --exclusive", { "gets 256 GPUs", "(it has its nodes whole, with 8 GPUs each)" })
    refused("-N 32 -p whole", { "gets 256 GPUs", "nodes whole" })
    refused("-N 32 --exclusive --gpus-per-node 1", { "gets 256 GPUs" })
    refused("-N 1-32 --exclusive", { "gets 8 to 256 GPUs" })
  end)

  it("is refused as a part of a heterogeneous job, each of which is small", function()
    refused("--gpus 8 : --gpus 8", { "one of 1 or more needs a plan", "runs together with other jobs" })
  end)

  it("is judged by each task of an array, which is a job of its own", function() accepted "--array 0-99 --gpus 8" end)

  it("is accepted in a partition that is exempt, unless it may run in another", function()
    install(cluster, { exempt = "{ partition = { 'serving' } }" })
    accepted "--gpus 256 -p serving"
    refused("--gpus 256 -p serving,all", { "needs a plan" })
    local job = accepted "--gpus 256 -p serving"
    assert.equal(1, (update(job, "partition=all")))
  end)
end)

describe("a job whose spec the policy refuses", function()
  it("is told the rule, its place, and the nearest change, with which it is accepted", function()
    local text = refused("-N 144 --gpus-per-node 8 --comment pipeplan=deep.json", {
      "pipeplan: rejected: deep.json", "because too_deep: P 72 is over 64", "[policies/default/hard_rejects.lua:",
      "change pipeline 48 instead of 72: planned: 1F1B at P 48", "or plan 1F1B: P 9", "plan deep.json --explain" })
    local nearest = text:match "change pipeline (%d+) instead"
    cluster:write("jobs/changed.json", spec(1152, '"pipeline": ' .. nearest .. ', "tensor": 8, "schedule": "1f1b"'))
    accepted "-N 144 --gpus-per-node 8 --comment pipeplan=changed.json"
  end)

  it("gets its verdict even where there is no time for the nearest change", function()
    local slow = files.write("slow", '#!/bin/sh\ncase "$*" in *--explain*) sleep 60 ;; esac\nexec \'' .. pipeplan .. "' \"$@\"\n")
    os.execute("chmod 755 '" .. slow .. "' '" .. slow:match "^(.*)/" .. "'")
    install(cluster, { pipeplan = "'" .. slow .. "'", seconds = "5" })
    local text = refused("-N 144 --gpus-per-node 8 --comment pipeplan=deep.json", { "because too_deep", "or plan 1F1B: P 9" })
    assert.not_matches("change", text, 1, true)
  end)
end)

describe("a job whose spec is for other GPUs", function()
  it("is told both numbers and both ways to make them one", function()
    refused("-N 16 --gpus-per-node 8 " .. FROM_RUN, { "run.json plans 256 GPUs, and this job gets 128",
                                                     "make cluster.gpus 128 there, or ask for 256 GPUs here" })
    refused("-N 1 " .. FROM_RUN, { "run.json plans 256 GPUs, and this job gets 0" })
    refused("-N 16-32 --gpus-per-node 8 " .. FROM_RUN, { "plans 256 GPUs, and this job may get 128 to 256", "--nodes N" })
    refused("-N 32 --gpus-per-node 4 -p whole --comment pipeplan=half.json", { "half.json plans 128 GPUs, and this job gets 256", "nodes whole" })
  end)
end)

describe("a spec that cannot be read", function()
  it("is told with file, place and what to do", function()
    refused("--gpus 256 --comment pipeplan=gone.json", { "gone.json: cannot be read: No such file or directory", "try it: " })
    refused("--gpus 256 --comment pipeplan=broken.json", { "broken.json:1:", "a spec that pipeplan cannot read" })
    refused("--gpus 256 --comment pipeplan=colour.json", { "colour.json: colour is no field of a spec" })
    refused("--gpus 256 --comment pipeplan=", { "the comment is to name one spec: pipeplan=SPEC.json" })
    refused("--gpus 256 --comment 'pipeplan=run.json pipeplan=deep.json'", { "the comment is to name one spec" })
    refused("--gpus 256 --comment \"pipeplan=run'.json\"", { "run'.json: cannot be read" })
    refused("--gpus 256 --comment 'pipeplan=$(touch pwned).json'", { "$(touch" })
    refused("--gpus 256 --comment pipeplan=.", { "is no regular file" })
    assert.is_nil(io.open(cluster:path "jobs/pwned"))
  end)

  it("may be a FIFO, for which nobody waits", function()
    refused("--gpus 256 --comment pipeplan=fifo.json", { "fifo.json: is no regular file" })
    refused("--gpus 256 --comment pipeplan=/dev/zero", { "/dev/zero: is no regular file" })
  end)

  it("may name a FIFO as its model, for which nobody waits long, and which is refused whatever is open", function()
    cluster:write("jobs/waits.json", '{ "cluster": { "gpus": 256, "accelerator": "H100-SXM" }, "model": "fifo.json", "training": { "tokens": "1T" } }')
    for _, closed in ipairs { "true", "false" } do
      install(cluster, { seconds = "1", closed = closed })
      refused("--gpus 256 --comment pipeplan=waits.json", { "waits.json: no verdict within 1 s, so the answer is no" })
    end
  end)

  it("may be a file that its user may not read, of which nothing is said", function()
    if not am_root then return pending "not root: there is no other user to be" end
    cluster:write("jobs/secret.json", '{ "StoragePass": "x" }')
    os.execute("chmod 600 '" .. cluster.folder .. "/jobs/secret.json'")
    local text = refused("--gpus 256 --comment pipeplan=secret.json", { "is not yours, and not for everybody to read" }, as_nobody .. "sbatch")
    assert.not_matches("StoragePass", text, 1, true)
    assert.matches("Submitted", select(2, cluster:shell(as_nobody .. "sbatch --gpus 256 " .. FROM_RUN .. " job.sh")))
    os.execute("chown 65534 '" .. cluster.folder .. "/jobs/secret.json'")
    refused("--gpus 256 --comment pipeplan=secret.json", { "StoragePass is no field of a spec" }, as_nobody .. "sbatch")
  end)
end)

describe("a gate without a verdict", function()
  it("is closed where pipeplan is missing, and says that the user is not to blame", function()
    install(cluster, { pipeplan = "'/nonexistent/pipeplan'" })
    refused("--gpus 256 " .. FROM_RUN, { "no verdict (status 127): tell those who run this cluster" })
    accepted "--gpus 63"
  end)

  it("can be open then, and notes it", function()
    install(cluster, { pipeplan = "'/nonexistent/pipeplan'", closed = "false" })
    assert.equal("pipeplan: no verdict, status 127", select(2, accepted("--gpus 256 " .. FROM_RUN)))
    refused("--gpus 256", { "needs a plan" })
  end)

  it("is closed when time is out, open or not", function()
    local sleeps = files.write("sleeps", "#!/bin/sh\nsleep 60\n")
    os.execute("chmod 755 '" .. sleeps .. "' '" .. sleeps:match "^(.*)/" .. "'")
    for _, closed in ipairs { "true", "false" } do
      install(cluster, { pipeplan = "'" .. sleeps .. "'", seconds = "1", closed = closed })
      refused("--gpus 256 " .. FROM_RUN, { "run.json: no verdict within 1 s, so the answer is no" })
    end
  end)

  it("is closed for what a spec may bring about, open or not", function()
    for _, status in ipairs { 3, 4, 5, 70 } do
      local fails = files.write("fails", "#!/bin/sh\nexit " .. status .. "\n")
      os.execute("chmod 755 '" .. fails .. "' '" .. fails:match "^(.*)/" .. "'")
      install(cluster, { pipeplan = "'" .. fails .. "'", closed = "false" })
      refused("--gpus 256 " .. FROM_RUN, { "no verdict (status " .. status .. ")" })
    end
  end)

  it("tells a policy that does not load from a spec that cannot be read", function()
    local policy = files.write("site.lua", 'site "site"\nrejct { id = "x" }\n')
    install(cluster, { policies = "{ '" .. policy .. "' }" })
    refused("--gpus 256 " .. FROM_RUN, { "this cluster's policies do not load, which is no fault of yours", "site.lua:2: " })
    refused("--gpus 256 --comment pipeplan=broken.json", { "this cluster's policies do not load" })
  end)

  it("is closed where it fails itself", function()
    install(cluster, { exempt = "5" })
    refused("--gpus 8", { "the gate failed, so the answer is no" })
  end)
end)

describe("the record of decisions", function()
  it("gets a line of each verdict of slurmctld, for the job's user, and none of the cli_filter", function()
    install(cluster, { record = "'" .. cluster:path "decisions.jsonl" .. "'" })
    accepted("--gpus 256 " .. FROM_RUN)
    refused("-N 144 --gpus-per-node 8 --comment pipeplan=deep.json", { "rejected" })
    refused("--gpus 256 --comment pipeplan=gone.json", { "gone.json: cannot be read" })
    cluster:shell("sbatch --gpus 256 --comment pipeplan=gone.json job.sh", "login")
    local verdicts = {}
    for line in cluster:read("decisions.jsonl"):gmatch "[^\n]+" do
      local decision = cjson.decode(line)
      verdicts[#verdicts + 1] = decision.verdict
      assert.equal(io.popen("id -un"):read "l", decision["for"])
    end
    assert.same({ "planned", "rejected", "error" }, verdicts)
  end)

  it("that cannot be written is no fault of the user, and nothing runs", function()
    install(cluster, { record = "'/dev/null/decisions.jsonl'", closed = "false" })
    refused("--gpus 256 " .. FROM_RUN, { "no verdict (status 2): tell those who run this cluster", "/dev/null/decisions.jsonl" })
  end)
end)

describe("the page about Slurm", function()
  it("has commands of which the first is taken, and the other refused", function()
    local blocks = {}
    for _, block in ipairs(manual.commands(read(source .. "/docs/slurm.md"))) do
      if block.note == "run by: tests/cli/slurm_gate_spec.lua" then blocks[#blocks + 1] = block.text end
    end
    assert.equal(2, #blocks)
    os.execute(string.format("cp '%s/jobs/job.sh' '%s/jobs/train.sbatch'", cluster.folder, cluster.folder))
    local status, text = cluster:shell(blocks[1])
    assert.equal(0, status, text)
    status, text = cluster:shell(blocks[2])
    assert.equal(1, status)
    assert.matches("this job gets 256 GPUs", text, 1, true)
  end)

  it("shows what is noted, and what users read", function()
    local page = read(source .. "/docs/slurm.md")
    local _, note = accepted("-N 32 --gpus-per-node 8 " .. FROM_RUN)
    assert.equal(note, page:match "AdminComment=([^`]+)`")
    local shown = {}
    for line in page:gmatch "\nsbatch: error: ([^\n]+)" do shown[#shown + 1] = line:gsub(", ….*$", "") end
    assert.equal(4, #shown)
    refused("-N 144 --gpus-per-node 8 --comment pipeplan=deep.json", shown)
  end)
end)

describe("a job that was accepted", function()
  it("can be held, released, and given another time although its spec is gone", function()
    cluster:write("jobs/brief.json", spec(256))
    local job = accepted "-N 32 --gpus-per-node 8 --comment pipeplan=brief.json"
    os.remove(cluster:path "jobs/brief.json")
    for _, command in ipairs { "scontrol hold " .. job, "scontrol release " .. job, "scontrol update timelimit=60 jobid=" .. job,
                               "scontrol update jobid=" .. job .. " comment='pipeplan=brief.json, checked'" } do
      assert.same({ 0, "" }, { cluster:shell(command) })
    end
  end)

  it("can be given another plan by its user, who is no administrator", function()
    if not am_root then return pending "not root: there is no other user to be" end
    local status, text = cluster:shell(as_nobody .. "sbatch --parsable --gpus 256 " .. FROM_RUN .. " job.sh")
    assert.equal(0, status, text)
    local job = text:match "(%d+)\n?$"
    local change = as_nobody .. "scontrol update jobid=" .. job .. " comment=pipeplan="
    assert.same({ 0, "" }, { cluster:shell(change .. "link.json") })
    assert.matches("pipeplan: a change of job " .. job .. ": %S+ on 256 GPUs, spec", cluster:read "slurmctld.log")
    assert.equal(1, (cluster:shell(change .. "deep.json")))
    local _, shown = cluster:shell("scontrol show job " .. job)
    assert.matches("Comment=pipeplan=link.json", shown, 1, true)
  end)

  it("cannot become a part of another without a plan", function()
    local job = accepted "--gpus 1"
    for _, change in ipairs { "dependency=expand:1", "dependency=EXPAND:1" } do
      local _, text = update(job, change)
      assert.matches("Access/permission denied", text, 1, true)
    end
    refused("--gpus 1 -d Expand:1", { "one of 1 or more needs a plan", "runs together with other jobs" })
    local status, text = cluster:shell("sbatch --gpus 1 -d expand:1 job.sh", "login")
    assert.equal(1, status)
    assert.matches("one of 1 or more needs a plan", text, 1, true)
  end)

  it("cannot be given GPUs of a second kind", function()
    local job = accepted "-N 10 --gpus-per-node a100:6"
    assert.equal(1, (update(job, "gres=gpu:h100:6")))
    assert.equal(0, (update(job, "gres=gpu:a100:5,gpu:h100:1")))
  end)

  it("cannot be given more GPUs, nor lose its plan", function()
    local job = accepted("-N 32 --gpus-per-node 8 " .. FROM_RUN)
    for _, change in ipairs { "numnodes=64-64", "gres=gpu:4", "comment=", "comment=pipeplan=deep.json", "reqnodelist=far[1-100] numnodes=100-100" } do
      local status, text = update(job, change)
      assert.equal(1, status, change)
      assert.matches("Access/permission denied", text, 1, true)
    end
    assert.equal(0, (update(job, "gres=gpu:8")))
  end)

  it("cannot grow past what needs a plan, by any of the ways that a change has", function()
    local small = accepted "-N 1 --gpus-per-node 8"
    local loose = accepted "--gpus-per-node 8"
    local whole, note = accepted "-N 2 --exclusive"
    assert.equal("pipeplan: whole nodes", note)
    local bare = accepted "-N 32"
    local part = accepted "-n 32 --gpus-per-task 1"
    for _, change in ipairs { { small, "numnodes=256-256" }, { small, "numnodes=256-256 gres=gpu:8" }, { loose, "numcpus=4000" },
                              { loose, "reqnodelist=far[1-100]" }, { loose, "numtasks=500" }, { whole, "numnodes=32-32" },
                              { bare, "oversubscribe=no" }, { bare, "gres=gpu:8" }, { bare, "partition=whole" }, { part, "numtasks=4000" } } do
      local status, text = update(change[1], change[2])
      assert.equal(1, status, change[2] .. text)
      assert.matches("Access/permission denied", text, 1, true)
    end
    assert.equal(0, (update(small, "numnodes=2-2")))
    assert.equal(0, (update(bare, "numnodes=64-64")))
    assert.equal(0, (update(whole, "numnodes=3-3")))
    local _, shown = cluster:shell("scontrol show job " .. whole)
    assert.matches("AdminComment=pipeplan: whole nodes", shown, 1, true)
  end)

  -- scontrol sends the folder as it is written (slurm-22-05-8-1, src/scontrol/update_job.c:1121)
  it("is judged by no option that its working folder is made to be", function()
    local pwned, record = cluster:path "pwned", cluster:path "appended"
    os.execute(string.format("mkdir -p '%s/evil/cli'", cluster.folder))
    cluster:write("evil/cli/main.lua", "io.open('" .. pwned .. "', 'w'):close() return function() print 'status planned\\ngpus 256' return 0 end\n")
    local job = accepted("-N 32 --gpus-per-node 8 " .. FROM_RUN)
    for _, folder in ipairs { "--stdlib=" .. cluster:path "evil", "--record=" .. record, "jobs" } do
      local status, text = update(job, "workdir=" .. folder .. " comment=pipeplan=cli/../near.json")
      assert.equal(1, status, text)
      assert.matches("'" .. folder .. "', expected one that begins with /", text .. cluster:read "slurmctld.log", 1, true)
    end
    assert.is_nil(io.open(pwned))
    assert.is_nil(io.open(record))
  end)

  it("says why it cannot be changed: to its user, or, by Slurm 22.05, in slurmctld's log", function()
    local job = accepted "-N 1 --gpus-per-node 8"
    local _, text = update(job, "numnodes=256-256")
    assert.matches("this job gets 2048 GPUs", text .. cluster:read "slurmctld.log", 1, true)
  end)
end)

describe("a site's stack of policies", function()
  local function hall(limit)
    return 'site "hall"\nreject { id = "hall_depth", pipeline_parallel = over(' .. limit
           .. '), message = "P {pipeline_parallel}: at most ' .. limit .. ' in this hall" }\n'
  end

  setup(function()
    os.execute(string.format("mkdir -p '%s/system/policies.d'", cluster.folder))
    cluster:write("system/policies.d/10-company.lua", 'site "company"\nset { small_run_gpus = 64 }\n')
    cluster:write("system/policies.d/20-hall.lua", hall(32))
    cluster:write("gate.lua", 'site "gate"\nreject { id = "hall_size", gpus = over(512), message = "{gpus} GPUs: this hall has 512" }\n')
  end)
  teardown(function() os.execute(string.format("rm -r '%s/system'", cluster.folder)) end)

  it("is judged by as a whole, by its digest", function()
    local layer = cluster:path "gate.lua"
    local digest = verdict("'" .. cluster:path "jobs/run.json" .. "' --policy '" .. layer .. "'"):match "digest (%x+)"
    local stack = { policies = "{ '" .. layer .. "' }", digest = "'" .. digest .. "'" }
    install(cluster, stack)
    local _, note = accepted("--gpus 256 " .. FROM_RUN)
    assert.matches("policies " .. digest, note, 1, true)
    cluster:write("jobs/hall.json", spec(256, '"pipeline": 64, "tensor": 4'))
    refused("--gpus 256 --comment pipeplan=hall.json", { "because hall_depth: P 64: at most 32 in this hall", "20-hall.lua:2" })
    cluster:write("jobs/large.json", spec(1024))
    refused("--gpus 1024 --comment pipeplan=large.json", { "because hall_size: 1,024 GPUs: this hall has 512", "change gpus 512 instead of 1,024" })
    -- what users name in variables is no part of it
    local own = files.write("own.lua", 'site "own"\ndisable { id = "hall_depth", reason = "I want to", expires = "2999-01-01" }\n')
    refused("--gpus 256 --comment pipeplan=hall.json", { "hall_depth" }, "PIPEPLAN_POLICY='" .. own .. "' sbatch")
    local _, text = cluster:shell("PIPEPLAN_POLICY='" .. own .. "' sbatch --gpus 256 --comment pipeplan=hall.json job.sh", "login")
    assert.matches("hall_depth", text, 1, true)
    -- and another hall is another digest
    cluster:write("system/policies.d/20-hall.lua", hall(128))
    refused("--gpus 256 " .. FROM_RUN, { "this cluster's policies do not load", "--policy-digest", digest .. " is demanded" })
  end)
end)

describe("the cli_filter", function()
  local function advised(arguments)
    local status, text = cluster:shell("timeout 20 sbatch " .. arguments .. " job.sh", "login")
    return status, text
  end

  it("says the same as slurmctld, before it is asked", function()
    for _, arguments in ipairs { "-N 32 --gpus-per-node 8", "-N 16 --gpus-per-node 8 " .. FROM_RUN, "--gpus 256 --comment pipeplan=gone.json",
                                 "-N 144 --gpus-per-node 8 --comment pipeplan=deep.json", "-N 1-32 --gres gpu:h100:8", "-N 32 --exclusive",
                                 "-n 256 --gpus-per-task 1 --comment pipeplan=deep.json", "--gpus 256 --comment pipeplan=fifo.json" } do
      local _, said = cluster:shell("sbatch " .. arguments .. " job.sh")
      local status, text = advised(arguments)
      assert.equal(1, status, text)
      local function lines(of) return (of:gsub("error: lua: ", "error: "):gsub("[^\n]*\n$", "")) end  -- the last is Slurm's own
      assert.equal(lines(said), lines(text))
    end
  end)

  it("passes what it would accept on to slurmctld", function()
    for _, arguments in ipairs { "-N 32 --gpus-per-node 8 " .. FROM_RUN, "-N 32 --ntasks-per-node 8 --gpus-per-task 1 " .. FROM_RUN,
                                 "-n 256 --ntasks-per-node 8 --gres gpu:8 " .. FROM_RUN, "-N 4 --gpus-per-node 8", "-w far[1-32] --gres gpu:8 " .. FROM_RUN,
                                 "--gpus 256 --chdir sub --comment pipeplan=near.json", "-N 32 --exclusive " .. FROM_RUN } do
      local status, text = advised(arguments)
      assert.equal(0, status, arguments .. "\n" .. text)
      assert.matches("Submitted batch job", text, 1, true)
    end
  end)
end)

it("refuses at slurmctld who goes around the cli_filter", function()
  refused("-N 32 --gpus-per-node 8", { "needs a plan" })
end)

