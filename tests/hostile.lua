-- SPDX-License-Identifier: Apache-2.0
-- hostile.lua: runs the entries of tests/hostile/corpus and the files of tests/hostile as a user would, under limits of the operating system.

local files = require "policy_files"
local program = require "program"

local hostile = {}

local source, build = os.getenv "PIPEPLAN_SOURCE" or ".", os.getenv "PIPEPLAN_BUILD"
local sanitized = (os.getenv "PIPEPLAN_PRELOAD" or "") ~= ""

-- What no entry may take: seconds of processor (a second of deadline for ten million units of work, and some), MiB of resident memory (the
-- cap of policies, 64 MiB, beside the program's own Lua, a specification of ten megabytes, and a search).
local most_seconds, most_mebibytes = sanitized and 300 or 30, 200

-- The entries of a file of the corpus.
function hostile.entries(name) return dofile(source .. "/tests/hostile/corpus/" .. name .. ".lua") end

-- Every hostile policy of the folder: its first line says how it ends as a file.
function hostile.scripts()
  local list = {}
  for _, name in ipairs(require("engine").host.directory(source .. "/tests/hostile")) do
    if name:match "%.lua$" then list[#list + 1] = name end
  end
  table.sort(list)
  return list
end

local function holds(list, value)
  for _, one in ipairs(type(list) == "table" and list or { list }) do
    if one == value then return true end
  end
  return false
end

-- The healthy spec that policies are laid over.
local plain_spec = [[{ "cluster": { "gpus": 16, "accelerator": "H100-SXM", "network": { "per_gpu": "400Gbps" } },
  "model": { "architecture": "dense", "total": "9B", "layers": 32 }, "training": { "tokens": "2T" },
  "parallelism": { "pipeline": 4, "tensor": 1 } }]]

function hostile.plain_spec() return require("pipeplan.base.json").decode(plain_spec, "spec") end

local function quoted(path) return "'" .. path:gsub("'", "'\\''") .. "'" end

-- A policy's text, laid over the default policy and a healthy spec.
function hostile.policy_command(text)
  return "plan " .. quoted(files.write("spec.json", plain_spec)) .. " --policy " .. quoted(files.write("policy.lua", text))
end

function hostile.spec_command(entry)
  if not entry.arguments then return "plan " .. quoted(files.write("spec.json", entry[2])) end
  return (entry.arguments:gsub("SPEC", function() return quoted(files.write("spec.json", plain_spec)) end))
end

function hostile.file_command(entry)
  return (entry.command:gsub("FILE(%.?%w*)", function(ending) return quoted(files.write("file" .. ending, entry[2])) end))
end

-- Runs a command and holds what comes against the entry.
function hostile.check(entry, command)
  local report = os.tmpname()
  local result = program.run(command, nil, string.format("%s/tests/bounded %d %d %s", build, most_seconds, sanitized and 0 or 1024, report))
  local status, milliseconds, kibibytes = io.open(report):read("n", "n", "n")
  os.remove(report)
  local told = string.format("%s\nexit %s, %s ms, %s KiB\nstderr: %s\nstdout: %s", command:sub(1, 300), status, milliseconds, kibibytes,
                             result.stderr:sub(1, 1000), result.stdout:sub(1, 300))
  assert(status ~= nil, told)
  assert(holds(entry.status, status), told .. "\nexpected exit " .. (type(entry.status) == "table" and table.concat(entry.status, " or ") or entry.status))
  assert(status < 2 or result.stdout == "", "something stands on standard output\n" .. told)
  if status > 0 or entry.on then
    local where = entry.on == "stdout" and result.stdout or entry.on == "either" and result.stdout .. result.stderr
                  or status == 1 and result.stdout .. result.stderr or result.stderr
    assert(where:find(entry.says or "", 1, true), told .. "\nexpected to read: " .. tostring(entry.says))
  end
  assert(not (result.stderr .. result.stdout):find "[\0-\8\11-\31\127]", "a control character is shown\n" .. told)
  assert(utf8.len(result.stderr) and utf8.len(result.stdout), "what is shown is no UTF-8\n" .. told)
  if not sanitized then assert(kibibytes <= most_mebibytes * 1024, "more memory than " .. most_mebibytes .. " MiB\n" .. told) end
end

return hostile
