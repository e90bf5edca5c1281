-- SPDX-License-Identifier: Apache-2.0
-- megatron_layers.lua: how Megatron-Core splits a model's layers over stages, from its flags: the layers that it builds on each stage, or why
-- it refuses. Stage k is chunk k div P of rank k mod P. What is read of a record f: layers, pipeline_parallel, virtual, mtp_layers, layout,
-- first_layers, last_layers, account_embedding, account_loss, layers_a_chunk.
-- A, T, B, L: as in megatron.lua; lines of @d98e8a64.

local layers = {}

-- A stage is { E, t, m, L: how many }; more stages than that no cluster has.
local MOST_STAGES, MOST_LENGTH = 10000, 100000

-- "(…)*n" written out; nil where that is too long. What the regular expression \(([^)]+)\)\*(\d+) finds, in one pass: all ( before a ) end
-- there.
local function without_groups(text)
  local parts, at, left = {}, 1, MOST_LENGTH
  while true do
    local open = text:find("(", at, true)
    local close = open and text:find(")", open, true)
    if not close then break end
    local count, stop = text:match("^%*(%d+)()", close + 1)
    local times = count and close > open + 1 and tonumber(count)
    local part = times and text:sub(open + 1, close - 1)
    left = left - (times and times * #part or 0)
    if left < 0 then return nil end
    parts[#parts + 1] = text:sub(at, times and open - 1 or close)
    parts[#parts + 1] = times and part:rep(times) or nil
    at = times and stop or close + 1
  end
  parts[#parts + 1] = text:sub(at)
  return table.concat(parts)
end

-- The same of "x*n".
local function without_counts(text)
  local left = MOST_LENGTH
  local out = text:gsub("(.)%*(%d+)", function(letter, count)
    left = left - tonumber(count)
    return left >= 0 and letter:rep(tonumber(count)) or ""
  end)
  return left >= 0 and #out <= MOST_LENGTH and out or nil
end

-- layers.parse("Et*3|(tt|)*29,m|L") → stages, or nil and why not (L: parse_str_to_list).
function layers.parse(text)
  if #text > MOST_LENGTH then return nil, "is longer than any pipeline" end
  local rolled = text:gsub(",", "")
  local out = without_groups(rolled)
  out = out and without_counts(out)
  if not out then return nil, "is longer than any pipeline" end
  local wrong = out:match "[^EtmL|]"
  if wrong then return nil, string.format("has '%s', which is none of E, t, m, L, |", wrong) end
  local stages = {}
  for stage in (out .. "|"):gmatch "(.-)|" do
    local counts = { E = 0, t = 0, m = 0, L = 0, text = stage }
    for letter in stage:gmatch "." do counts[letter] = counts[letter] + 1 end
    stages[#stages + 1] = counts
    if #stages > MOST_STAGES then return nil, "has more stages than any cluster" end
  end
  return stages
end

-- The position of the first character of a layout string that stands for nothing, from 1; nil: there is none.
local function misplaced(text)
  local at = 1
  local function item(from)   -- the end of a letter or | with its count, from there
    local stop = text:match("^[EtmL|],*()", from)
    local counted = stop and text:match("^%*%d+()", stop)
    return counted or stop
  end
  while at <= #text do
    local inside = text:match("^%(()[^()]*%)%*%d+", at)
    local stop = text:sub(at, at) == "," and at + 1 or item(at)
    if inside then
      local position = inside
      while text:sub(position, position) ~= ")" do
        local following = text:sub(position, position) == "," and position + 1 or item(position)
        if not following then
          at, stop = position, nil
          break
        end
        position, stop = following, following
      end
      if text:sub(position, position) == ")" then stop = text:match("^%)%*%d+()", position) end
    end
    if not stop then break end
    at = stop
  end
  return at <= #text and at or nil
end

-- The same, and the string with that mended or left out, where it is all that is wrong.
function layers.misplaced(text)
  local at = misplaced(text)
  if not at then return nil end
  local letter = text:sub(at, at)
  local mended = ({ e = "E", T = "t", M = "m", l = "L" })[letter] or ""
  local _, last = text:find(utf8.charpattern, at)
  local rest = text:sub(1, at - 1) .. mended .. text:sub((last or at) + 1)
  return at, rest ~= "" and not misplaced(rest) and rest or nil
end

local letters = { embedding = "E", decoder = "t", mtp = "m", loss = "L" }

-- The string of a list of lists of names; nil, what was expected and the nearest name where it is none.
function layers.written(list)
  local parts = {}
  if #list > MOST_STAGES then return nil, "fewer stages: no cluster has so many" end
  for i, stage in ipairs(list) do
    if type(stage) ~= "table" then return nil, string.format("a list of lists: stage %d is none", i) end
    local text = {}
    for k, name in ipairs(stage) do
      local letter = type(name) == "string" and letters[name:match "^%s*(.-)%s*$":lower()]
      if not letter then
        return nil, string.format("embedding, decoder, mtp or loss as item %d of stage %d", k, i)
      end
      text[k] = letter
    end
    parts[i] = table.concat(text)
    if #parts[i] > MOST_LENGTH then return nil, "fewer layers of a stage" end
  end
  return table.concat(parts, "|")
end

local function count(stages, letter)
  local sum = 0
  for _, stage in ipairs(stages) do sum = sum + stage[letter] end
  return sum
end

-- Why Megatron refuses the layout of a record, or nil (A:917, L:78-150).
function layers.layout_problem(f)
  local stages, problem = layers.parse(f.layout)
  if not stages then return "the layout " .. problem end
  local P = f.pipeline_parallel
  if #stages % P ~= 0 then return string.format("the layout has %d stages, no multiple of P %d", #stages, P) end
  local all = {}
  for i, stage in ipairs(stages) do all[i] = stage.text end
  local flat = table.concat(all)
  if flat:sub(1, 1) ~= "E" or count(stages, "E") ~= 1 then return "the layout must have E once, at its beginning" end
  if flat:sub(-1) ~= "L" or count(stages, "L") ~= 1 then return "the layout must have L once, at its end" end
  local decoders, mtp = count(stages, "t"), count(stages, "m")
  if decoders ~= f.layers then return string.format("the layout has %d t, the model %d layers", decoders, f.layers) end
  if mtp ~= f.mtp_layers then return string.format("the layout has %d m, the model %d MTP layers", mtp, f.mtp_layers) end
  if flat:find "m.*t" then return "MTP layers come after all others" end
  for i, stage in ipairs(stages) do
    if stage.m > 0 and i <= #stages - P then return string.format("MTP layers stand in the last chunk of a rank: stage %d is none", i - 1) end
    if stage.m > 0 and stage.m ~= mtp then return "all MTP layers stand in one stage" end
  end
end

-- The layout nearest to a record's that has as many layers as its model, the last stage that has any taking what is missing or too much; nil
-- where that is not all that is wrong with it.
function layers.mended(f)
  local stages = layers.parse(f.layout)
  local missing, parts = f.layers - count(stages, "t"), {}
  for i = #stages, 1, -1 do
    local stage = stages[i]
    local held = stage.t
    if missing ~= 0 and held > 0 then
      stage.t = math.max(0, held + missing)
      missing = missing - (stage.t - held)
    end
    parts[i] = (stage.E > 0 and "E" or "") .. (stage.t > 1 and "t*" .. stage.t or ("t"):rep(stage.t)) .. ("m"):rep(stage.m) .. (stage.L > 0 and "L" or "")
  end
  local text = table.concat(parts, "|")
  local copy = setmetatable({ layout = text }, { __index = f })
  return missing == 0 and not layers.layout_problem(copy) and text or nil
end

-- Layers of the ranks, where the ends have their own number; nil and why (T:2294-2368).
local function of_ends(f)
  local P, V, left, middle = f.pipeline_parallel, f.virtual, f.layers, f.pipeline_parallel
  for _, own in ipairs { { "first", f.first_layers }, { "last", f.last_layers } } do
    local number = own[2]
    if number then
      if number <= 0 then return nil, string.format("the %s rank is given %d layers", own[1], number) end
      if number % V ~= 0 then return nil, string.format("the %s rank's %d layers do not divide by V %d", own[1], number, V) end
      left, middle = left - number, middle - 1
    end
  end
  if (left ~= 0) ~= (middle ~= 0) or left < 0 or middle < 0 then
    return nil, string.format("%d layers are left for %d ranks between the ends", left, middle)
  end
  local each = 0
  if middle > 0 then
    if left % middle ~= 0 then return nil, string.format("%d layers do not divide over the %d ranks between the ends", left, middle) end
    each = left // middle
    if each % V ~= 0 then return nil, string.format("%d layers of a rank between the ends do not divide by V %d", each, V) end
  end
  local ranks = {}
  for r = 1, P do ranks[r] = r == 1 and f.first_layers or r == P and f.last_layers or each end
  return ranks
end

-- Why Megatron builds no layers for a record without a layout string, or nil; and the layers of each rank, accounted ones included.
local function of_ranks(f)
  if f.first_layers or f.last_layers then return of_ends(f) end
  local P, V = f.pipeline_parallel, f.virtual
  local accounted = (f.account_embedding and 1 or 0) + (f.account_loss and 1 or 0)
  local sum = f.layers + accounted
  local what = accounted > 0 and string.format("%d layers and %d accounted for embedding and loss", f.layers, accounted)
               or string.format("%d layers", f.layers)
  if sum % P ~= 0 then return nil, string.format("%s do not divide by P %d", what, P) end
  if f.layers_a_chunk and sum // P % f.layers_a_chunk ~= 0 then
    return nil, string.format("the %d layers of a rank do not divide by %d layers a chunk", sum // P, f.layers_a_chunk)
  end
  if sum // P % V ~= 0 then return nil, string.format("%s are %d a rank: no multiple of V %d", what, sum // P, V) end
  local ranks = {}
  for r = 1, P do ranks[r] = sum // P end
  return ranks
end

-- Why Megatron refuses the split of a record, or nil. Ways that exclude each other are other rules.
function layers.problem(f)
  if f.layout then return layers.layout_problem(f) end
  local ranks, problem = of_ranks(f)
  if not ranks then return problem end
  if f.account_embedding and ranks[1] // f.virtual < 1 or f.account_loss and ranks[#ranks] // f.virtual < 1 then
    return "a stage would have -1 layers"
  end
end

-- The number of layers that is nearest to the model's and can be split, where only that number is wrong; or nil.
function layers.nearest(f)
  if f.layout or f.first_layers or f.last_layers then return nil end
  local accounted = (f.account_embedding and 1 or 0) + (f.account_loss and 1 or 0)
  local step = f.pipeline_parallel * (f.layers_a_chunk or f.virtual)
  return math.max(step, (f.layers + accounted + step // 2) // step * step) - accounted
end

-- The layers that Megatron builds on each stage, first to last, of a record that it does not refuse.
function layers.built(f)
  local list, P, V = {}, f.pipeline_parallel, f.virtual
  if f.layout then
    for i, stage in ipairs(layers.parse(f.layout)) do list[i] = stage.t end
    return list
  end
  local ranks = of_ranks(f)
  if P == 1 then return { f.layers } end
  for _ = 1, V do
    for r = 1, P do list[#list + 1] = ranks[r] // V end
  end
  if f.account_embedding then list[1] = list[1] - 1 end
  if f.account_loss then list[#list] = list[#list] - 1 end
  return list
end

-- What --moe-layer-freq says (gpt_layer_specs.py:645-665): { every = N }, every N-th layer from the first has experts, or of a Python list such as
-- "([0]*3+[1]*58)" its numbers, of which 0 is a dense layer and 1 one with experts, as far as one beyond `most`; nil: an expression of another form.
function layers.moe_pattern(text, most)
  local every = math.tointeger(tonumber(text))
  if every then return { every = every } end
  local rest, list = tostring(text):gsub("[%s()]", ""), {}
  if not ("+" .. rest):find "^[+%[%]%d,*]+$" then return nil end
  for part in (rest .. "+"):gmatch "(.-)%+" do
    local inner, times = part:match "^%[([%d,]*)%]%*?(%d*)$"
    times = inner and (times == "" and 1 or math.tointeger(tonumber(times)))
    if not times then return nil end
    for _ = 1, inner:find "%d" and times or 0 do
      for value in inner:gmatch "%d+" do list[#list + 1] = tonumber(value) end
      if #list > most then return list end
    end
  end
  return list
end

return layers
