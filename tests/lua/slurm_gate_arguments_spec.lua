-- SPDX-License-Identifier: Apache-2.0
-- The gate of examples/slurm and what users write: it reaches the program as the path of a spec, and as nothing else. The gate runs as
-- SlurmUser, so an option of a user's would be a command of SlurmUser's: --stdlib names Lua to run, --record a file to append to.

local files = require "policy_files"
local read = require "read_file"

local function executable(text)
  local path = files.write("program", text)
  assert(os.execute("chmod 755 '" .. path .. "'"))
  return path
end

-- The gate with these settings, before a program that writes each of its words on a line and accepts 8 GPUs. → its judge, what it told,
-- the program's words (nil: it was not run)
local function judge(job, settings)
  local gate = dofile(os.getenv "PIPEPLAN_SOURCE" .. "/examples/slurm/pipeplan_gate.lua")
  local words = os.tmpname()
  os.remove(words)
  gate.settings.pipeplan = executable("#!/bin/sh\nprintf '%s\\n' \"$@\" >'" .. words .. "'\n"
                                      .. "printf 'status planned\\ngpus 8\\nschedule 1f1b\\ndigest bb\\nspec aa\\n'\n")
  for name, value in pairs(settings or {}) do gate.settings[name] = value end
  local told = {}
  job.per_job, job.user = { [""] = 8 }, io.popen("id -u"):read "l"
  local may = gate.judge(job, function(line) told[#told + 1] = line end, function() end)
  local list
  local handle = io.open(words)
  if handle then
    handle:close()
    list = {}
    for word in read(words):gmatch "([^\n]*)\n" do list[#list + 1] = word end
    os.remove(words)
  end
  return may, table.concat(told, "\n"), list
end

teardown(files.remove)

describe("what a user writes", function()
  -- scontrol sends WorkDir as it is written (slurm-22-05-8-1, src/scontrol/update_job.c:1121), and slurmctld gives it to job_submit.lua
  -- without a look (src/plugins/job_submit/lua/job_submit_lua.c:695); sbatch alone makes it whole (src/common/slurm_opt.c, arg_set_chdir).
  for _, folder in ipairs { "--stdlib=/tmp/evil", "--record=/tmp/evil", "--policy=", "-o/tmp", "-", ".", "sub", "=/etc", "~", "" } do
    it("is no spec where the working folder is '" .. folder .. "'", function()
      local may, told, words = judge { comment = "pipeplan=x.json", folder = folder }
      assert.is_false(may)
      assert.is_nil(words)
      assert.matches("x.json: the job.* working folder.*: name a whole path", told)
      if folder ~= "" then assert.matches("'" .. folder .. "', expected one that begins with /", told, 1, true) end
    end)
  end

  it("stands behind all options of the gate, and behind --", function()
    for name, folder in pairs { ["x.json"] = "/--stdlib=/tmp/evil", ["--stdlib=/tmp/evil"] = "/tmp", ["-"] = "/tmp", ["--help"] = "/tmp",
                                ["$(id)"] = "/tmp/a'b \"c\\d" } do
      local may, told, words = judge({ comment = "pipeplan=" .. name, folder = folder, user_name = "-root" },
                                     { policies = { "-hall.lua" }, digest = "-d", record = "-record" })
      assert.is_true(may, told)
      assert.same({ "plan", "--format", "verdict", "--policy=-hall.lua", "--policy-digest=-d", "--record=-record", "--record-for=-root",
                    "--", folder .. "/" .. name }, words)
    end
  end)

  it("is one word, whatever line breaks, quotes and patterns are in it", function()
    for _, folder in ipairs { "/tmp/a\ngpus 8", "/tmp/*", "/tmp/';id;'", "/tmp/`id`", "/tmp/$HOME", "/tmp/%s%n", "/tmp/\27[2J" } do
      local _, told, words = judge { comment = "pipeplan=x.json", folder = folder }
      assert.equal("plan --format verdict -- " .. (folder .. "/x.json"), table.concat(words, " "):gsub("a gpus", "a\ngpus"), told)
    end
  end)

  it("is told without its control characters, which slurmctld.log would take for lines of its own", function()
    local _, told = judge { comment = "pipeplan=x.json", folder = "a\nerror: all is well\27[2J" }
    assert.matches("'a?error: all is well?[2J'", told, 1, true)
  end)
end)

-- What the gate relies on: POSIX, Utility Syntax Guidelines, 10: what stands behind -- is an operand though it begins with -.
describe("pipeplan plan", function()
  local folder = files.directory { ["--stdlib=evil"] = "{", ["--help"] = "{", ["--version"] = "{", ["-h"] = "{", ["--record=log"] = "{" }

  it("takes what stands behind -- for a spec", function()
    for _, name in ipairs { "--stdlib=evil", "--help", "--version", "-h", "--record=log" } do
      local command = string.format("cd '%s'; env -u LD_PRELOAD '%s' plan --format verdict -- %s 2>&1; echo $?", folder,
                                    os.getenv "PIPEPLAN", name)
      local text = io.popen(command):read "a"
      assert.matches("pipeplan: " .. name .. ":1:", text, 1, true)
      assert.matches("\n2\n$", text)
    end
  end)
end)
