-- SPDX-License-Identifier: Apache-2.0
-- One concept, one name: stdlib/names.lua against specs, options, fields and the plan's schema; old names; and how prose spells.

require "pipeplan"  -- before the path below, on which its own definitions lie
package.path = "stdlib/meta/?.lua;stdlib/meta/?/init.lua;" .. package.path

local engine = require "engine"
local failure = require "pipeplan.base.failure"
local fields = require "pipeplan.input.fields"
local names = require "pipeplan.names"
local planning = require "planning"
local program = require "program"
local schema = require "pipeplan.schema.plan"
local vocabulary = require "pipeplan.vocabulary"

local source = os.getenv "PIPEPLAN_SOURCE"

local function read(path)
  local file <close> = assert(io.open(source .. "/" .. path, "rb"))
  return file:read "a"
end

-- The property of a schema behind references, lists and "or null".
local function inside(property)
  if property["$ref"] then return inside(schema["$defs"][property["$ref"]:match "[^/]+$"]) end
  if property.items then return inside(property.items) end
  return property.anyOf and inside(property.anyOf[1]) or property
end

-- The property at a path of the plan, or nil.
local function property(path)
  local at = schema
  for key in path:gmatch "[^.]+" do
    at = inside(at).properties and inside(at).properties[key]
    if not at then return nil end
  end
  return at
end

describe("the table of names", function()
  it("has every field of a spec and every field of a rule once, and no other", function()
    local seen = { spec = {}, field = {} }
    for _, entry in ipairs(names.concepts) do
      for kind, list in pairs(seen) do
        local name = entry[kind]
        assert.is_nil(name and list[name], name)
        if name then list[name] = true end
      end
    end
    for _, entry in ipairs(fields.list) do
      assert.is_true(seen.spec[entry.path], entry.path .. " has no line in stdlib/names.lua")
      seen.spec[entry.path] = nil
    end
    local shape = { ["model.architecture"] = true, ["model.total"] = true, ["model.active"] = true }
    for _, name in ipairs(engine.model.fields) do shape["model." .. name] = true end
    for path in pairs(seen.spec) do assert.is_true(shape[path], path .. " is no field of a spec") end
    for _, name in ipairs(vocabulary.names) do
      assert.is_true(seen.field[name], name .. " has no line in stdlib/names.lua")
      seen.field[name] = nil
    end
    assert.same({}, seen.field)
  end)

  it("names only what the plan's schema has", function()
    for _, entry in ipairs(names.concepts) do
      for _, path in ipairs(entry.plan) do assert.is_truthy(property(path), path) end
    end
  end)

  it("lacks nothing that the plan calls as a spec or a rule does", function()
    local known = {}
    for _, entry in ipairs(names.concepts) do
      for _, path in ipairs(entry.plan) do known[path] = true end
    end
    local function look(prefix, properties)
      for key in pairs(properties) do
        local path = prefix .. key
        local same = vocabulary.by_name[key] or fields.by_name[key]
        if same and not property(path).properties and not inside(property(path)).properties then
          assert.is_true(known[path], path .. " is missing in stdlib/names.lua")
        end
      end
    end
    look("", schema.properties)
    for _, group in ipairs { "cluster", "model", "training", "parallelism" } do look(group .. ".", inside(property(group)).properties) end
  end)

  it("differs between places only as docs/design.md says: by the object, by the unit, or in an inline model", function()
    for _, entry in ipairs(names.concepts) do
      local spec, field = entry.spec, entry.field
      local last = spec and field and spec:match "[^.]+$"
      if last and last ~= field then
        local by_object = spec == "parallelism." .. last and field == last .. "_parallel"
          or spec == "cluster.network." .. last and field == "network_" .. last
        local by_unit = field:find "_bytes$"
        local inline = spec == "model." .. last and field == last .. "_parameters"
        assert.is_truthy(by_object or by_unit or inline, spec .. " and " .. field)
      end
    end
  end)

  it("stands in docs/design.md", function()
    local page = read "docs/design.md"
    assert.is_true(require "generate.names"(page) == page, "docs/design.md is stale: run scripts/generate-meta")
  end)

  it("has the options that plan --help shows", function()
    local help = program.run("plan --help").stdout
    for _, entry in ipairs(names.concepts) do
      local option = entry.spec and not entry.spec:find "^model%." and "--" .. entry.spec:match "[^.]+$"
      if option then assert.matches("\n +" .. option:gsub("%-", "%%-") .. " ", help) end
    end
  end)
end)

