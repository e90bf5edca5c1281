-- SPDX-License-Identifier: Apache-2.0
-- rows.lua: what the sources of the oracle table (table.lua) return: lists of rows.
--
-- A row compares one published or measured figure with ours:
--   source, case, quantity   where it comes from, what it is about, what is compared, with its unit
--   group                    which of the source's summaries it belongs to; absent: the source has one
--   published, ours          numbers; for verdicts what happened and what we say, in words
--   error                    ours / published − 1; absent for verdicts and limits
--   band                     the largest |error| that the source's figures may show; absent for verdicts and limits
--   ok                       inside the band, not beyond the limit, or the right verdict
--   ran                      verdicts: did the plan run? false: it ran out of memory
--   excused                  why we do not claim this row: printed with it, and not counted as a failure
-- A list may have `skipped`: why it has no rows here.

local rows = {}

function rows.number(source, case, quantity, published, ours, band, excused)
  local error = ours / published - 1
  return { source = source, case = case, quantity = quantity, published = published, ours = ours, error = error, band = band,
           ok = math.abs(error) <= band, excused = excused }
end

-- A figure that must stay at or below `most`.
function rows.limit(source, case, quantity, most, ours)
  return { source = source, case = case, quantity = quantity, published = string.format("at most %.4g", most), ours = ours,
           ok = ours <= most }
end

-- A figure that must lie between two, published as a range.
function rows.range(source, case, quantity, low, high, ours)
  return { source = source, case = case, quantity = quantity, published = string.format("%.4g to %.4g", low, high), ours = ours,
           ok = low <= ours and ours <= high }
end

-- fits: is our verdict that it fits (or fits tightly)? words: our verdict with its bytes.
function rows.verdict(source, case, ran, fits, words, excused)
  return { source = source, case = case, quantity = "fits", published = ran and "ran" or "out of memory", ours = words, ran = ran,
           ok = fits == ran, excused = excused }
end

-- The same row, of a group.
function rows.of(group, row)
  row.group = group
  return row
end

-- Where foreign data lie; nil and why not.
function rows.data(file)
  local folder = os.getenv "PIPEPLAN_DATA"
  if not folder then return nil, "PIPEPLAN_DATA names no folder with " .. file end
  local handle = io.open(folder .. "/" .. file, "rb")
  if not handle then return nil, folder .. "/" .. file .. " cannot be read" end
  handle:close()
  return folder .. "/" .. file
end

return rows
