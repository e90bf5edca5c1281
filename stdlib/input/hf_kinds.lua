-- SPDX-License-Identifier: Apache-2.0
-- hf_kinds.lua: layers of several kinds in one config.json: from what each layer has of its own to the `kinds` of a shape.

local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"

local kinds = {}

-- What the engine has room for, beside the layers that the shape itself tells.
local MOST = 11

--[[
own(i): what layer i (from 1) has of its own, a table of fields of a shape, or nil. Layers with equal tables are of one kind, dense ones and
those with experts apart. `beside` in it: the fields of what each of these layers holds too, a kind that comes behind the others. Fills
shape.kinds.
]]
function kinds.fill(self, shape, own, is_dense)
  local list, place = {}, {}
  for i = 1, shape.layers do
    local fields = own(i)
    if fields then
      local name = json.encode(fields) .. (is_dense(i) and " dense" or " moe")
      if not place[name] then
        list[#list + 1] = lists.with(fields, { layers = {} })
        place[name] = list[#list]
      end
      table.insert(place[name].layers, i)
    end
  end
  for i = 1, #list do
    local beside = list[i].beside
    local name = beside and json.encode(beside) .. " beside"
    if name and not place[name] then
      list[#list + 1] = beside
      place[name] = #list
    end
    list[i].beside = name and place[name]
  end
  if #list > MOST then self:refuse(string.format("layers of %d kinds, more than %d,", #list, MOST)) end
  if #list > 0 then shape.kinds = list end
end

return kinds
