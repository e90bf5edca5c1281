-- rows.lua: what the sources of the oracle table (table.lua) return: lists of rows.
--
-- A row compares one published or measured figure with ours:
--   source, case, quantity   where it comes from, what it is about, what is compared, with its unit
--   published, ours          numbers; for verdicts what happened and what we say, in words
--   error                    ours / published − 1; absent for verdicts
--   band                     the largest |error| that the source's figures may show; absent for verdicts
--   ok                       inside the band, or the right verdict
--   ran                      verdicts: did the plan run? false: it ran out of memory
--   excused                  why we do not claim this row: printed with it, and not counted as a failure
-- A list may have `skipped`: why it has no rows here.

local rows = {}

function rows.number(source, case, quantity, published, ours, band, excused)
  local error = ours / published - 1
  return { source = source, case = case, quantity = quantity, published = published, ours = ours, error = error, band = band,
           ok = math.abs(error) <= band, excused = excused }
end

-- fits: is our verdict that it fits (or fits tightly)? words: our verdict with its bytes.
function rows.verdict(source, case, ran, fits, words, excused)
  return { source = source, case = case, quantity = "fits", published = ran and "ran" or "out of memory", ours = words, ran = ran,
           ok = fits == ran, excused = excused }
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
