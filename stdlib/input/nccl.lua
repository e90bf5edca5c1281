-- SPDX-License-Identifier: Apache-2.0
-- nccl.lua: reading what nccl-tests and rccl-tests print: a heading, a line for each rank, a table of sizes; one or several runs in a file.
-- Lines of a launcher, of NCCL_DEBUG or of a log between them are passed over. Format: NVIDIA/nccl-tests src/common.cu and src/util.cu
-- (2.17 names the test in a line of its own, older ones do not); bus bandwidths: doc/PERFORMANCE.md there. A web page may have taken the
-- # off the lines.
--
-- The out-of-place columns are read: frameworks reduce into another buffer, and sendrecv and alltoall have no in-place variant.

local failure = require "pipeplan.base.failure"
local launchers = require "pipeplan.input.launchers"
local ranks = require "pipeplan.input.nccl_ranks"

local nccl = {}

-- busbw / algbw of each test with n ranks.
local function share(n) return (n - 1) / n end
local factors = {
  all_reduce = function(n) return 2 * share(n) end, all_gather = share, reduce_scatter = share, alltoall = share,
  sendrecv = function() return 1 end,
}
local known = { "all_gather", "all_reduce", "alltoall", "reduce_scatter", "sendrecv" }

-- Lines as the test wrote them, also where NCCL_DEBUG wrote behind one before it had ended.
local function bare(line)
  line = launchers.bare(line)
  local debugging = line:find("NCCL ", 1, true) and line:match "()%f[^%s\0]%S+:%d+:%d+ %[%d+%] NCCL "
  return debugging and line:sub(1, debugging - 1) or line
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

-- The table's heading: does its line have a column `root`, and one that counts wrong values (older versions show the largest difference)?
local function heading(line)
  local titles = words((line:gsub("^%s*#", "")))
  if titles[1] ~= "size" or titles[2] ~= "count" or titles[3] ~= "type" then return nil end
  local has = {}
  for _, title in ipairs(titles) do has[title] = true end
  return has.time and has.busbw and { root = has.root == true, wrong = has["#wrong"] == true }
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
  return { bytes = bytes, seconds = time and time * 1e-6, algbw = algbw, busbw = busbw, redop = redop,
           wrong = columns.wrong and math.max(tonumber(cells[i + 3]) or 0, tonumber(cells[i + 7]) or 0) }   -- out of place, in place
end

