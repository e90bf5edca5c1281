-- SPDX-License-Identifier: Apache-2.0
-- slurm.lua: a Slurm cluster of its own for a test: a real slurmctld, started by tests/slurm/up in a folder that is removed afterwards.

local slurm = {}

local source = os.getenv "PIPEPLAN_SOURCE"

-- Why there is none here; nil: there can be one.
function slurm.missing(programs)
  for _, name in ipairs(programs) do
    if not os.execute("PATH=$PATH:/usr/sbin command -v " .. name .. " >/dev/null") then
      return "no " .. name .. " here: what Slurm does with it is not tested (scripts/setup --slurm installs it)"
    end
  end
end

local methods = {}
methods.__index = methods

function methods:path(name) return self.folder .. "/" .. name end

function methods:write(name, text)
  local file = assert(io.open(self:path(name), "wb"))
  file:write(text)
  file:close()
  return self:path(name)
end

function methods:read(name)
  local file = assert(io.open(self:path(name), "rb"))
  local text = file:read "a"
  file:close()
  return text
end

-- Runs a shell command in work/, `conf` the one of "submit" or "login" → exit status, what it printed on both streams.
function methods:shell(command, conf)
  local before = string.format("cd '%s/jobs'; export PATH=\"$PATH:/usr/sbin\" SLURM_CONF='%s/%s/slurm.conf' P='%s'; unset LD_PRELOAD\n",
                               self.folder, self.folder, conf or "submit", os.getenv "PIPEPLAN")
  local handle = io.popen(before .. "(" .. command .. ") 2>&1; echo \"status $?\"")
  local text, status = handle:read("a"):match "^(.*)status (%d+)\n$"
  handle:close()
  return tonumber(status), text
end

function methods:stop()
  os.execute(string.format("'%s/tests/slurm/down' '%s'; rm -rf '%s'", source, self.folder, self.folder))
end

-- `prepare(cluster)` writes the plugins before slurmctld loads them. slurmd: jobs run here too.
function slurm.start(prepare, slurmd)
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute(string.format("mkdir -p '%s/jobs' '%s/submit' '%s/login' && chmod 755 '%s'", folder, folder, folder, folder)))
  local self = setmetatable({ folder = folder }, methods)
  prepare(self)
  local up = string.format("env -u LD_PRELOAD '%s/tests/slurm/up' '%s' %s", source, folder, slurmd and "slurmd" or "")
  if not os.execute(up .. " >'" .. self:path "up.log" .. "' 2>&1") then
    local text = self:read "up.log"
    self:stop()
    error("slurmctld does not start:\n" .. text)
  end
  return self
end

return slurm
