-- SPDX-License-Identifier: Apache-2.0
-- program_messages.lua: the communication that a program's file has, held against what its actions need: PyTorch's runtime runs such a file
-- as it is (torch/distributed/pipelining/schedules.py, _load_csv with format "compute_comms": it validates nothing of it).
--
--   a result that is used on another rank is sent once, behind the action that makes it, and received once, before the action that uses it
--   of two ranks one receives in the order in which the other sends: NCCL has no tags
--   no rank waits for ever: executed in order, where a receive waits for its send and an action for what it uses (_simulate_comms_compute)
--   stages are gathered (UNSHARD) when they run, where a file gathers them at all, and gradients reduced behind their last backward
--
-- The actions themselves are the engine's business: they have been verified.

local messages = {}

-- Of a cell of the engine's: what each of its actions makes, as { "F" or "B", stage, microbatch }, W apart.
local function actions_of(cell)
  local out = {}
  for stage, letter, microbatch in cell:gmatch "(%d+)([FIWB])(%d+)" do
    out[#out + 1] = { letter = letter, backward = letter ~= "F", stage = math.tointeger(tonumber(stage)),
                      microbatch = math.tointeger(tonumber(microbatch)) }
  end
  return out
end

local function shown(op) return string.format("%d%s%s", op.stage, op.type, op.microbatch or "") end

-- A finding at a line: { id, rank, message }.
local function finding(id, rank, ...) return { id = "program." .. id, rank = rank, message = string.format(...) } end

local check = {}
check.__index = check

-- Whose result a stage uses of a microbatch: the stage, and whether it is on another rank; nil at the end of the pipeline.
function check:source(stage, backward)
  local from = backward and stage + 1 or stage - 1
  if from < 0 or from >= self.stages or from // self.per_chain ~= stage // self.per_chain then return nil end
  return from, self.rank_of[from] ~= self.rank_of[stage]
end

-- One number for what a stage makes of a microbatch in a direction.
function check:number(stage, backward, microbatch)
  return ((backward and 1 or 0) * self.stages + stage) * self.microbatches + microbatch
end

-- The message that a SEND or RECV is an end of, by what is sent: stage, backward; or a finding.
function check:message(op, rank)
  local backward, receives = op.type:sub(-1) == "B", op.type:sub(1, 1) == "R"
  if op.stage >= self.stages or not op.microbatch or op.microbatch >= self.microbatches then
    return nil, finding("no_such_message", rank, "column %d, %s: the program has stages 0 to %d and microbatches 0 to %d", op.column,
                        shown(op), self.stages - 1, self.microbatches - 1)
  end
  if self.rank_of[op.stage] ~= rank then
    return nil, finding("message_elsewhere", rank, "column %d, %s: stage %d is rank %d's", op.column, shown(op), op.stage,
                        self.rank_of[op.stage])
  end
  local from, to = op.stage, op.stage
  if receives then from = backward and op.stage + 1 or op.stage - 1 else to = backward and op.stage - 1 or op.stage + 1 end
  local made, crosses
  if to >= 0 and to < self.stages then made, crosses = self:source(to, backward) end
  if made ~= from or not crosses then
    return nil, finding("needless_message", rank, "column %d, %s: %s", op.column, shown(op),
                        made == from and "both stages are on this rank" or "there is no stage at the other end")
  end
  return { from = from, to = to, backward = backward, receives = receives, microbatch = op.microbatch,
           number = self:number(from, backward, op.microbatch) }
end

-- Sends and receives: each once, beside its action, and, of two ranks, in one order.
function check:ends()
  local ends = { [true] = self.received, [false] = self.sent }
  for rank, row in ipairs(self.rows) do
    for _, op in ipairs(row) do
      if type(op) == "table" and op.type:find "_[FB]$" then
        local message, problem = self:message(op, rank - 1)
        if not message then return problem end
        op.message = message
        local seen = ends[message.receives]
        if seen[message.number] then
          return finding("message_twice", rank - 1, "column %d, %s: for the second time", op.column, shown(op))
        end
        seen[message.number] = true
        local peer = self.rank_of[message.receives and message.from or message.to]
        local pair = message.receives and peer .. ">" .. rank - 1 or rank - 1 .. ">" .. peer
        local queue = self.queues[pair] or { from = message.receives and peer or rank - 1, [true] = {}, [false] = {} }
        self.queues[pair] = queue
        table.insert(queue[message.receives], op)
      end
    end
  end
end

-- Each send has its receive, and the other way round.
function check:matched()
  for rank, row in ipairs(self.rows) do
    for _, op in ipairs(row) do
      local message = type(op) == "table" and op.message
      local other = message and (message.receives and self.sent or self.received)
      if other and not other[message.number] then
        return finding("unmatched_message", rank - 1, "column %d, %s: rank %d never %s it", op.column, shown(op),
                       self.rank_of[message.receives and message.from or message.to], message.receives and "sends" or "receives")
      end
    end
  end
end

