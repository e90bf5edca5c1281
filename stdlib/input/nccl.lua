-- SPDX-License-Identifier: Apache-2.0
-- nccl.lua: reading what nccl-tests and rccl-tests print: a heading, a line for each rank, a table of sizes; one or several runs in a file.
-- Lines of a launcher, of NCCL_DEBUG or of a log between them are passed over. Format: NVIDIA/nccl-tests src/common.cu and src/util.cu
-- (2.17 names the test in a line of its own, older ones do not); bus bandwidths: doc/PERFORMANCE.md there.
--
-- The out-of-place columns are read: frameworks reduce into another buffer, and sendrecv and alltoall have no in-place variant.

local failure = require "pipeplan.base.failure"

local nccl = {}

-- busbw / algbw of each test with n ranks.
local function share(n) return (n - 1) / n end
local factors = {
  all_reduce = function(n) return 2 * share(n) end, all_gather = share, reduce_scatter = share, alltoall = share,
  sendrecv = function() return 1 end,
}
local known = { "all_gather", "all_reduce", "alltoall", "reduce_scatter", "sendrecv" }

-- Lines as a launcher may have dressed them: "[1,0]<stdout>:" of mpirun, colours, a carriage return.
local function bare(line)
  return (line:gsub("\27%[[%d;]*m", ""):gsub("^%[%d+,%d+%]<std%a+>:", ""):gsub("\r$", ""))
end

