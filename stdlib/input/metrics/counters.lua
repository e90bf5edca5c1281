-- SPDX-License-Identifier: Apache-2.0
-- counters.lua: what tools call those counters of a GPU that are about how busy it is, and in what unit they print them.
--
-- Sources: NVIDIA/DCGM dcgmlib/dcgm_fields.h (names, units; from 4.6 on new names, the old ones stay as aliases; DEV_GPU_UTIL_RATIO is an
-- integer percent in spite of its name), dcgm_structs.h (values that mean "no value"), dcgmi's dmon headings.

local counters = {}

-- Canonical name, DCGM's old and new field, dmon's heading, and what it is printed as: 100 in percent, 1 as a ratio.
local list = {
  { "gpu_utilisation", "DEV_GPU_UTIL", "DEV_GPU_UTIL_RATIO", "GPUTL", 100 },
  { "gr_engine_active", "PROF_GR_ENGINE_ACTIVE", "PROF_GR_ENGINE_UTIL_RATIO", "GRACT", 1 },
  { "sm_active", "PROF_SM_ACTIVE", "PROF_SM_UTIL_RATIO", "SMACT", 1 },
  { "tensor_active", "PROF_PIPE_TENSOR_ACTIVE", "PROF_TENSOR_UTIL_RATIO", "TENSO", 1 },
}

-- Fields and headings → { name =, whole = }.
counters.by_field, counters.by_heading = {}, {}
for _, row in ipairs(list) do
  local entry = { name = row[1], whole = row[5] }
  counters.by_field["DCGM_FI_" .. row[2]], counters.by_field["DCGM_FI_" .. row[3]] = entry, entry
  counters.by_heading[row[4]] = entry
end

-- DCGM's blanks are numbers: int32 from 2147483632 on, as a float from 140737488355328 on, int64 from 9223372036854775792 on.
local blank = 2147483632

-- A printed number as a fraction; or nil and "missing" (a blank) or "unreadable" (out of its range).
function counters.fraction(entry, number)
  if number >= blank then return nil, "missing" end
  if number < 0 or number > entry.whole * 1.001 then return nil, "unreadable" end   -- ratios are rounded
  return math.min(number / entry.whole, 1)
end

return counters
