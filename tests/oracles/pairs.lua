-- SPDX-License-Identifier: Apache-2.0
-- pairs.lua: errors of comparisons: of two runs that differ in one thing, how far the ratio of our seconds is from the ratio of the
-- measured
-- ones. What kernels reach cancels in it, what is missing of one and not of the other does not. stdlib/catalog/accuracy.lua has what comes
-- out, and plans print it.
--
--   schedule  the same layout under another schedule: our own runs, from their profiles (time_runs), and published ratios (time_cases)
--   layout    another layout of one job on the same GPUs: the sweeps (order.lua), rows that ran
--   pipeline  of these, one without a pipeline and one with
--   overlap   the all-to-all hidden and not (time_cases)

local pairs_of = {}

-- { low, middle, nine of ten } of |errors|, and how many of those with 5 % or more between the measured are in the wrong order.
function pairs_of.summary(list)
  local errors, apart, wrong = {}, 0, 0
  for i, pair in ipairs(list) do
    errors[i] = math.abs(pair.ours / pair.measured - 1)
    if math.abs(math.log(pair.measured)) >= math.log(1.05) then
      apart = apart + 1
      wrong = wrong + ((pair.ours - 1) * (pair.measured - 1) <= 0 and 1 or 0)
    end
  end
  table.sort(errors)
  local n = #errors
  return { count = n, median = errors[(n + 1) // 2], most = errors[math.max(1, (9 * n + 9) // 10)], apart = apart, wrong = wrong }
end

local function add(list, a, b, measured, ours)
  if a[measured] > b[measured] then a, b = b, a end
  list[#list + 1] = { measured = b[measured] / a[measured], ours = b[ours] / a[ours] }
end

function pairs_of.schedules()
  local list, all = {}, require("oracles.measured_runs").load()
  for _, steps in ipairs { all.open, all.by_card } do
    for i, a in ipairs(steps) do
      for j = i + 1, #steps do
        if steps[j].M == a.M then add(list, a, steps[j], "measured", "predicted") end
      end
    end
  end
  for _, row in ipairs(require "oracles.time_cases") do
    if row.group == "ratios" and row.error and not row.excused then list[#list + 1] = { measured = row.published, ours = row.ours } end
  end
  return list
end

-- judged: groups as order.judge leaves them → all pairs, and those with and without a pipeline.
function pairs_of.layouts(judged)
  local all, piped = {}, {}
  for _, group in ipairs(judged) do
    for i, a in ipairs(group.list) do
      for j = i + 1, #group.list do
        local b = group.list[j]
        if a.measured and b.measured then
          add(all, a, b, "measured", "seconds")
          if (a.row.pp == "1") ~= (b.row.pp == "1") then add(piped, a, b, "measured", "seconds") end
        end
      end
    end
  end
  return all, piped
end

function pairs_of.overlaps()
  local list, by_kernel = {}, {}
  for _, row in ipairs(require "oracles.time_cases") do
    local kernel = row.group == "overlap and recompute" and row.case:match "16 H100: ([%w_]+)"
    if kernel then
      local on = row.case:find "overlapped" and "on" or "off"
      by_kernel[kernel] = by_kernel[kernel] or {}
      by_kernel[kernel][on] = row
    end
  end
  for _, kernel in ipairs { "nccl_alltoall", "hybrid_ep" } do
    local one = by_kernel[kernel]
    list[#list + 1] = { measured = one.off.published / one.on.published, ours = one.off.ours / one.on.ours }
  end
  return list
end

return pairs_of
