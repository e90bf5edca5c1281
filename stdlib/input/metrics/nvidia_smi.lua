-- SPDX-License-Identifier: Apache-2.0
-- nvidia-smi's CSV (nvidia-smi --query-gpu=… --format=csv[,noheader][,nounits]):
--
--   timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W]
--   2026/11/27 10:15:02.412, 0, 97 %, 71234 MiB, 655.10 W
--
-- Of it utilization.gpu is read: the share of the last sample period in which any kernel ran (NVML, nvmlUtilization_t). What cannot be
-- measured reads [N/A], [Not Supported] or [Unknown Error]. Without a header --columns says what the columns are; a single cell with a
-- percent sign needs no names.

local numbers = require "pipeplan.input.metrics.numbers"
local text_of = require "pipeplan.base.text"

local nvidia_smi = { name = "nvidia-smi", title = "nvidia-smi CSV" }

local identities = { "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "index" }   -- the last that is there names the GPU

-- Columns by name: { count =, value =, gpu = }; nil where utilization.gpu is none of them.
local function columns_of(names)
  local columns, at = { count = #names }, {}
  for i, name in ipairs(names) do at[name:match "^([%w_.]+)"  or ""] = i end
  for _, name in ipairs(identities) do columns.gpu = at[name] or columns.gpu end
  columns.value = at["utilization.gpu"]
  return columns
end

local families = { utilization = true, memory = true, power = true, temperature = true, clocks = true }

-- Names of fields in all cells, one of them of a known family: "utilization.gpu [%]".
local function is_header(cells)
  local known = false
  for _, cell in ipairs(cells) do
    if not cell:find "^%l[%w_.]*$" and not cell:find "^%l[%w_.]* %[[%w%%]+%]$" then return false end
    known = known or families[cell:match "^(%l+)%." or ""] == true
  end
  return known
end

-- A row without a header: does it look like one, and which is its only cell with a percent sign?
local function guessed_columns(cells)
  local columns = { count = #cells }
  for i, cell in ipairs(cells) do
    if cell:find "^%d+ %%$" then
      if columns.value then return nil end
      columns.value = i
    elseif not (cell:find "^%-?[%d.]+$" or cell:find "^%-?[%d.]+ %a+$" or cell:find "^%[.*%]$" or cell:find "^%d+/%d+/%d+ [%d:.]+$"
                or cell:find "^GPU%-%x" or cell:find "^%x+:%x+:%x+%.%x$") then
      return nil
    end
    if cell:find "^%d+$" and not columns.gpu then columns.gpu = i end
  end
  return columns.value and columns
end

-- A reader of one file: it remembers the header. names: of --columns, or nil.
function nvidia_smi.new(sink, names)
  local columns = names and columns_of(names)
  return function(line)
    if #line > 4096 or not line:find(",", 1, true) then return false end   -- no row is as long
    local cells = text_of.parts(line)
    if is_header(cells) then
      columns = columns_of(cells)
      return columns.value ~= nil
    end
    local here = columns or guessed_columns(cells)
    if not here or not here.value or #cells ~= here.count then return false end
    local cell = cells[here.value]
    local percent = numbers.read(cell:match "^([%d.]+) ?%%?$")
    if percent and percent <= 100 then
      sink.counter("gpu_utilisation", { gpu = here.gpu and cells[here.gpu] or "?" }, percent / 100)
      return true
    elseif cell:find "^%[?%a" then
      sink.missing()
      return true
    end
    if columns then sink.unreadable() end
    return false
  end
end

return nvidia_smi
