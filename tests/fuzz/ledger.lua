-- SPDX-License-Identifier: Apache-2.0
-- ledger.lua: how long each reader was fuzzed, and what came of it: the table of docs/withstanding.md, which tests/fuzz/run keeps.
--   ledger.lua add READER SECONDS INPUTS FEATURES FOUND   adds a run to the reader's row; FOUND: yes or no
--   ledger.lua poorest SECONDS READER…   prints the reader with the least processor time; exit 1 where each has SECONDS

local page = (arg[0]:match "^(.*)/tests/fuzz/" or ".") .. "/docs/withstanding.md"
local begin, stop = "<!-- fuzzed -->\n", "<!-- end -->"
local head = "| reader | processor seconds | inputs | features | ended with a finding | last |\n| --- | --- | --- | --- | --- | --- |\n"

local function read()
  local file = assert(io.open(page))
  local text = file:read "a"
  file:close()
  local first, last = select(2, text:find(begin, 1, true)), (text:find(stop, select(2, text:find(begin, 1, true)), true))
  local rows = {}
  for reader, seconds, inputs, features, findings, day in text:sub(first + 1, last - 1):gmatch
    "| `([%w_]+)` | (%d+) | (%d+) | (%d+) | (%d+) | ([%d-]+) |" do
    rows[reader] = { seconds = tonumber(seconds), inputs = tonumber(inputs), features = tonumber(features), findings = tonumber(findings), day = day }
  end
  return rows, text:sub(1, first), text:sub(last)
end

local commands = {}

function commands.add(reader, seconds, inputs, features, found)
  local rows, before, after = read()
  local row = rows[reader] or { seconds = 0, inputs = 0, features = 0, findings = 0 }
  rows[reader] = row
  row.seconds, row.inputs = row.seconds + math.tointeger(tonumber(seconds)), row.inputs + tonumber(inputs)
  row.features = math.max(row.features, tonumber(features) or 0)
  row.findings, row.day = row.findings + (found == "yes" and 1 or 0), os.date "!%Y-%m-%d"
  local names, lines = {}, {}
  for name in pairs(rows) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    local of = rows[name]
    lines[i] = string.format("| `%s` | %d | %d | %d | %d | %s |\n", name, of.seconds, of.inputs, of.features, of.findings, of.day)
  end
  local file = assert(io.open(page .. ".new", "w"))
  file:write(before, head, table.concat(lines), after)
  file:close()
  assert(os.rename(page .. ".new", page))
end

function commands.poorest(target, ...)
  local rows, poorest, least = read(), nil, tonumber(target)
  for _, reader in ipairs { ... } do
    local seconds = rows[reader] and rows[reader].seconds or 0
    if seconds < least then poorest, least = reader, seconds end
  end
  if not poorest then os.exit(1) end
  print(poorest)
end

commands[arg[1]](table.unpack(arg, 2))
