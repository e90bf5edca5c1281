-- SPDX-License-Identifier: Apache-2.0
-- prometheus.lua: Prometheus text as dcgm-exporter serves it (NVIDIA/dcgm-exporter, port 9400), one scrape or many after each other:
--
--   DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu="3",UUID="GPU-0a1b",device="nvidia3",hostname="node17"} 0.412733
--
-- Labels come in any order, and more of them (Kubernetes, driver version). The host's label is Hostname, since May 2026 hostname. A slice
-- of a GPU has GPU_I_ID. Where pods share a GPU in turn its value stands once for each of them: it is averaged, never summed.

local counters = require "pipeplan.input.metrics.counters"

local prometheus = { name = "prometheus", title = "DCGM Prometheus text" }

-- { label = value } of what stands between the braces; nil when it is torn.
local function labels_of(text)
  local labels, at = {}, 1
  while at <= #text do
    local name, after = text:match('^[%s,]*([%a_][%w_]*)="()', at)
    if not name then return text:find("^[%s,]*$", at) and labels or nil end
    local from = after
    while true do  -- to the quote that no backslash stands before
      local stop = text:find('["\\]', after)
      if not stop then return nil end
      if text:sub(stop, stop) == '"' then
        labels[name], at = text:sub(from, stop - 1), stop + 1
        break
      end
      after = stop + 2
    end
  end
  return labels
end

function prometheus.line(line, sink)
  if line:sub(1, 8) ~= "DCGM_FI_" then return line:find "^# %u+ DCGM_FI_" ~= nil end
  local field, inside, value = line:match "^([%u%d_]+)(%b{})%s+(%S+)"
  if not field then field, value = line:match "^([%u%d_]+)%s+(%S+)" end
  local entry = counters.by_field[field or ""]
  if not entry then return field ~= nil end
  local labels = labels_of(inside and inside:sub(2, -2) or "")
  local number = tonumber((value:gsub("^%+", "")))   -- sentinels are larger than what other logs may hold
  if not labels or not number then
    if labels and value:lower():find "^[-+]?nan$" then sink.missing() else sink.unreadable() end
    return true
  end
  local fraction, why = counters.fraction(entry, number)
  if not fraction then
    sink[why]()
    return true
  end
  sink.counter(entry.name, { host = labels.hostname or labels.Hostname, gpu = labels.gpu or labels.UUID or labels.device or "?",
                             slice = labels.GPU_I_ID ~= "" and labels.GPU_I_ID or nil }, fraction)
  return true
end

return prometheus
