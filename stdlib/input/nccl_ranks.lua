-- SPDX-License-Identifier: Apache-2.0
-- nccl_ranks.lua: the list of ranks above a table of nccl-tests, which says how many GPUs of how many nodes were measured:
--
--   #  Rank  0 Group  0 Pid   1000 on      node1 device  0 [0000:07:00] NVIDIA H100 80GB HBM3
--
-- (NVIDIA/nccl-tests src/common.cu; older ones have no Group and a short bus number.) Each of 0 … n−1 stands there once. Who pastes a list
-- may shorten it to its ends, with dots between: what is left out is taken as listed only where the rest admits one reading, blocks of as
-- many ranks as the device numbers count.

local failure = require "pipeplan.base.failure"

local ranks = {}

local MOST_RANKS = 1 << 20
local MOST_DEVICES = 64   -- of a node: no more is tried
local LONGEST = 1000      -- bytes of a line

-- Is it such a line, or the beginning of one?
function ranks.is(line)
  return line:find "^[%s#]*Rank%s+%d" ~= nil
end

-- A list that is being read: of[rank] = { host, device, bus, line }; line_of: "host bus" → rank; card: what the first rank runs on.
function ranks.new()
  return { of = {}, count = 0, highest = -1, place_of = {} }
end

function ranks.nodes(count) return string.format("%d node%s", count, count == 1 and "" or "s") end

-- Two processes that know nothing of each other print two lists.
local function twice(at, number, rank, first)
  failure.usage("%s: rank %d for the second time (the first: line %d), before any table: processes that each measured by themselves? " ..
                "nccl-tests joins them only where it is built with MPI=1", at(number), rank, first)
end

function ranks.add(list, line, number, at)
  local rank, host, device, rest = line:sub(1, LONGEST):match "^[%s#]*Rank%s+(%d+)%s.-Pid%s+%d+%s+on%s+(%S+)%s+device%s+(%d+)(.*)$"
  rank = rank and #rank <= 9 and math.tointeger(tonumber(rank))
  device = device and #device <= 9 and math.tointeger(tonumber(device))
  if not rank or not device or rank >= MOST_RANKS then
    failure.usage("%s: %s: expected '# Rank N … Pid N on HOST device N [bus]'%s", at(number), line:sub(1, 80):gsub("%c", "?"),
                  rank and rank >= MOST_RANKS and ", ranks below " .. MOST_RANKS or "")
  end
  if list.of[rank] then twice(at, number, rank, list.of[rank].line) end
  local place = host .. " " .. device .. " " .. (rest:match "^%s*(%b[])" or "")
  if list.place_of[place] then
    failure.usage("%s: rank %d is on device %d of %s, where rank %d is (line %d): expected another name for each node", at(number), rank,
                  device, host, list.place_of[place], list.of[list.place_of[place]].line)
  end
  list.place_of[place] = rank
  list.of[rank] = { host = host, device = device, line = number }
  list.card = list.card or rest:gsub("^%s*%b[]", ""):match "%w.*%w"
  list.count, list.highest = list.count + 1, math.max(list.highest, rank)
end

-- A line between the ranks and the table: do its dots say that ranks were left out?
function ranks.between(list, line, number)
  if line:find("..", 1, true) or line:find("…", 1, true) or line:lower():find "%f[%a]snip%f[%A]" then list.cut = list.cut or number end
end

local function missing(list)
  for rank = 0, list.highest do
    if not list.of[rank] then return rank end
  end
end

-- Are the ranks that are listed as they would be in blocks of `size`, a block to a node, in order of their devices?
local function in_blocks(list, size)
  local host_of, block_of = {}, {}
  for rank, entry in pairs(list.of) do
    local block = rank // size
    if entry.device ~= rank % size then return false end
    if (host_of[block] or entry.host) ~= entry.host or (block_of[entry.host] or block) ~= block then return false end
    host_of[block], block_of[entry.host] = entry.host, block
  end
  return true
end

-- The one size of a block that the listed ranks admit, or nil.
local function block_size(list)
  local found
  local count = list.highest + 1
  for size = 1, math.min(count, MOST_DEVICES) do
    if count % size == 0 and in_blocks(list, size) then
      if found then return nil end
      found = size
    end
  end
  return found
end

-- → GPUs, nodes, GPUs of the node that has most, and how many are listed where not all are. at(line) → the place, for messages.
function ranks.counted(list, at)
  local count = list.highest + 1
  if list.count == count then
    local hosts, nodes, most = {}, 0, 0
    for rank = 0, list.highest do
      local host = list.of[rank].host
      if not hosts[host] then nodes = nodes + 1 end
      hosts[host] = (hosts[host] or 0) + 1
      most = math.max(most, hosts[host])
    end
    return count, nodes, most
  end
  local size = list.cut and block_size(list)
  if not size then
    failure.usage("%s: rank %d is missing: of ranks 0 to %d there %s %d%s: expected a line for each", at(list.of[list.highest].line),
                  missing(list), list.highest, list.count == 1 and "is" or "are", list.count,
                  list.cut and ", which do not say how many GPUs each node has" or "")
  end
  return count, count // size, size, list.count
end

return ranks
