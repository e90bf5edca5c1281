-- docs/design.md says where a new thing goes. Each is added here to a copy of the tree, in the files that its row names and in no other; then it
-- works, and the tests that the row names pass in the copy. What is forgotten fails in them.

local source, build, program = os.getenv "PIPEPLAN_SOURCE", os.getenv "PIPEPLAN_BUILD", os.getenv "PIPEPLAN"

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  assert(file:write(text))
end

local function output_of(command)
  local pipe = assert(io.popen(command .. " 2>&1"))
  local text = pipe:read "a"
  return text, pipe:close() == true
end

-- The row of the page that begins so: the text of its cells.
local function row(what)
  for line in read(source .. "/docs/design.md"):gmatch "[^\n]+" do
    local cells = {}
    for cell in line:gmatch "|%s*([^|]*)" do cells[#cells + 1] = cell end
    if cells[1] and cells[1]:match "^(.-)%s*$" == what then return cells end
  end
  error("docs/design.md has no row '" .. what .. "'")
end

local trees = {}

-- A copy of the tree in which a thing was added: changes = { path → function(text) → text, or the text of a new file }. Tests run there with
-- its stdlib and policies, and with the engine as it is built.
local function copy(changes)
  local tree = os.tmpname()
  os.remove(tree)
  trees[#trees + 1] = tree
  assert(os.execute(string.format("mkdir '%s' && cd '%s' && cp -r docs stdlib '%s'", tree, source, tree)))
  for _, name in ipairs { "README.md", "engine", "examples", "policies", "scripts", "tests" } do
    assert(os.execute(string.format("ln -s '%s/%s' '%s'", source, name, tree)))
  end
  for path, change in pairs(changes) do
    local before = type(change) == "function" and read(tree .. "/" .. path)
    local after = before and change(before) or change
    assert(after ~= before, path .. " is as it was")
    write(tree .. "/" .. path, after)
  end
  write(tree .. "/pipeplan", string.format("#!/bin/sh\nunset LD_PRELOAD\nexec '%s' \"$@\" --stdlib '%s/stdlib'\n", program, tree))
  assert(os.execute(string.format("chmod +x '%s/pipeplan'", tree)))
  local generated, good = output_of(string.format("cd '%s' && scripts/generate-meta '%s'", tree, build))
  assert(good, generated)
  return tree
end

local function run(tree, arguments)
  return output_of(string.format("cd '%s' && ./pipeplan %s", tree, arguments))
end

-- The output of a test in the tree, and whether it passed. name: "lua.names_spec".
local function test(tree, name)
  return output_of(string.format("cd '%s' && PIPEPLAN_SOURCE='%s' PIPEPLAN_BUILD='%s' PIPEPLAN='%s/pipeplan' PIPEPLAN_STDLIB='%s/stdlib' "
                                 .. "tests/busted.sh tests/%s.lua", tree, tree, build, tree, tree, (name:gsub("%.", "/"))))
end

-- Puts a text in front of the first place that is found.
local function before(place, text)
  return function(whole)
    local at = assert(whole:find(place, 1, true), place)
    return whole:sub(1, at - 1) .. text .. whole:sub(at)
  end
end

local function instead(place, text)
  return function(whole)
    local first, last = whole:find(place, 1, true)
    assert(first, place)
    return whole:sub(1, first - 1) .. text .. whole:sub(last + 1)
  end
end

local function both(one, two)
  return function(whole) return two(one(whole)) end
end

local plan = "plan --gpus 64 --per_gpu 400Gbps --fabric infiniband --tokens 2T --global_batch_size 1024 --model examples/models/llama-3-70b.json "

local additions = {}

additions["an accelerator"] = {
  changes = {
    ["stdlib/catalog/accelerators.lua"] = before('  { name = "L40S"', [[
  { name = "X100-SXM", family = "xeon_phi", memory_bytes = 96 * GIB, flops = { bf16 = 500 * TERA, fp16 = 500 * TERA }, memory_bandwidth = 3000 * GIGA,
    scale_up_per_gpu = 400 * GIGA, scale_up_link = "nvlink", scale_up_gpus = 8, gpus_per_node = 8, fabric = "infiniband", network_per_gpu = port(400),
    reach = reach.hopper, source = "assumed: as an H100" },
]]),
    ["stdlib/vocabulary.lua"] = instead('"ascend", "other" }', '"ascend", "xeon_phi", "other" }'),
    ["stdlib/catalog/hosts.lua"] = before('  host("other"', '  host("xeon_phi",   50,  77, "assumed: as Hopper"),\n'),
  },
  works = function(tree)
    assert.matches("\nX100%-SXM +xeon_phi +96 GiB", (run(tree, "facts accelerators")))
    local page, good = run(tree, plan .. "--accelerator X100-SXM")
    assert.is_true(good, page)
    assert.matches("64 × X100-SXM, 8 a node", page, 1, true)
  end,
  forgotten = { "stdlib/catalog/hosts.lua", "stdlib/vocabulary.lua" },
}

additions["a framework"] = {
  changes = {
    ["stdlib/catalog/frameworks/own_trainer.lua"] = [[
-- own_trainer.lua: Megatron-LM with changes of our own.

local derive = require "pipeplan.catalog.frameworks.derive"
local megatron = require "pipeplan.catalog.frameworks.megatron"

return derive(megatron, {
  name = "own-trainer", title = "our trainer", versions = { { name = "1", what = "ours" } },
  rules = {
    { id = "own-trainer.depth", pipeline_parallel = { over = 4 }, message = "{framework}: P {pipeline_parallel} is over 4", source = "assumed: by its README" },
  },
  schedules = { interleaved_1f1b_overlap = false }, source = "assumed: by its README",
})
]],
    ["stdlib/catalog/frameworks.lua"] = before('  require "pipeplan.catalog.frameworks.torchtitan"',
                                               '  require "pipeplan.catalog.frameworks.own_trainer",\n'),
    ["stdlib/vocabulary.lua"] = instead('"zero-bubble" })', '"zero-bubble", "own-trainer" })'),
  },
  works = function(tree)
    assert.matches("\nown%-trainer ", (run(tree, "facts frameworks")))
    local page, good = run(tree, plan .. "--accelerator H100-SXM --framework own-trainer --format markdown")
    assert.is_true(good, page)
    assert.matches("--pipeline-model-parallel-layout", page, 1, true)
    assert.matches("own-trainer.depth: our trainer: P 8 is over 4",
                   (run(tree, plan .. "--accelerator H100-SXM --framework own-trainer --pipeline 8 --schedule 1f1b")):gsub("%s+", " "), 1, true)
  end,
  forgotten = { "stdlib/catalog/frameworks.lua", "stdlib/vocabulary.lua" },
}

additions["a field that rules read"] = {
  changes = {
    ["stdlib/vocabulary.lua"] = before('  field("request", "architecture"',
                                       '  field("request", "nics_per_node", "integer", "1", "network cards of a node", { 1, most.host }),\n'),
    ["stdlib/plan/facts.lua"] = instead("architecture = model.architecture,",
                                            "architecture = model.architecture, nics_per_node = cluster.network.nics_per_node,"),
    ["stdlib/names.lua"] = instead('"cluster.network.nics_per_node")', '"cluster.network.nics_per_node", "nics_per_node")'),
  },
  works = function(tree)
    write(tree .. "/cards.lua", "warn { id = 'few_cards', nics_per_node = under 'gpus_per_node', message = '{nics_per_node} cards a node' }\n")
    assert.matches("\nnics_per_node +request +integer +1 +1 to 4096 ", (run(tree, "facts fields")))
    local page, good = run(tree, plan .. "--accelerator H100-SXM --nics_per_node 4 --policy cards.lua")
    assert.is_true(good, page)
    assert.matches("few_cards: 4 cards a node", page, 1, true)
    assert.matches("nics_per_node", read(tree .. "/stdlib/meta/policy.lua"), 1, true)
  end,
  forgotten = { "stdlib/names.lua" },
}

additions["a field of a spec"] = {
  changes = {
    ["stdlib/input/fields.lua"] = before('  field("cluster.storage"', '  field("cluster.hall", "string", "where the cluster stands"),\n'),
    ["stdlib/names.lua"] = before('  concept("speed of the storage"', '  concept("hall", "cluster.hall"),\n'),
  },
  works = function(tree)
    assert.matches("\ncluster%.hall +%-%-hall +string ", (run(tree, "facts spec")))
    assert.matches('"hall": {', (run(tree, "facts schema spec")), 1, true)
    assert.matches("--hall NAME", (run(tree, "plan --help")), 1, true)
    local page, good = run(tree, plan .. "--accelerator H100-SXM --hall 7")
    assert.is_true(good, page)
  end,
  forgotten = { "stdlib/names.lua" },
}

additions["a format that plans are printed in"] = {
  changes = {
    ["stdlib/report/one_line.lua"] = [[
-- one_line.lua: a plan in one line.

return function(plan)
  return plan.status .. " " .. tostring(plan.schedule) .. "\n"
end
]],
    ["stdlib/cli/plan.lua"] = both(
      before("function render.json(plan)\n", 'function render.line(plan) return require "pipeplan.report.one_line"(plan) end\n\n'),
      instead('choices { "text",', 'choices { "text", "line",')),
  },
  works = function(tree)
    assert.matches("^planned [%w_]+\n$", (run(tree, plan .. "--accelerator H100-SXM --format line")))
  end,
  forgotten = {},
}

describe("a new thing goes where docs/design.md says:", function()
  teardown(function()
    for _, tree in ipairs(trees) do os.execute("rm -r '" .. tree .. "'") end
  end)

  local whats = {}
  for what in pairs(additions) do whats[#whats + 1] = what end
  table.sort(whats)
  for _, what in ipairs(whats) do
    local addition = additions[what]
    it(what, function()
      local cells = row(what)
      for path in pairs(addition.changes) do
        local folder = path:match "^.*/"
        local named = cells[2]:find("`" .. path .. "`", 1, true) or cells[2]:find("`" .. folder .. "`", 1, true)
          or cells[2]:find("`" .. folder .. "NAME.lua`", 1, true)
        assert.is_truthy(named, path .. " is not in its row")
      end
      local tree = copy(addition.changes)
      addition.works(tree)
      for name in cells[3]:gmatch "`(lua%.[%w_]+)`" do
        local told, good = test(tree, name)
        assert.is_true(good, name .. " fails:\n" .. told)
      end
    end)

    for _, path in ipairs(addition.forgotten) do
      it(what .. ", and a test of its row tells when " .. path .. " was forgotten", function()
        local changes, found = {}, false
        for other, change in pairs(addition.changes) do changes[other] = other ~= path and change or nil end
        local good, tree = pcall(copy, changes)
        for name in row(what)[3]:gmatch "`(lua%.[%w_]+)`" do
          found = found or not good or not select(2, test(tree, name))
        end
        assert.is_true(found)
      end)
    end
  end
end)
