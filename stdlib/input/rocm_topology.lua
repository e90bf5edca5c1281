-- SPDX-License-Identifier: Apache-2.0
-- rocm_topology.lua: reading `rocm-smi --showtopo`: which GPUs of a node xGMI joins. Of its three matrices the last is read, "Link Type
-- between two GPUs", whose cells are XGMI, PCIE, or 0 for the GPU itself (ROCm/rocm_smi_lib python_smi_tools/rocm_smi.py, showHwTopology).

local failure = require "pipeplan.base.failure"

local rocm_topology = {}

local HEADING = "Link Type between two GPUs"

function rocm_topology.is(text) return text:find(HEADING, 1, true) ~= nil end

local function words(line)
  local list = {}
  for word in line:gmatch "%S+" do list[#list + 1] = word end
  return list
end

-- GPUs that xGMI joins with the first of `row`'s, itself among them.
local function joined(row)
  local count = 1
  for _, cell in ipairs(row) do count = count + (cell == "XGMI" and 1 or 0) end
  return count
end

-- → as topology.read: { gpus, joined, links, cards, cards_beside, without_card, line }; joined: of the GPU that xGMI joins with fewest.
function rocm_topology.read(text, name)
  local number, inside, columns, rows, least, first_line, all = 0, false, nil, 0, math.huge, nil, {}
  for line in (text .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    if line:find(HEADING, 1, true) then inside, first_line = true, number
    elseif inside and line:find "^%s*=" then break
    elseif inside and line:find "^%s*GPU%d" then
      local cells = words((line:gsub("\27%[[%d;?]*%a", "")))
      if not columns then columns = #cells
      else
        rows = rows + 1
        if cells[1] ~= "GPU" .. rows - 1 or #cells ~= columns + 1 then
          failure.usage("%s:%d: %d cells of %s: expected %d of GPU%d", name, number, #cells - 1, cells[1], columns, rows - 1)
        end
        local row = table.move(cells, 2, #cells, 1, {})
        for i, cell in ipairs(row) do
          if (cell == "0") ~= (i == rows) or cell ~= "XGMI" and cell ~= "PCIE" and cell ~= "0" then
            failure.usage("%s:%d: %s to GPU%d is %s: expected XGMI or PCIE, and 0 to itself", name, number, cells[1], i - 1,
                          cell:sub(1, 40))
          end
        end
        least, all[rows] = math.min(least, joined(row)), row
        for i = 1, rows - 1 do   -- a link has two ends
          if all[i][rows] ~= row[i] then
            failure.usage("%s:%d: GPU%d to GPU%d is %s, and GPU%d to GPU%d %s: expected the same both ways", name, number, rows - 1, i - 1,
                          row[i], i - 1, rows - 1, all[i][rows])
          end
        end
      end
    end
  end
  if not columns or rows ~= columns then
    failure.usage("%s:%d: %d columns of GPUs, but %d rows: is the output whole?", name, first_line, columns or 0, rows)
  end
  return { gpus = rows, joined = rows == 1 and 1 or least, links = 0, cards = 0, cards_beside = 0, without_card = {}, line = first_line,
           xgmi = least > 1 }
end

return rocm_topology