function check:ordered()
  local pairs_of = {}
  for pair in pairs(self.queues) do pairs_of[#pairs_of + 1] = pair end
  table.sort(pairs_of)
  for _, pair in ipairs(pairs_of) do
    local queue = self.queues[pair]
    for i, receive in ipairs(queue[true]) do
      local send = queue[false][i]
      if send.message.number ~= receive.message.number then
        return finding("message_order", self.rank_of[receive.stage], "column %d, %s: rank %d sends %s there (its column %d): without " ..
                       "tags the one is taken for the other", receive.column, shown(receive), queue.from, shown(send), send.column)
      end
    end
  end
end

-- What a rank's next cell waits for: the number of a result (send), or nil and a finding, or nothing.
function check:blocked(rank, cell)
  if type(cell) == "table" then
    local message = cell.message
    if not message then return nil end
    if message.receives then return not self.issued[message.number] and message.number or nil end
    if not self.made[message.number] then
      return nil, finding("message_too_early", rank, "column %d, %s: before the action that makes it", cell.column, shown(cell))
    end
    return nil
  end
  for _, action in ipairs(actions_of(cell)) do
    local from, crosses = self:source(action.stage, action.backward)
    if from and crosses and action.letter ~= "W" and not self.taken[self:number(from, action.backward, action.microbatch)] then
      local name = string.format("%d%s%d", action.stage, action.backward and "RECV_B" or "RECV_F", action.microbatch)
      return nil, finding("missing_message", rank, "%s runs before its %s", cell, name)
    end
  end
end

function check:execute(cell)
  if type(cell) == "table" then
    local message = cell.message
    if message then (message.receives and self.taken or self.issued)[message.number] = true end
    return message and not message.receives and message.number or nil
  end
  for _, action in ipairs(actions_of(cell)) do
    if action.letter ~= "W" then self.made[self:number(action.stage, action.backward, action.microbatch)] = true end
  end
end

-- Runs all ranks as far as they come; a finding where they do not come to their end.
function check:run()
  local at, waiting, ready = {}, {}, {}
  for rank = 1, #self.rows do at[rank], ready[rank] = 1, rank end
  while #ready > 0 do
    local rank = table.remove(ready)
    local row = self.rows[rank]
    while row[at[rank]] do
      local number, problem = self:blocked(rank - 1, row[at[rank]])
      if problem then return problem end
      if number then
        waiting[number] = rank
        break
      end
      local sent = self:execute(row[at[rank]])
      if sent and waiting[sent] then
        ready[#ready + 1], waiting[sent] = waiting[sent], nil
      end
      at[rank] = at[rank] + 1
    end
  end
  for rank, row in ipairs(self.rows) do
    local op = row[at[rank]]
    if op then
      return finding("message_deadlock", rank - 1, "column %d, %s: waits for rank %d, which waits itself: no rank goes on", op.column,
                     shown(op), self.rank_of[op.message.from])
    end
  end
end

-- Stages are gathered where they run, on ranks that gather any; gradients are reduced behind the last backward.
function check:sharded()
  for rank, row in ipairs(self.rows) do
    local gathers, gathered, reduced = false, {}, {}
    for _, op in ipairs(row) do gathers = gathers or type(op) == "table" and op.type == "UNSHARD" end
    for _, op in ipairs(row) do
      if type(op) == "table" then
        if op.type == "UNSHARD" then gathered[op.stage] = true elseif op.type == "RESHARD" then gathered[op.stage] = nil end
        if op.type == "REDUCE_GRAD" then reduced[op.stage] = op end
      else
        for _, action in ipairs(actions_of(op)) do
          if gathers and not gathered[action.stage] then
            return finding("not_gathered", rank - 1, "%s runs where stage %d is not gathered (%dUNSHARD)", op, action.stage, action.stage)
          end
          if action.backward and reduced[action.stage] then
            return finding("reduced_early", rank - 1, "column %d, %s: before %s, whose gradients it leaves out",
                           reduced[action.stage].column, shown(reduced[action.stage]), op)
          end
        end
      end
    end
  end
end

-- A rank's actions and messages, in order, as schedule:lowered writes them: a pair as its halves.
local function order_of(row)
  local out = {}
  for _, op in ipairs(row) do
    if type(op) == "table" then out[#out + 1] = op.message and shown(op)
    else
      for action in op:gmatch "%d+[FIWB]%d+" do out[#out + 1] = action end
    end
  end
  return table.concat(out, ",")
end

-- Is it the order that PyTorch's runtime gives these actions by itself, as pipeplan knows it? Of whose receives.
local function as_lowered(rows, schedule)
  local own = {}
  for rank, row in ipairs(rows) do own[rank] = order_of(row) .. "\n" end
  for _, receives in ipairs { "early", "before_use" } do
    if schedule:lowered { runtime = "torch-multi", receives = receives } == table.concat(own) then return receives end
  end
  return nil
end

-- rows: of program_cells.read. → { messages, order }, order: "early" or "before_use" where PyTorch's runtime has the same with its receives
-- there, else "other"; or nil and a finding.
function messages.check(rows, schedule, info)
  local self = setmetatable({ rows = rows, rank_of = {}, stages = info.stages, per_chain = info.stages // info.chains,
                              microbatches = info.microbatches, sent = {}, received = {}, queues = {}, issued = {}, taken = {}, made = {} },
                            check)
  for stage, rank in ipairs(info.placement) do self.rank_of[stage - 1] = rank end
  local problem = self:sharded() or self:ends() or self:matched() or self:ordered() or self:run()
  if problem then return nil, problem end
  local count = 0
  for _ in pairs(self.sent) do count = count + 1 end
  return { messages = count, order = as_lowered(rows, schedule) or "other" }
end

return messages
