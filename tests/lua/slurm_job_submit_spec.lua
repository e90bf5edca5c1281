-- SPDX-License-Identifier: Apache-2.0
-- examples/slurm/job_submit.lua with a Slurm of tables: what it takes of a change, and what it changes itself. Lines are of Slurm's source,
-- slurm-22-05-8-1 unless another is named.

local verdict = "status planned\ngpus 256\nschedule 1f1b\ndigest bb\nspec aa\n0\n"
local NOTE = "pipeplan: 1f1b on 256 GPUs, spec aa, policies bb"
local OK, DENIED, USER = 0, 2002, 65534

-- job_submit.lua in an environment with a slurm of its own, pipeplan's answer above; told: what it says to whom
local function loaded()
  local told = { user = {}, info = {} }
  local function say(list) return function(format, ...) list[#list + 1] = format:format(...) end end
  local env = setmetatable({ slurm = { SUCCESS = OK, ESLURM_ACCESS_DENIED = DENIED, NO_VAL = 0xfffffffe, NO_VAL16 = 0xfffe,
                                       log_user = say(told.user), log_info = say(told.info), log_error = error } }, { __index = _G })
  assert(loadfile(os.getenv "PIPEPLAN_SOURCE" .. "/examples/slurm/job_submit.lua", "t", env))()
  return env, told
end

local popen = io.popen
before_each(function()
  io.popen = function() return { read = function() return verdict end, close = function() end } end  -- luacheck: ignore 122
end)
after_each(function() io.popen = popen end)  -- luacheck: ignore 122

-- A job that waits, as its record is: 256 GPUs by the plan of run.json.
local function waiting(more)
  local old = { job_id = 7, job_state = 0, user_id = USER, work_dir = "/home/u", comment = "pipeplan=run.json", min_nodes = 32, max_nodes = 32,
                tres_per_node = "gres:gpu:8", admin_comment = NOTE, partition = "all" }
  for name, value in pairs(more or {}) do old[name] = value end
  return old
end

local function modify(change, old, uid)
  local env, told = loaded()
  return env.slurm_job_modify(change, old, {}, uid), told
end

describe("a change that the gate accepts", function()
  -- src/slurmctld/job_mgr.c:12963: after the plugin, a change with an admin_comment is denied to who is no administrator; the same in
  -- slurm-24-11-5-1, 13119.
  it("touches no AdminComment of a job of who may not, and is in slurmctld's log", function()
    local change = { comment = "pipeplan=other.json" }
    local answer, told = modify(change, waiting { admin_comment = "pipeplan: zb_h1 on 256 GPUs, spec cc, policies bb" }, USER)
    assert.same({ OK, nil, {} }, { answer, change.admin_comment, told.user })
    assert.same({ "pipeplan: a change of job 7: 1f1b on 256 GPUs, spec aa, policies bb" }, told.info)
  end)

  it("notes it where root changes, or who may set an AdminComment sets one", function()
    local change = { comment = "pipeplan=other.json" }
    assert.equal(OK, (modify(change, waiting { admin_comment = "seen" }, 0)))
    assert.equal("seen; " .. NOTE, change.admin_comment)
    change = { comment = "pipeplan=other.json", admin_comment = "for Ada" }
    assert.equal(OK, (modify(change, waiting(), USER)))
    assert.equal("for Ada; " .. NOTE, change.admin_comment)
  end)

  it("notes it at submission, whoever submits", function()
    local env = loaded()
    local job = { user_id = USER, work_dir = "/home/u", comment = "pipeplan=run.json", min_nodes = 32, max_nodes = 32, tres_per_node = "gres:gpu:8" }
    assert.equal(OK, env.slurm_job_submit(job, {}, USER))
    assert.equal(NOTE, job.admin_comment)
  end)
end)

describe("a change to whole nodes", function()
  -- job_mgr.c:13725: an operator may, whose AdminComment is denied; without a note a later change would count no GPU
  it("is accepted of root, who notes it, and of nobody else", function()
    local bare = { comment = "", tres_per_node = "", admin_comment = "", min_nodes = 2, max_nodes = 2 }
    local change = { shared = 0 }
    assert.equal(OK, (modify(change, waiting(bare), 0)))
    assert.equal("pipeplan: whole nodes", change.admin_comment)
    local answer, told = modify({ shared = 0 }, waiting(bare), USER)
    assert.equal(DENIED, answer)
    assert.matches("root alone can", told.user[1], 1, true)
    bare.admin_comment = "pipeplan: whole nodes"
    assert.equal(OK, (modify({ shared = 0, min_nodes = 3, max_nodes = 3 }, waiting(bare), USER)))
    assert.equal(DENIED, (modify({ min_nodes = 32, max_nodes = 32 }, waiting(bare), USER)))
  end)
end)

describe("a job that is made a part of another", function()
  local small = { comment = "", admin_comment = "", min_nodes = 1, max_nodes = 1 }

  -- src/slurmctld/job_scheduler.c:3849 takes "expand:" by xstrncasecmp, behind "," and "?" too; 22.05 and 24.11 alike
  for _, word in ipairs { "expand:", "EXPAND:", "Expand:", "afterany:3,eXpand:", "afterok:3?EXPAND:" } do
    it("needs a plan from one GPU on, by " .. word, function()
      local env, told = loaded()
      assert.equal(DENIED, env.slurm_job_submit({ dependency = word .. "12", tres_per_node = "gres:gpu:1", min_nodes = 1, user_id = USER }, {}, USER))
      assert.matches("one of 1 or more needs a plan", told.user[1], 1, true)
      local answer, said = modify({ dependency = word .. "12" }, waiting(small), 0)
      assert.equal(DENIED, answer)
      assert.matches("one of 1 or more needs a plan", said.user[1], 1, true)
      answer, said = modify({ dependency = word .. "12" }, waiting(small), USER)
      assert.equal(DENIED, answer)
      assert.matches("root alone can do that", said.user[1], 1, true)
    end)
  end

  -- a job's record says no dependency (src/lua/slurm_lua.c, slurm_lua_job_record_field)
  it("is known to be one when GPUs are asked for later", function()
    local env = loaded()
    local job = { dependency = "expand:12", min_nodes = 1, max_nodes = 1, user_id = USER }
    assert.equal(OK, env.slurm_job_submit(job, {}, USER))
    assert.equal("pipeplan: part of another job", job.admin_comment)
    local none = { comment = "", tres_per_node = "", min_nodes = 1, max_nodes = 1, admin_comment = job.admin_comment }
    local answer, told = modify({ tres_per_node = "gres:gpu:1" }, waiting(none), USER)
    assert.equal(DENIED, answer)
    assert.matches("one of 1 or more needs a plan", told.user[1], 1, true)
  end)

  it("is none by another dependency", function()
    for _, dependency in ipairs { "afterany:12", "singleton", "" } do
      assert.equal(OK, (modify({ dependency = dependency }, waiting(small), USER)))
    end
  end)
end)

describe("a change of GPUs", function()
  local kinds = { comment = "", admin_comment = "", min_nodes = 10, max_nodes = 10, tres_per_node = "gres:gpu:a100:6" }

  -- job_mgr.c:12767: the change is laid over a copy of what was asked (gres_job_state_list_dup), which holds a record for each kind; the
  -- text that the next change is judged by, tres_per_node, is this change's alone (13897)
  it("is refused where it names another kind, for Slurm leaves the first", function()
    local answer, told = modify({ tres_per_node = "gres:gpu:h100:6" }, waiting(kinds), USER)
    assert.equal(DENIED, answer)
    assert.matches("leaves those of kind 'a100' to the job: cancel it and submit it again", table.concat(told.user, "\n"), 1, true)
    assert.equal(DENIED, (modify({ tres_per_node = "gres:gpu:6" }, waiting(kinds), USER)))
  end)

  it("is counted where it names all kinds, and where it takes them away", function()
    assert.equal(OK, (modify({ tres_per_node = "gres:gpu:a100:5" }, waiting(kinds), USER)))
    assert.equal(OK, (modify({ tres_per_node = "gres:gpu:a100:5,gres:gpu:h100:1" }, waiting(kinds), USER)))
    assert.equal(DENIED, (modify({ tres_per_node = "gres:gpu:a100:5,gres:gpu:h100:2" }, waiting(kinds), USER)))
    assert.equal(OK, (modify({ tres_per_node = "" }, waiting(kinds), USER)))
  end)

  it("is refused where its tasks by GPU may make it more than are known", function()
    assert.equal(DENIED, (modify({ ntasks_per_tres = 2 }, waiting { comment = "", admin_comment = "", tres_per_node = "" }, USER)))
  end)
end)