-- The median of busbw / algbw over the sizes where two decimals tell it, 1 GB/s and more, and how far off rounding may make it.
local function ratio_of(points)
  local list = {}
  for _, entry in ipairs(points) do
    if entry.algbw and entry.algbw >= 1 and entry.busbw then list[#list + 1] = { entry.busbw / entry.algbw, entry.algbw } end
  end
  table.sort(list, function(a, b) return a[1] < b[1] end)
  local middle = list[(#list + 1) // 2]
  if middle then return middle[1], math.max(0.004, 0.01 / middle[2]) end
end

-- Which test it was, from its name or, failing that, from what only one test shows.
local function identify(run, at)
  local ratio, tolerance = ratio_of(run.points)
  local function fits(test) return ratio and math.abs(ratio / factors[test](run.ranks) - 1) < tolerance end
  if not run.test then
    local like = {}
    for _, test in ipairs(known) do
      local reduces = test == "all_reduce" or test == "reduce_scatter"
      if fits(test) and (test == "sendrecv" or reduces == (run.redop ~= nil and run.redop ~= "none")) then like[#like + 1] = test end
    end
    if #like ~= 1 then
      failure.usage("%s: which test was this? Nothing names it; over %d GPUs of %s%s: keep the line '# Collective test starting: " ..
                    "…_perf', or the command's, or name the file after the test", at(run.line), run.ranks, ranks.nodes(run.host_count),
                    #like > 1 and " it may be " .. table.concat(like, " or ") or " it is none of " .. table.concat(known, ", "))
    end
    run.test = like[1]
  elseif ratio and not fits(run.test) then
    failure.usage("%s: the bus bandwidth is %.4g times the algorithm's: expected %.4g for %s over %d GPUs", at(run.line), ratio,
                  factors[run.test](run.ranks), run.test, run.ranks)
  end
end

local function finish(run, at)
  if #run.points < 2 then
    failure.usage("%s: a table of %s: expected two at least (nccl-tests -b 1M -e 8G -f 2)", at(run.line),
                  #run.points == 0 and "no sizes" or "one size")
  end
  if not run.list then failure.usage("%s: no '# Rank' lines before this table: how many GPUs took part?", at(run.line)) end
  run.ranks, run.host_count, run.ranks_per_host, run.listed = ranks.counted(run.list, at)
  run.card, run.list = run.list.card, nil
  if run.ranks == 1 then failure.usage("%s: one GPU took part: expected two at least", at(run.line)) end
  run.redop = run.points[1].redop
  identify(run, at)
  return run
end

-- Does a text look like nccl-tests' output?
function nccl.is(text)
  return text:find "%f[%a]size%s+count%s+type%s" ~= nil
end

-- What has been read so far: `runs` that are complete, `passed` over ones of other tests, the run whose table is being read (`current`,
-- with its `columns`), and what the heading of the next said: `list` of its ranks (nccl_ranks.lua), and `test` (`foreign`: one that says
-- nothing of links).
local reader = {}
reader.__index = reader

function reader:at(number) return self.name .. ":" .. number end

function reader:close()
  local run = self.current
  self.current = nil
  if not run then return end
  if run.foreign then table.insert(self.passed, { line = run.line, test = run.test })
  else table.insert(self.runs, finish(run, function(number) return self:at(number) end)) end
end

function reader:rank(line, number)
  self:close()
  self.list = self.list or ranks.new()
  ranks.add(self.list, line, number, function(where) return self:at(where) end)
end

function reader:open(columns, number)
  self:close()
  local from_name = named_test(self.name:match "[^/]*$")
  self.columns = columns
  self.current = { line = number, list = self.list, test = self.test or from_name, foreign = self.foreign, points = {} }
  self.list = nil
end

function reader:row(line, number)
  local entry = point(line, self.columns)
  if not entry or entry.bytes == 0 then return end
  if not entry.seconds or entry.seconds <= 0 then
    failure.usage("%s: a size of %d bytes without a time: expected time, algbw and busbw after it", self:at(number), entry.bytes)
  end
  for _, cell in ipairs { "seconds", "algbw", "busbw" } do
    local value = entry[cell]
    if value and not (value >= 0 and value < math.huge) then
      failure.usage("%s: %s of a size of %d bytes is no number: expected one of at most %.3g", self:at(number),
                    cell == "seconds" and "the time" or cell, entry.bytes, 1.7e308)
    end
  end
  if entry.wrong and entry.wrong > 0 then
    failure.usage("%s: %g values of this size were wrong: what the run measured means nothing", self:at(number), entry.wrong)
  end
  table.insert(self.current.points, entry)
end

function reader:line(line, number)
  local columns = heading(line)
  if ranks.is(line) then self:rank(line, number)
  elseif columns then self:open(columns, number)
  elseif line:find "Out of bounds values%s*:%s*%d+%s+FAILED" then
    failure.usage("%s: %s: the run delivered wrong data, what it measured means nothing", self:at(number), line:gsub("^#%s*", ""))
  elseif line:find("_perf", 1, true) and not line:find("concluded", 1, true) then  -- the test's own line, or the command's
    self.test, self.foreign = named_test(line)
  elseif self.current and not line:find "^%s*#" then self:row(line, number)
  elseif self.list and not self.current then ranks.between(self.list, line, number) end
end

-- The runs in a text; `name` is the file it came from → list of { test, ranks, host_count, ranks_per_host, listed, points, line }, points a
-- list of { bytes =, seconds = }, listed: of how many ranks there is a line, nil for all of them; card: what the first rank ran
-- on, as its driver calls it; and a list of { test, line } of other tests.
-- What cannot be read is a usage failure that names file and line.
function nccl.read(text, name)
  local self, number = setmetatable({ name = name, runs = {}, passed = {} }, reader), 0
  for line in (text .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    self:line(bare(line), number)
  end
  self:close()
  local other = self.passed[1]
  if #self.runs == 0 and other then
    failure.usage("%s: %s_perf: expected one of %s", self:at(other.line), other.test, table.concat(known, ", "))
  end
  if #self.runs == 0 then failure.usage("%s: no table of nccl-tests: expected a line '# size count type … time algbw busbw'", name) end
  return self.runs, self.passed
end

return nccl
