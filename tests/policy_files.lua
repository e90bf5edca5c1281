-- SPDX-License-Identifier: Apache-2.0
-- policy_files.lua: policy files for a test, in a directory that is removed when the tests of the file are done.

local files = {}

-- For policies that are asked at the edges of all their rules: most of the default policy's are gone, for each edge is planned.
files.few_rules = [[
for _, id in ipairs { "dualpipe_without_ep", "too_deep", "odd_microbatches", "fits_one_gpu", "too_few_microbatches", "dualpipe_odd_depth",
                      "dualpipe_virtual", "dualpipe_tied_embeddings", "slow_interconnect", "no_alltoall_kernel", "short_run",
                      "few_microbatches", "many_microbatches", "host_memory_short", "pipeline_avoidable" } do
  disable { id = id, reason = "a test is about other edges" }
end
]]

local directories = {}

local function new_directory()
  local name = os.tmpname()
  os.remove(name)
  assert(os.execute("mkdir '" .. name .. "'"))
  directories[#directories + 1] = name
  return name
end

-- Writes a file in a directory of its own and returns its path.
function files.write(name, text, directory)
  local path = (directory or new_directory()) .. "/" .. name
  local handle = assert(io.open(path, "wb"))
  handle:write(text)
  handle:close()
  return path
end

-- A directory with those files: name → text.
function files.directory(texts)
  local directory = new_directory()
  for name, text in pairs(texts) do files.write(name, text, directory) end
  return directory
end

function files.remove()
  for _, name in ipairs(directories) do os.execute("rm -r '" .. name .. "'") end
  directories = {}
end

return files
