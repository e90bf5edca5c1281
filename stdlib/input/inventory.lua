-- SPDX-License-Identifier: Apache-2.0
-- inventory.lua: which GPUs there are, from what people can paste: `scontrol show node`, `sinfo` with GRES, a hostfile of DeepSpeed or MPI
-- (`host slots=8`), `nvidia-smi -L`. Fields of a spec that it leaves out are filled; those that it says are held against the files.
--
-- Slurm: https://slurm.schedmd.com/scontrol.html and sinfo.html (%N %G %t %D); gres is gpu[:TYPE]:COUNT[(S:sockets)]. A node that is down,
-- drained or failing has no GPUs to plan with. Nodes have to be alike: a plan is of one kind of node.

local accelerators = require "pipeplan.catalog.accelerators"
local failure = require "pipeplan.base.failure"
local launchers = require "pipeplan.input.launchers"
local text_of = require "pipeplan.base.text"

local inventory = {}

local MOST_NODES, MOST_GPUS, LONGEST = 100000, 4096, 65536   -- nodes of a list, GPUs of a node, bytes of a line that is read

local function plain(line)
  return launchers.bare(line:sub(1, LONGEST)):match "^(.*%S)" or ""
end

-- Calls visit(line, place) for each line that is not empty; as: plain, or what else makes a line readable.
local function each_line(text, name, visit, as)
  local number = 0
  for line in (text .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    line = (as or plain)(line)
    if line ~= "" then visit(line, name .. ":" .. number) end
  end
end

-- A line with the name of its node, where one stands before it.
local function named(line)
  local bare = launchers.bare(line:sub(1, LONGEST))
  return bare:match "^%s*GPU" and (line:match "^ *(%d+: )" or "") .. bare or bare
end

local function count_of(text) return text and #text <= 9 and text:match "^%d+$" and math.tointeger(tonumber(text)) or nil end

-- "gpu:h100:8(S:0-1),lustre:1" → 8, "h100"; 0 without GPUs. More than one kind is an error.
local function gres(text, place)
  local count, kind = 0, nil
  for part in text:gsub("%([^()]*%)", ""):gmatch "[^,]+" do
    local rest = part:match "^gpu:(.*)$"
    if rest then
      local name, number = rest:match "^([^:]+):(%d+)$"
      local found = count_of(number or rest)
      if not found or found < 1 or found > MOST_GPUS then
        failure.usage("%s: Gres is %s: expected gpu:TYPE:COUNT or gpu:COUNT", place, part:sub(1, 60):gsub("%c", "?"))
      end
      if count > 0 then failure.usage("%s: two kinds of GPUs in a node, %s: a plan is of one", place, text:sub(1, 80):gsub("%c", "?")) end
      count, kind = found, name
    end
  end
  return count, kind
end

local function is_gone(state)
  local word = state:upper():gsub("%f[%u]POWER%u+_DOWN", "")   -- of a cloud: it comes up when it is asked for
  return word:find "DOWN" or word:find "DRAIN" or word:find "DRNG" or word:find "FAIL" or word:find "INVAL" or word:find "MAINT"
    or word:find "RESPOND" or word:find "%*" or word:find "%$" or word:find "UNKNOWN" or word:find "UNK" or word:find "FUTURE"
end

-- Nodes that were read: adds `nodes` of them with so many GPUs of a kind each. They have to be alike.
local function add(found, nodes, gpus, kind, place)
  if gpus == 0 or nodes == 0 then return end
  if found.per_node and (found.per_node ~= gpus or found.kind ~= kind) then
    failure.usage("%s: a node of %d %s, where %s has %d %s: expected nodes that are alike (paste those of one partition)", place, gpus,
                  kind or "GPUs", found.first, found.per_node, found.kind or "GPUs")
  end
  if not found.per_node then found.per_node, found.kind, found.first = gpus, kind, place end
  found.nodes = found.nodes + nodes
end

-- "gpu[01-03,7],login" → calls visit for each name; an error of a list that is none, or where `told`, names of the file so far, are too
-- many. O(list).
local function each_host(list, place, told, visit)
  local function one(name)
    told.names = told.names + 1
    if told.names > MOST_NODES then failure.usage("%s: more than %d nodes", place, MOST_NODES) end
    visit(name)
  end
  local at = 1
  while at <= #list do
    local head, inside, after = list:match("^([^,%[%]]*)%[([%d,%-]*)%],?()", at)
    if head then
      for range in inside:gmatch "[^,]+" do
        local first, last = range:match "^(%d+)%-(%d+)$"
        local from, to = count_of(first or range), count_of(last or range)
        if not from or not to or to < from or to - from > MOST_NODES then
          failure.usage("%s: %s is no list of nodes", place, list:sub(1, 80))
        end
        for number = from, to do one(head .. string.format("%0" .. #(first or range) .. "d", number)) end
      end
    else
      local name
      name, after = list:match("^([^,%[%]]+),?()", at)
      if not name then failure.usage("%s: %s is no list of nodes", place, list:sub(1, 80)) end
      one(name)
    end
    at = after
  end
end

-- ------------------------------------------------------------------------------------------------------------------------- readers

local readers = {}

readers.scontrol = { title = "scontrol show node", is = function(text) return text:find "%f[%w]NodeName=%S" ~= nil end }
function readers.scontrol.read(text, name)
  local found, node, seen = { nodes = 0 }, nil, {}
  local function close()
    if node and not is_gone(node.state or "") then add(found, 1, node.count or 0, node.kind, node.place)
    elseif node and (node.count or 0) > 0 then found.gone = (found.gone or 0) + 1 end
    node = nil
  end
  each_line(text, name, function(line, place)
    if line:find "^%s*NodeName=" then
      close()
      local host = line:match "NodeName=(%S+)" or ""
      if seen[host] then failure.usage("%s: node %s for the second time (the first: %s)", place, host:sub(1, 60), seen[host]) end
      node, seen[host] = { place = place }, place
    end
    if not node then return end
    local list, state = line:match "%f[%w]Gres=(%S+)", line:match "%f[%w]State=(%S+)"
    if list then node.count, node.kind = gres(list, place) end
    node.state = state or node.state
  end)
  close()
  return found
end

readers.sinfo = { title = "sinfo", is = function(text)
  local heading = text:match "^%s*([^\n]*)"
  return heading:find "%f[%u]NODELIST%f[%U]" ~= nil or heading:find "%f[%u]GRES%f[%U]" ~= nil
end }
function readers.sinfo.read(text, name)
  local found, columns, seen, told, first = { nodes = 0 }, nil, {}, { names = 0 }, nil
  each_line(text, name, function(line, place)
    local cells = {}
    for word in line:gmatch "%S+" do cells[#cells + 1] = word end
    if not columns then
      columns = {}
      for i, title in ipairs(cells) do columns[title:gsub("%(.*", "")] = i end
      if not columns.GRES or not (columns.NODELIST or columns.NODES) then
        failure.usage("%s: no column %s: expected sinfo -N -o '%%N %%G %%t'", place, columns.GRES and "NODELIST" or "GRES")
      end
      columns.count = #cells
      return
    end
    if #cells ~= columns.count then failure.usage("%s: %d cells: expected %d, as in the heading", place, #cells, columns.count) end
    local count, kind = gres(cells[columns.GRES], place)
    if is_gone(columns.STATE and cells[columns.STATE] or "") then return end
    if not columns.NODELIST then
      local nodes = count_of(cells[columns.NODES])
      if not nodes then failure.usage("%s: %s nodes: expected a number", place, cells[columns.NODES]:sub(1, 40)) end
      if count > 0 and nodes > 0 and first and columns.PARTITION and cells[columns.PARTITION] ~= first then
        failure.usage("%s: a second partition: a node may stand in both; paste one, or sinfo -N -o '%%N %%G %%t'", place)
      end
      if count > 0 and nodes > 0 then first = first or cells[columns.PARTITION or 1] end
      return add(found, nodes, count, kind, place)
    end
    each_host(cells[columns.NODELIST], place, told, function(host)   -- a node stands once in each of its partitions
      if seen[host] then return end
      seen[host] = true
      add(found, 1, count, kind, place)
    end)
  end)
  return found
end

readers.smi = { title = "nvidia-smi -L", is = function(text)
  return text:find("(UUID: ", 1, true) ~= nil and text:find "%f[%w]GPU %d+: " ~= nil
end }

-- "node1: GPU 0: NVIDIA H100 (UUID: GPU-…)" → "node1:" or "", "0", the card, its UUID; nils of another line.
local function card_of(line)
  local from = line:match "^%s*()"
  local host, at = line:match("^([%w%.%-_]+:)%s*()GPU ", from)
  local index, rest = line:match("^GPU (%d+): ()", at or from)
  if index then return host or "", index, line:match("^(.+) %(UUID: ([^)]*)", rest) end
end

-- A GPU of the list of a node: each of 0 … n − 1 stands there once.
local function add_card(node, index, uuid, place)
  index = count_of(index)
  if not index or index >= MOST_GPUS then failure.usage("%s: expected 'GPU N: name (UUID: …)'", place) end
  if node.at[index] then failure.usage("%s: GPU %d for the second time: expected the list of one node", place, index) end
  node.at[index], node.count, node.highest, node.last = place, node.count + 1, math.max(node.highest, index), place
  node.uuids[#node.uuids + 1] = uuid
end

-- Did another list tell of the same cards? Not where they were made unreadable, all alike.
local function told_before(node, told)
  local again, own = true, {}
  for _, uuid in ipairs(node.uuids) do
    if own[uuid] then again = false end
    again, own[uuid] = again and told[uuid] or false, true
  end
  for uuid in pairs(own) do told[uuid] = true end
  return again
end

-- Lists of several nodes have a name before each line, as pdsh, clush and srun --label write it.
function readers.smi.read(text, name)
  local found, nodes, order, told = { nodes = 0 }, {}, {}, {}
  each_line(text, name, function(line, place)
    local host, index, card, uuid = card_of(line)
    if line:find "^%s*MIG " or line:find "^%s*[%w%.%-_]+:%s+MIG " then
      failure.usage("%s: a slice of a GPU (MIG): a plan is of whole ones", place)
    end
    if uuid then
      if not nodes[host] then
        nodes[host] = { at = {}, count = 0, highest = -1, uuids = {}, card = card, first = place }
        order[#order + 1] = host
      end
      if nodes[host].card ~= card then
        failure.usage("%s: %s, where GPU 0 is %s: a plan is of one kind", place, card:sub(1, 60):gsub("%c", "?"), nodes[host].card)
      end
      add_card(nodes[host], index, uuid, place)
    end
  end, named)
  for _, host in ipairs(order) do
    local node = nodes[host]
    for index = 0, node.highest do
      if not node.at[index] then
        failure.usage("%s: GPU %d is missing: of GPUs 0 to %d there %s %d: expected a line for each", node.last, index, node.highest,
                      node.count == 1 and "is" or "are", node.count)
      end
    end
    if not told_before(node, told) then add(found, 1, node.count, node.card, node.first) end
  end
  found.one_node = #order == 1 and order[1] == "" or nil
  return found
end

readers.hostfile = { title = "a hostfile", is = function(text)
  return text:find "%sslots=%d" ~= nil or text:find "^[%w%.%-_]+:%d+%s" ~= nil
end }
function readers.hostfile.read(text, name)
  local found, seen = { nodes = 0, exact = true }, {}
  each_line(text, name, function(line, place)
    line = line:gsub("#.*", ""):match "^(.*%S)" or ""
    if line == "" then return end
    local host, rest = line:match "^%s*([%w%.%-_]+)(.*)$"
    local slots = rest and count_of(rest:match "^:(%d+)$" or rest:match "^%s+slots=(%d+)%f[^%w]")
    if not slots or slots < 1 or slots > MOST_GPUS then
      failure.usage("%s: %s: expected a name and its GPUs, such as node1 slots=8", place, line:sub(1, 60):gsub("%c", "?"))
    end
    if seen[host] then failure.usage("%s: host %s for the second time (the first: %s)", place, host, seen[host]) end
    seen[host] = place
    add(found, 1, slots, nil, place)
  end)
  return found
end

local order = { "scontrol", "smi", "sinfo", "hostfile" }

-- What one text says: { nodes, per_node, kind, first, title, one_node, exact }: `first`: where.
function inventory.read(text, name)
  text = text_of.unmarked(text)
  for _, key in ipairs(order) do
    local reader = readers[key]
    if reader.is(text) then
      local found = reader.read(text, name)
      if not found.per_node then failure.usage("%s: %s without a GPU that can be used%s", name, reader.title,
                                               found.gone and " (" .. found.gone .. " nodes are down or drained)" or "") end
      found.title, found.file = reader.title, name
      return found
    end
  end
  failure.usage("%s: none of scontrol show node, sinfo (with %%G), a hostfile (host slots=8), nvidia-smi -L", name)
end

-- The catalogue's entry for a card as a driver or Slurm calls it: "NVIDIA H100 80GB HBM3", "nvidia_h100_80gb_hbm3", "h100".
function inventory.card(kind)
  local key = kind:lower():gsub("[_%s]+", "-"):gsub("^nvidia%-", ""):gsub("^tesla%-", ""):gsub("^geforce%-", ""):gsub("^amd%-", "")
    :gsub("^instinct%-", ""):gsub("sxm%d%-", "sxm-"):gsub("^rtx%-?(%d)", "rtx-%1")
  local entry, near = accelerators.find(key:upper())
  return entry, near and near[1], key
end

return inventory