describe("prose", function()
  -- Every text of ours that people read: pages, policies and examples, Lua with its messages, C with its comments.
  local function texts()
    local list = {}
    local find = "cd '%s' && find README.md docs policies stdlib engine examples scripts tests -type f \\( -name '*.md' -o -name '*.lua' "
      .. "-o -name '*.[ch]' -o -name '*.py' -o -name '*.sh' \\) ! -path 'tests/data/*' | sort"
    local handle <close> = io.popen(find:format(source))
    for path in handle:lines() do list[path] = read(path) end
    return list
  end

  it("writes microbatch in one word; only trainers' own keys have a hyphen", function()
    for path, text in pairs(texts()) do
      local at = text:gsub("micro%-batch%-size", ""):gsub("micro_batch", "")
      if path ~= "tests/lua/names_spec.lua" and path ~= "tests/oracles/vtrain.lua" then  -- whose column is called so
        local from, to = at:lower():find "micro[%- ]batch"
        assert.is_nil(from and at:sub(from, to + 40), path)
      end
    end
  end)

  it("calls a machine with its GPUs a node, and a host only its processors and their memory", function()
    local before = { a = true, one = true, two = true, each = true, per = true, many = true, more = true, whole = true, between = true,
                     across = true, inside = true, usual = true, divide = true }
    for path, text in pairs(texts()) do
      if path:find "^README" or path:find "^docs" or path:find "^policies" or path:find "^stdlib" or path:find "^examples/sites" then
        for line in text:gmatch "[^\n]+" do
          for word, after in line:gmatch "(%a+) hosts?%f[^%w_](.?.?.?.?)" do
            local good = after == " mem" or after == " bri"  -- host memory; host bridges, of PCIe
            assert.is_true(good or not before[word], path .. ": " .. line)
          end
        end
      end
    end
  end)
end)

describe("a name of another place", function()
  it("is answered in a spec with the spec's", function()
    local function problem(changes) return planning.problem(planning.llama, changes).message end
    assert.equal("spec: parallelism.pipeline_parallel is no field of a spec; a spec says parallelism.pipeline",
                 problem { parallelism = { pipeline_parallel = 8 } })
    assert.equal("spec: cluster.device_bytes is no field of a spec; a spec says cluster.memory_per_gpu",
                 problem { cluster = { device_bytes = 1 } })
    assert.matches("model has no field 'total_parameters'; a spec says model.total",
                   problem { model = { total_parameters = 7e9, layers = 32 } }, 1, true)
  end)

  it("is answered on the command line with the option", function()
    local function problem(option) return program.run("plan " .. option).stderr end
    assert.equal("pipeplan: plan: unknown option '--pipeline-parallel'; the option is --pipeline\n", problem "--pipeline-parallel 8")
    assert.equal("pipeplan: plan: unknown option '--device_bytes'; the option is --memory_per_gpu\n", problem "--device_bytes 80GB")
    assert.equal("pipeplan: plan: unknown option '--total_parameters'\n", problem "--total_parameters 7B")  -- an inline model has none
  end)

  it("is answered in a rule with the rule's", function()
    local function problem(condition)
      local good, answer = failure.try(planning.policy_of, "warn { id = 'x', " .. condition .. ", message = 'm' }\n")
      assert.is_false(good)
      return answer.message
    end
    assert.matches("no field or property 'pipeline'; a rule says pipeline_parallel", problem "pipeline = 8", 1, true)
    assert.matches("no field or property 'cluster.network.per_gpu'; a rule says network_per_gpu",
                   problem "['cluster.network.per_gpu'] = '400Gbps'", 1, true)
  end)
end)

describe("a field's old name", function()
  local old = {}
  for name in pairs(vocabulary.renamed) do old[#old + 1] = name end
  table.sort(old)

  local function renamed(warnings)
    local list = {}
    for _, warning in ipairs(warnings) do
      if warning.id == "renamed" then list[#list + 1] = warning.message:match "site.lua:.*" end
    end
    return list
  end

  for _, name in ipairs(old) do
    local entry = vocabulary.renamed[name]

    it("means the new one, with a warning: " .. name, function()
      local policy = planning.policy_of(string.format("-- %s\nwarn { id = 'x', %s = over '%s',\n  message = 'a {%s}' }\n", name, name, name, name)).policy
      local condition = policy.rules.x.conditions[1]
      assert.same({ entry.to, entry.to }, { condition.field, condition.ref })
      assert.equal("a {" .. entry.to .. "}", policy.rules.x.message)
      local text = string.format("%s is called %s now; the old name goes in pipeplan %s", name, entry.to, entry.goes)
      assert.same({ "site.lua:2: " .. text, "site.lua:2: " .. text, "site.lua:3: " .. text }, renamed(policy.warnings))
    end)

    it("is gone when the version comes that it goes in: " .. name, function()
      local function number(version)
        local major, minor, patch = version:match "^(%d+)%.(%d+)%.(%d+)"
        return (major * 1000 + minor) * 1000 + patch
      end
      assert.is_true(number(engine.version) < number(entry.goes))
      assert.is_nil(vocabulary.by_name[name])
      assert.is_truthy(vocabulary.by_name[entry.to])
    end)
  end

  it("is what a function may read, too, and the plan says so", function()
    local site = planning.policy_of "warn { id = 'x', when = function(f) return f.network_link == 50e9 end, message = 'fast' }\n"
    local plan = planning.plan(planning.llama, nil, site)
    assert.is_truthy(planning.entry(plan.warnings, "x"))
    assert.matches("network_link is called network_per_gpu now", planning.entry(plan.warnings, "renamed").message)
  end)

  it("is answered with the new one where a test states a fact", function()
    local good, answer = failure.try(planning.policy.with, planning.policy, { network_link = 50e9 })
    assert.is_false(good)
    assert.equal("with: 'network_link' is no fact of a request: it is called network_per_gpu now", answer.message)
  end)

  it("beside the new one is refused: which of them would hold?", function()
    local good, answer = failure.try(planning.policy_of,
                                     "warn { id = 'x', network_link = over(1), network_per_gpu = over(2), message = 'm' }\n")
    assert.is_false(good)
    assert.matches("no field or property 'network_link'", answer.message)
  end)
end)
