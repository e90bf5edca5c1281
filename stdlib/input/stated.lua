-- SPDX-License-Identifier: Apache-2.0
-- stated.lua: what a request's spec says, field by field as it was written, and a digest of it.

local engine = require "engine"
local fields = require "pipeplan.input.fields"
local json = require "pipeplan.base.json"

local stated = {}

local function written(at)
  if at.written ~= nil then return at.written end
  return at.value
end

-- { field, value, origin } of each, in the order of the fields' table; empty where the request was put together otherwise.
function stated.list(request)
  local list = {}
  for _, entry in ipairs(fields.list) do
    local at = request.stated and request.stated[entry.path]
    if at then list[#list + 1] = { field = entry.path, value = written(at), origin = at.origin } end
  end
  return list
end

-- The path of a file that the field names, as it can be opened from here.
local function opened(entry, at)
  if entry.type ~= "model" then return at.value end
  return at.value:sub(1, 1) == "/" and at.value or (at.base or "") .. at.value
end

-- The same without what an inventory says (found_cluster.lua), and where a file's path is one that can be opened from here: what gives the
-- same request again.
function stated.carried(request)
  local list = {}
  for _, each in ipairs(stated.list(request)) do
    local entry, at = fields.by_path[each.field], request.stated[each.field]
    if entry.type == "path" or entry.type == "paths" or entry.type == "model" and type(at.value) == "string" then
      each.value = opened(entry, at)
    end
    if not at.found then list[#list + 1] = each end
  end
  return list
end

local by_content = { path = true, paths = true, model = true }   -- what stands in a file counts, and not where the file is

-- Of all that it says, in whatever way, and of what the files hold that it names: the same digest, the same request.
function stated.digest(request)
  local parts = {}
  for _, entry in ipairs(fields.list) do
    local at = request.stated and request.stated[entry.path]
    if at and not by_content[entry.type] then parts[#parts + 1] = entry.path .. "=" .. json.encode(at.value) .. "\n" end
  end
  parts[#parts + 1] = "model " .. request.model.name .. " " .. json.encode(request.model.shape) .. "\n"
  parts[#parts + 1] = "network " .. json.encode(request.cluster.network) .. "\n"
  if request.kernels then parts[#parts + 1] = "kernels " .. json.encode(request.kernels.device) .. "\n" end
  if request.calibration then parts[#parts + 1] = "calibration " .. json.encode(request.calibration.factors) .. "\n" end
  if request.profile then parts[#parts + 1] = "profile " .. json.encode(request.profile.raw or request.profile.stages) .. "\n" end
  return engine.host.digest(table.concat(parts))
end

return stated
