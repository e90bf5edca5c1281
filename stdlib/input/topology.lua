-- SPDX-License-Identifier: Apache-2.0
-- topology.lua: reading `nvidia-smi topo -m`: which GPUs of a node NVLink joins, and how near its network cards are.
--
-- A cell says how a row's device reaches a column's: NV# that many NVLinks; PIX one PCIe bridge; PXB several; PHB the CPU's host bridge;
-- NODE between host bridges of one NUMA node; SYS (older drivers SOC) between NUMA nodes. Behind NVSwitch each pair shows all links of a
-- GPU, on a board without it each pair shows its own.

local failure = require "pipeplan.base.failure"
local launchers = require "pipeplan.input.launchers"

local topology = {}

local cells_known = { X = true, PIX = true, PXB = true, PHB = true, NODE = true, SYS = true, SOC = true }

-- No GPU has more NVLinks (Hopper and Blackwell: 18): more in a row than that, and its pairs share them through a switch.
local MOST_LINKS = 18

local function is_gpu(name) return name and name:find "^GPU%d+$" ~= nil end

-- Does a text look like the matrix?
function topology.is(text)
  local heading = text:find "GPU0%s"
  local ends = heading and text:find("\n", heading + 5, true)
  local row = ends and text:match("GPU0%s+()", ends)
  return row ~= nil and text:find("X", row, true) ~= nil
end

-- The columns' names: devices only, what follows "CPU Affinity" is not one.
local function columns_of(line)
  local names = {}
  for word in line:gmatch "%S+" do
    if word == "CPU" or word == "NUMA" then break end
    names[#names + 1] = word
  end
  return names
end

local function read_row(line, columns, at)
  local row, words = {}, {}
  for word in line:gmatch "%S+" do words[#words + 1] = word end
  for i, name in ipairs(columns) do
    local cell = words[i + 1]
    if not cell or not (cells_known[cell] or cell:find "^NV%d%d?%d?$") then
      failure.usage("%s: %s to %s is %s: expected X, NV#, PIX, PXB, PHB, NODE or SYS", at, words[1], name, cell or "missing")
    end
    row[name] = cell
  end
  return row
end

-- Every GPU of the columns has one row, and none else has.
local function check_gpus(columns, gpus, rows_at, at)
  local has_column, seen = {}, {}
  for _, column in ipairs(columns) do
    if is_gpu(column) and has_column[column] then failure.usage("%s: two columns are %s: is the output whole?", at, column) end
    has_column[column] = is_gpu(column)
  end
  for i, gpu in ipairs(gpus) do
    if not has_column[gpu] or seen[gpu] then
      failure.usage("%s: %s: is the output whole?", rows_at[i],
                    seen[gpu] and "a second row of " .. gpu or gpu .. " has a row, but no column")
    end
    seen[gpu] = true
  end
end

local function links(cell) return math.tointeger(tonumber(cell:match "^NV(%d+)$")) or 0 end

-- The GPUs that NVLink joins with `first`, each with each.
local function joined(matrix, gpus, first)
  local group = {}
  for _, gpu in ipairs(gpus) do
    if gpu == first or links(matrix[first][gpu]) > 0 then group[#group + 1] = gpu end
  end
  for _, a in ipairs(group) do
    for _, b in ipairs(group) do
      if a ~= b and links(matrix[a][b]) == 0 then return { first } end
    end
  end
  return group
end

-- NVLinks of one GPU: all that its row shows once, or, behind a switch, what every cell shows.
local function links_of(matrix, group, gpu)
  local sum, most = 0, 0
  for _, other in ipairs(group) do
    local count = other == gpu and 0 or links(matrix[gpu][other])
    sum, most = sum + count, math.max(most, count)
  end
  return sum > MOST_LINKS and most or sum
end

local near = { PIX = true, PXB = true }

-- Network cards: how many there are, how many are beside a GPU, and which GPUs have none beside them.
local function cards(matrix, gpus, columns)
  local count, beside, without = 0, 0, {}
  for _, name in ipairs(columns) do
    if not is_gpu(name) then
      count = count + 1
      for _, gpu in ipairs(gpus) do
        if near[matrix[gpu][name]] then
          beside = beside + 1
          break
        end
      end
    end
  end
  for _, gpu in ipairs(gpus) do
    local any = false
    for _, name in ipairs(columns) do any = any or (not is_gpu(name) and near[matrix[gpu][name]]) end
    if not any then without[#without + 1] = gpu end
  end
  return count, beside, without
end

-- → { gpus, joined, links, cards, cards_beside, without_card = { names }, line }: GPUs of the node, how many of them each NVLink domain
-- joins (1: none), NVLinks of one GPU, network cards, those a PCIe switch joins with a GPU, GPUs without such a card.
function topology.read(text, name)
  local number, columns, first_line, gpus, matrix, rows_at = 0, nil, nil, {}, {}, {}
  for line in (text .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    line = launchers.bare(line)
    local first = line:match "^%s*(%S+)"
    if not columns then
      if is_gpu(first) and not line:find "%sX%s" then columns, first_line = columns_of(line), number end
    elseif is_gpu(first) then
      gpus[#gpus + 1] = first
      rows_at[#gpus] = name .. ":" .. number
      matrix[first] = read_row(line, columns, rows_at[#gpus])
    elseif first and first:find "^Legend" then
      break
    end
  end
  if not columns then failure.usage("%s: no matrix of nvidia-smi topo -m: expected a line of column names GPU0 GPU1 …", name) end
  local expected = 0
  for _, column in ipairs(columns) do expected = expected + (is_gpu(column) and 1 or 0) end
  if #gpus ~= expected then
    failure.usage("%s:%d: %d columns of GPUs, but %d rows: is the output whole?", name, first_line, expected, #gpus)
  end
  check_gpus(columns, gpus, rows_at, name .. ":" .. first_line)
  local group = joined(matrix, gpus, gpus[1])
  local lanes = math.huge
  for _, gpu in ipairs(gpus) do
    local own = joined(matrix, gpus, gpu)
    if #own < #group then group = own end
    lanes = math.min(lanes, links_of(matrix, own, gpu))
  end
  local count, beside, without = cards(matrix, gpus, columns)
  return { gpus = #gpus, joined = #group, links = #group > 1 and lanes or 0, cards = count, cards_beside = beside,
           without_card = count > 0 and without or {}, line = first_line }
end

return topology
