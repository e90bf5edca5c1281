-- SPDX-License-Identifier: Apache-2.0
-- Sources that lead somewhere: each fact of the catalogue, each rule of the default policy and each explained figure says where it is from,
-- with a link, a file of this tree, or the word that it is assumed.

local pipeplan = require "pipeplan"
local planning = require "planning"

local source = os.getenv "PIPEPLAN_SOURCE"

local catalogues = { "accelerators", "accuracy", "families", "frameworks", "hosts", "kernels", "links", "overheads", "schedules" }

-- Calls visit(path, key, text) for every text in a table, whatever its depth.
local function each_text(value, visit, path, seen)
  seen = seen or {}
  if seen[value] then return end
  seen[value] = true
  for key, inner in pairs(value) do
    local where = path .. "." .. tostring(type(inner) == "table" and inner.name or key)
    if type(inner) == "string" then visit(where, key, inner)
    elseif type(inner) == "table" then each_text(inner, visit, where, seen) end
  end
end

local function exists(path)
  local file <close> = io.open(source .. "/" .. path, "rb")
  return file ~= nil
end

-- A link, or that it is assumed, or a place in this tree where it was measured.
local function leads_somewhere(text)
  local measured = text:match "measured here: (tests/[%w/_.-]*[%w_])"
  return text:find "https://%w[%w.-]+/?%S" or text:find "^assumed" or text:find "; assumed" or (measured and exists(measured))
end

-- What names a paper, an issue or a pull request by a number that stands in no link, or by numbers of our own.
local function leads_nowhere(text)
  local plain = text:gsub("https://[^%s,;)]+", ""):gsub("issues/%d+", ""):gsub("pull/%d+", "")
  return plain:match "%f[%d]%d%d%d%d%.%d%d%d%d%d%f[%D]" or plain:match "#%d+" or plain:match "%f[%a]PR %d+" or plain:match "[Rr]equest %d+"
    or plain:match "arXiv" or plain:match "%f[%w]R%d%d?%f[%W]" or plain:match "[Rr]uling %d+"
end

describe("a source", function()
  for _, name in ipairs(catalogues) do
    local catalogue = require("pipeplan.catalog." .. name)

    it("leads somewhere: " .. name, function()
      local sources = 0
      each_text(catalogue, function(path, key, text)
        if key == "source" then
          sources = sources + 1
          assert.is_truthy(leads_somewhere(text), path .. ": " .. text)
        end
        assert.is_nil(leads_nowhere(text), path .. ": " .. text)
      end, name)
      assert.is_true(sources > 0 or name == "families")
    end)
  end

  it("leads somewhere: the default policy", function()
    local policy = pipeplan.policy().policy
    for _, id in ipairs(policy.names) do
      local rule = policy.rules[id]
      for _, key in ipairs { "source", "why", "message" } do
        assert.is_nil(rule and rule[key] and leads_nowhere(rule[key]), id)
      end
    end
    for id, rule in pairs(policy.rules) do assert.is_truthy(not rule.source or leads_somewhere(rule.source), id) end
  end)

  it("leads somewhere: each figure that a plan explains", function()
    local figures = {}
    for _, spec in ipairs { planning.deepseek, planning.llama, planning.mixtral } do
      for _, changes in ipairs { {}, { training = { optimizer_offload = 1 }, cluster = { storage = "1TB/s", price_per_gpu_hour = 2 } } } do
        local request = require("pipeplan.input.spec").from_table(planning.merge(spec, changes), ".")
        local plan = require("pipeplan.plan.init").plan { request = request, policy = planning.policy.policy, explain = true }
        assert.equal("planned", plan.status)
        for _, entry in ipairs(plan.explanation.figures) do figures[entry.figure] = entry.source end
      end
    end
    local count = 0
    for figure, text in pairs(figures) do
      count = count + 1
      assert.is_nil(leads_nowhere(text), figure .. ": " .. text)
      local files, here = 0, true
      for path in text:gsub("https://[^%s;]+", ""):gmatch "%f[%w]%l+/[%w/_]+%.[%w_]+" do
        if path:find "^engine/" or path:find "^stdlib/" or path:find "^tests/" then files, here = files + 1, here and exists(path) end
      end
      assert.is_true(here, figure .. ": " .. text)
      local given = text:find "the spec" or text:find "assumed" or text:find "^policy parameter" or text:find "figures above"
        or text:find "^as step" or text:find "^the rollback trigger" or text:find "^pipeplan simulate"
      assert.is_truthy(files > 0 or given or leads_somewhere(text), figure .. ": " .. text)
    end
    assert.is_true(count > 30, count)
  end)
end)
