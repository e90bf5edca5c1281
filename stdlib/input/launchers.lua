-- SPDX-License-Identifier: Apache-2.0
-- launchers.lua: what a launcher or a collector writes before each line of a process: its rank, as "[rank3]:" and "[default3]:" of
-- torchrun, "3: " of srun --label, "[1,3]<stdout>:" of mpirun --tag-output; or no rank, as "(TaskRunner pid=7, ip=…) " of Ray,
-- "[pod/NAME/CONTAINER] " of kubectl logs --prefix (a process that starts anew has another), and a time before any of them (docker,
-- kubectl --timestamps).
local launchers = {}

-- Patterns that take a rank, and where the line begins; and those that take the latter alone. No repeat in them is followed by another of
-- the same characters: lines are of any length.
local ranks = { "^%s*%[rank(%d+)%]: ?()", "^%s*%[default(%d+)%]: ?()", "^ *(%d+): ()", "^%[[^%]<>]*%f[%d](%d+)%]<%a+>: ?()" }
local others = { "^%(%a[%w_.]* pid=%d[^)]*%) ?()", "^%[pod/[^%]%s]+%] ()", "^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d[Z%d.,+:-]* ()" }
local MOST = 3   -- one within another

local function one(text)
  for _, pattern in ipairs(ranks) do
    local rank, from = text:match(pattern)
    if rank then return from, rank end
  end
  for _, pattern in ipairs(others) do
    local from = text:match(pattern)
    if from then return from end
  end
end

-- → what the process wrote, without colours, and its rank; nil where nothing says.
function launchers.strip(text)
  local rank
  if text:find("\27", 1, true) then text = text:gsub("\27%[[%d;?]*[%a]", "") end
  for _ = 1, MOST do
    local from, said = one(text)
    if not from then break end
    text, rank = text:sub(from), said or rank
  end
  return text, rank
end

-- A line of a paste: the same, without a carriage return and the > of a quotation.
function launchers.bare(text)
  return (launchers.strip((text:gsub("\r$", ""):gsub("^%s*>[> ]*", ""))))
end

return launchers
