-- SPDX-License-Identifier: Apache-2.0
-- Damaged specs: whatever stands in a field, the answer is a request or one clear line, never a bug (exit 70).

require "pipeplan"
local failure = require "pipeplan.base.failure"
local fields = require "pipeplan.input.fields"
local json = require "pipeplan.base.json"
local spec = require "pipeplan.input.spec"

-- Values that have broken readers: wrong types, edges of numbers, text that looks like numbers, control characters.
local junk = {
  0, 1, -1, 2, 3, 7, 8, 64, 0.5, 1e308, -1e308, 2 ^ 53, 2 ^ 31, math.maxinteger, math.mininteger, 0 / 0, math.huge, -math.huge,
  "", " ", "0", "1", "8", "-1", "1e400", "0x10", "1T", "80GiB", "400Gbps", "8%", "10us", "ten", "%s%d%", "\0", "\27[31m", "a\nb",
  "none", "full", "1,2", "0:8", "0:8,1B:16", "../", string.rep("9", 400), string.rep("x", 10000), true, false, json.null,
  {}, { 1 }, { 0 }, { 0, 1 }, { { 0, 8 } }, { { 0, 8 }, { 1, 16 } }, { { {} } }, { "norm" }, { "x" }, { x = 1 }, { [3] = 1 },
  { layers = 4, hidden = 64, heads = 4, vocab = 100, ffn = 128 }, { architecture = "moe", total = "671B", active = "37B", layers = 61 },
}

local function base()
  return {
    cluster = { gpus = 64, accelerator = "H100-SXM", network = { per_gpu = "400Gbps" } },
    model = { layers = 32, hidden = 4096, heads = 32, kv_heads = 32, ffn = 11008, vocab = 32000 },
    training = { tokens = "2T", global_batch_size = 1024 }, parallelism = {},
  }
end

local function set(object, path, value)
  local group = object
  for part in path:gmatch("([^.]+)%.") do
    if type(group[part]) ~= "table" then group[part] = {} end
    group = group[part]
  end
  group[path:match("[^.]+$")] = value
end

local function answers(object, what)
  local good, problem = pcall(spec.from_table, object)
  if good then return end
  assert.is_true(failure.is(problem), what .. ": " .. tostring(problem))
  assert.equal(failure.status.usage, problem.status)
  assert.is_nil(problem.message:find("[%c\127]"), what .. ": " .. problem.message)
  assert.is_true(#problem.message < 600, what .. ": " .. problem.message)
end

it("gives each field each kind of junk", function()
  for _, entry in ipairs(fields.list) do
    for i, value in ipairs(junk) do
      local object = base()
      set(object, entry.path, value)
      answers(object, entry.path .. " junk " .. i)
    end
  end
end)

it("gives each group and the whole spec each kind of junk", function()
  for i, value in ipairs(junk) do
    for _, path in ipairs { "cluster", "cluster.network", "training", "parallelism", "model.layers", "model.hidden", "model.experts", "model.name" } do
      local object = base()
      set(object, path, value)
      answers(object, path .. " junk " .. i)
    end
    answers(value, "spec junk " .. i)
  end
end)

it("gives each group each kind of key", function()
  for _, key in ipairs { "", " ", "\0", "\27[31m", "%s", "1", "__index", string.rep("k", 100000), 1, 1.5, true } do
    for _, group in ipairs { "cluster", "cluster.network", "model", "training", "parallelism", "x" } do
      local object = base()
      set(object, group .. ".y", nil)
      local at = object
      for part in group:gmatch("[^.]+") do at = at[part] end
      at[key] = 1
      answers(object, group .. " key " .. tostring(key):sub(1, 10))
    end
  end
end)

it("gives pairs of fields junk that is legal alone", function()
  -- a fixed sequence (Numerical Recipes' linear congruence), so that a failure repeats
  local state = 1
  local function draw(n)
    state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
    return (state >> 8) % n + 1
  end
  for round = 1, 3000 do
    local object = base()
    for _ = 1, draw(4) do set(object, fields.list[draw(#fields.list)].path, junk[draw(#junk)]) end
    answers(object, "round " .. round)
  end
end)