local function words(line)
  local list = {}
  for word in line:gmatch "%S+" do list[#list + 1] = word end
  return list
end

-- "all_reduce_perf" in a line or a file's name, with or without underscores: the test, true when it is none of ours.
local function named_test(text)
  local name = text:match "%f[%a_]([%a_]+)_perf"
  if not name then
    local flat = text:lower():gsub("[-_]", "")
    for _, test in ipairs(known) do
      if flat:find(test:gsub("_", ""), 1, true) then return test end
    end
    return nil
  end
  name = name:match "([^/]+)$"
  for _, test in ipairs(known) do
    if test == name then return test end
  end
  return name, true
end

-- The table's heading: does its line have a column `root`?
local function heading(line)
  local titles = words(line)
  if titles[1] ~= "#" or titles[2] ~= "size" or titles[3] ~= "count" or titles[4] ~= "type" then return nil end
  local has = {}
  for _, title in ipairs(titles) do has[title] = true end
  return has.time and has.busbw and { root = has.root == true }
end

-- A line of the table → { bytes, seconds, ratio }, ratio = busbw / algbw; nil when it is none.
local function point(line, columns)
  local cells = words(line)
  local bytes, count = math.tointeger(tonumber(cells[1])), tonumber(cells[2])
  if not bytes or not count or not cells[3] or tonumber(cells[3]) then return nil end
  local i, redop = 4, nil
  if cells[i] and not tonumber(cells[i]) then redop, i = cells[i], i + 1 end
  if columns.root then i = i + 1 end
  local time, algbw, busbw = tonumber(cells[i]), tonumber(cells[i + 1]), tonumber(cells[i + 2])
  return { bytes = bytes, seconds = time and time * 1e-6, algbw = algbw, busbw = busbw, redop = redop }
end

-- The median of busbw / algbw over the sizes where two decimals tell it: 1 GB/s and more.
local function ratio_of(points)
  local list = {}
  for _, entry in ipairs(points) do
    if entry.algbw and entry.algbw >= 1 and entry.busbw then list[#list + 1] = entry.busbw / entry.algbw end
  end
  table.sort(list)
  return list[(#list + 1) // 2]
end

-- Which test it was, from its name or, failing that, from what only one test shows.
local function identify(run, at)
  local ratio = ratio_of(run.points)
  local function fits(test) return ratio and math.abs(ratio / factors[test](run.ranks) - 1) < 0.03 end
  if not run.test then
    local like = {}
    for _, test in ipairs(known) do
      local reduces = test == "all_reduce" or test == "reduce_scatter"
      if fits(test) and (test == "sendrecv" or reduces == (run.redop ~= nil and run.redop ~= "none")) then like[#like + 1] = test end
    end
    if #like ~= 1 then
      failure.usage("%s: which test was this? Nothing names it%s: keep the line '# Collective test starting: …_perf', or the command's, " ..
                    "or name the file after the test", at(run.line), #like > 1 and ", it may be " .. table.concat(like, " or ") or "")
    end
    run.test = like[1]
  elseif ratio and not fits(run.test) then
    failure.usage("%s: the bus bandwidth is %.2f times the algorithm's: expected %.2f for %s over %d GPUs", at(run.line), ratio,
                  factors[run.test](run.ranks), run.test, run.ranks)
  end
end

local function finish(run, at)
  if #run.points < 2 then
    failure.usage("%s: a table of %s: expected two at least (nccl-tests -b 1M -e 8G -f 2)", at(run.line),
                  #run.points == 0 and "no sizes" or "one size")
  end
  if run.ranks == 0 then failure.usage("%s: no '# Rank' lines before this table: how many GPUs took part?", at(run.line)) end
  if run.ranks == 1 then failure.usage("%s: one GPU took part: expected two at least", at(run.line)) end
  run.redop = run.points[1].redop
  identify(run, at)
  run.host_count, run.ranks_per_host = 0, 0
  for _, count in pairs(run.hosts) do
    run.host_count = run.host_count + 1
    run.ranks_per_host = math.max(run.ranks_per_host, count)
  end
  return run
end

-- Does a text look like nccl-tests' output?
function nccl.is(text)
  return text:find "#%s+size%s+count%s+type" ~= nil
end

-- What has been read so far: `runs` that are complete, the run whose table is being read (`current`, with its `columns`), and what its
-- heading said: `hosts` → ranks there, `ranks`, and `test` (`foreign`: one that says nothing of links).
local reader = {}
reader.__index = reader

function reader:at(number) return self.name .. ":" .. number end

function reader:close()
  if not self.current then return end
  table.insert(self.runs, finish(self.current, function(number) return self:at(number) end))
  self.current, self.hosts = nil, nil
end

function reader:rank(host)
  self:close()
  if not self.hosts then self.hosts, self.ranks = {}, 0 end
  self.hosts[host], self.ranks = (self.hosts[host] or 0) + 1, self.ranks + 1
end

function reader:open(columns, number)
  self:close()
  if self.foreign then failure.usage("%s: %s_perf: expected one of %s", self:at(number), self.test, table.concat(known, ", ")) end
  local from_name = named_test(self.name:match "[^/]*$")
  self.columns = columns
  self.current = { line = number, hosts = self.hosts or {}, ranks = self.ranks or 0, test = self.test or from_name, points = {} }
end

function reader:row(line, number)
  local entry = point(line, self.columns)
  if not entry or entry.bytes == 0 then return end
  if not entry.seconds or entry.seconds <= 0 then
    failure.usage("%s: a size of %d bytes without a time: expected time, algbw and busbw after it", self:at(number), entry.bytes)
  end
  table.insert(self.current.points, entry)
end

function reader:line(line, number)
  local host = line:match "^#%s+Rank%s+%d+.-%sPid%s+%d+ on%s+(%S+)%s+device%s+%d+"
  local columns = heading(line)
  if host then self:rank(host)
  elseif columns then self:open(columns, number)
  elseif line:find "Out of bounds values%s*:%s*%d+%s+FAILED" then
    failure.usage("%s: %s: the run delivered wrong data, what it measured means nothing", self:at(number), line:gsub("^#%s*", ""))
  elseif line:find "_perf" and not line:find "concluded" then  -- the test's own line, or the command's
    self:close()
    self.test, self.foreign = named_test(line)
  elseif self.current and not line:find "^%s*#" then self:row(line, number) end
end

-- The runs in a text; `name` is the file it came from → list of { test, ranks, host_count, ranks_per_host, points, line }, points a list of
-- { bytes =, seconds = }. What cannot be read is a usage failure that names file and line.
function nccl.read(text, name)
  local self, number = setmetatable({ name = name, runs = {} }, reader), 0
  for line in (text .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    self:line(bare(line), number)
  end
  self:close()
  if #self.runs == 0 then failure.usage("%s: no table of nccl-tests: expected a line '# size count type … time algbw busbw'", name) end
  return self.runs
end

return nccl
