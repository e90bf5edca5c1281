-- SPDX-License-Identifier: Apache-2.0
-- docs/design.md says where a new thing goes. Each is added here to a copy of the tree, in the files that its row names and in no other; then it
-- works, and the tests that the row names pass in the copy. What is forgotten fails in them.

local source, build, program = os.getenv "PIPEPLAN_SOURCE", os.getenv "PIPEPLAN_BUILD", os.getenv "PIPEPLAN"

local read = require "read_file"

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

local function execute(format, ...) assert(os.execute(string.format(format, ...))) end

-- Writes the changes into a tree: { path → function(text) → text, or the text of a new file }.
local function apply(changes, tree)
  for path, change in pairs(changes) do
    local before = type(change) == "function" and read(tree .. "/" .. path)
    local after = before and change(before) or change
    assert(after ~= before, path .. " is as it was")
    write(tree .. "/" .. path, after)
  end
end

-- An empty folder in which, of the tree, `copied` are copied and the rest is linked to.
local function new_tree(copied)
  local tree = os.tmpname()
  os.remove(tree)
  trees[#trees + 1] = tree
  execute("mkdir '%s' && cd '%s' && cp -r %s '%s'", tree, source, table.concat(copied, " "), tree)
  for _, name in ipairs { "CMakeLists.txt", "README.md", "engine", "examples", "policies", "scripts", "tests" } do
    execute("cd '%s' && { [ -e %s ] || ln -s '%s/%s' . ; }", tree, name, source, name)
  end
  return tree
end

-- Makes the tree's program, which is `binary` with this stdlib, and its editor definitions.
local function complete(tree, binary, built)
  write(tree .. "/pipeplan", string.format("#!/bin/sh\nunset LD_PRELOAD\nexec '%s' \"$@\" --stdlib '%s/stdlib'\n", binary, tree))
  execute("chmod +x '%s/pipeplan'", tree)
  local generated, good = output_of(string.format("cd '%s' && scripts/generate-meta '%s'", tree, built))
  assert(good, generated)
end

-- A copy of the tree in which a thing was added. Tests run there with its stdlib and policies, and with the engine as it is built.
local function copy(changes)
  local tree = new_tree { "docs", "stdlib" }
  apply(changes, tree)
  complete(tree, program, build)
  return tree
end

-- The same with an engine of its own.
local function built(changes)
  local tree = new_tree { "CMakeLists.txt", "docs", "engine", "policies", "stdlib" }
  apply(changes, tree)
  local told, good = output_of(string.format("cd '%s' && cmake -S . -B build -DPIPEPLAN_TESTS=OFF -DCMAKE_BUILD_TYPE=Debug >log 2>&1 && "
                                             .. "cmake --build build -j2 >>log 2>&1 || { tail -30 log; false; }", tree))
  assert(good, told)
  complete(tree, tree .. "/build/pipeplan", tree .. "/build")
  return tree
end

local function run(tree, arguments)
  return output_of(string.format("cd '%s' && ./pipeplan %s", tree, arguments))
end

-- The output of a test in the tree, and whether it passed. name: "lua.names_spec".
local function test(tree, name)
  local own = output_of(string.format("test -d '%s/build' && echo own", tree)) ~= ""
  return output_of(string.format("cd '%s' && PIPEPLAN_SOURCE='%s' PIPEPLAN_BUILD='%s' PIPEPLAN='%s/pipeplan' PIPEPLAN_STDLIB='%s/stdlib' "
                                 .. "PIPEPLAN_SPECS=8 tests/busted.sh tests/%s.lua", tree, tree, own and tree .. "/build" or build, tree, tree,
                                 (name:gsub("%.", "/"))))
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

-- What is added: its changes; works(tree), that it is there; forgotten: { path → the test of its row that fails without it }.
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
  forgotten = { ["stdlib/catalog/hosts.lua"] = "lua.catalog_spec", ["stdlib/vocabulary.lua"] = "lua.catalog_spec" },
}

additions["a framework"] = {
  changes = {
    ["stdlib/catalog/frameworks/own_trainer.lua"] = [[
-- own_trainer.lua: Megatron-LM with changes of our own.

local derive = require "pipeplan.catalog.frameworks.derive"
local megatron = require "pipeplan.catalog.frameworks.megatron"

return derive(megatron, {
  name = "own-trainer", title = "our trainer", versions = { { name = "1", what = "ours" } },
  plan_rules = {
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
  forgotten = { ["stdlib/catalog/frameworks.lua"] = "lua.catalog_spec", ["stdlib/vocabulary.lua"] = "lua.frameworks_spec" },
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
  forgotten = { ["stdlib/names.lua"] = "lua.names_spec" },
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
  forgotten = { ["stdlib/names.lua"] = "lua.names_spec" },
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

-- What is engine too: both in one copy, for that is built.
local engines = {}

engines["a schedule"] = {
  changes = {
    ["engine/core/schedule_kinds.h"] = before('  X(INTERLEAVED_1F1B, "interleaved_1f1b"',
      '  X(EAGER_1F1B, "eager_1f1b", "eager 1F1B", "eager_1f1b", '
      .. 'ONE_CHUNK, WHOLE, NO_PAIRS, PP_UNGROUPED, 0, PP_HOLDS_BOUNDED, NO_PERIODS, EAGER_1F1B, table, eager_1f1b) \\\n'),
    ["engine/core/schedules_table.c"] = before("    case PP_ZB_H1:", "    case PP_EAGER_1F1B: shape.warmup = 2 * below; break;\n"),
    ["engine/core/bubble.c"] = before("static const closed_form law_looped_bfs", 'static const closed_form law_eager_1f1b = { fused, "1F1B\'s" };\n'),
    ["stdlib/catalog/schedules.lua"] = before('  { name = "interleaved_1f1b",',
      '  { name = "eager_1f1b", idea = "1F1B with twice its warm-up", source = "Zhuang et al. 2023, https://arxiv.org/abs/2211.05322" },\n'),
    ["policies/default/parameters.lua"] = instead('"gpipe", "1f1b",', '"gpipe", "1f1b", "eager_1f1b",'),
  },
  works = function(tree)
    -- as much bubble as 1F1B, and 2 (P − 1) + 1 microbatches held on the first rank: at P 4, 7 in place of 4
    local page, good = run(tree, "simulate 1f1b,eager_1f1b --ranks 4 --microbatches 16")
    assert.is_true(good, page)
    assert.matches("\n1F1B +1 +57 s +15%.8 %% .- 4 +4 ", page)
    assert.matches("\neager 1F1B +1 +57 s +15%.8 %% .- 7 +7 ", page)
    page, good = run(tree, plan .. "--accelerator H100-SXM --policies policies --pipeline 4 --schedule eager_1f1b")
    assert.is_true(good, page)
    assert.matches("^eager 1F1B · P 4", page)
    assert.matches('"eager_1f1b"', read(tree .. "/stdlib/meta/policy.lua"), 1, true)
  end,
  forgotten = { ["engine/core/bubble.c"] = "lua.schedule_rows_spec", ["stdlib/catalog/schedules.lua"] = "lua.schedules_catalog_spec" },
}

engines["a memory term"] = {
  changes = {
    ["engine/core/memory.h"] = before("  double total;\n", "  double staging;      /* what copies between GPUs and hosts go through */\n"),
    ["engine/core/memory.c"] = both(
      instead(".overhead = overhead, ", ".overhead = overhead, .staging = 0x1p28, "),
      instead("+ most + out->overhead;", "+ most + out->overhead + out->staging;")),
    ["engine/lua/memory.c"] = before('{ "total", rank->total },', '{ "staging", rank->staging }, '),
    ["stdlib/plan/measure.lua"] = instead("buffers_bytes = rank.transient + rank.overhead",
                                          "staging_bytes = rank.staging, buffers_bytes = rank.transient + rank.overhead + rank.staging"),
    ["stdlib/schema/plan.lua"] = before('buffers_bytes = bytes "', 'staging_bytes = bytes "what copies between GPUs and hosts go through", '),
    ["stdlib/meta/generate/classes.lua"] = before('result("activations", "peak', 'result("staging", "of copies"), '),
  },
  works = function(tree)
    local question = "plan --gpus 64 --per_gpu 400Gbps --fabric infiniband --tokens 2T --global_batch_size 1024 --accelerator H100-SXM "
      .. "--pipeline 4 --tensor 4 --schedule 1f1b --layers_per_stage 20,20,20,20 --model examples/models/llama-3-70b.json --format json"
    local function most(answer)
      local found = 0
      for bytes in answer:gmatch '"total_bytes": ([%d.e+]+)' do found = math.max(found, tonumber(bytes)) end
      return found
    end
    local answer, good = run(tree, question)
    assert.is_true(good, answer)
    assert.matches('"staging_bytes": 268435456', answer, 1, true)
    local without = output_of(string.format("cd '%s' && '%s' %s", source, program, question))
    assert.equal(2 ^ 28, most(answer) - most(without))
  end,
  forgotten = { ["stdlib/plan/measure.lua"] = "lua.agreement_spec" },
}

-- Is each path in the row of the page?
local function check_row(what, changes)
  local cells = row(what)
  for path in pairs(changes) do
    local folder, name = path:match "^(.*/)([^/]*)$"
    local named = cells[2]:find("`" .. path .. "`", 1, true) or cells[2]:find("`" .. folder .. "`", 1, true)
      or cells[2]:find("`" .. folder .. "NAME.lua`", 1, true) or cells[2]:find("`" .. folder .. name:gsub("_.*%.", "_*.") .. "`", 1, true)
    assert.is_truthy(named, path .. " is not in its row")
  end
  return cells
end

-- The test, which is in the row, fails in the tree.
local function assert_told(what, name, tree)
  assert.is_truthy(row(what)[3]:find("`" .. name .. "`", 1, true), name .. " is not in its row")
  assert.is_false(select(2, test(tree, name)))
end

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
      local cells = check_row(what, addition.changes)
      local tree = copy(addition.changes)
      addition.works(tree)
      for name in cells[3]:gmatch "`(lua%.[%w_]+)`" do
        local told, good = test(tree, name)
        assert.is_true(good, name .. " fails:\n" .. told)
      end
    end)

    for path, name in pairs(addition.forgotten) do
      it(what .. ", and a test of its row tells when " .. path .. " was forgotten", function()
        local changes = {}
        for other, change in pairs(addition.changes) do changes[other] = other ~= path and change or nil end
        assert_told(what, name, copy(changes))
      end)
    end
  end

  describe("in the engine too,", function()
    local tree

    setup(function()
      local all = {}
      for _, addition in pairs(engines) do
        for path, change in pairs(addition.changes) do
          assert(not all[path], path)
          all[path] = change
        end
      end
      tree = built(all)
    end)

    for _, what in ipairs { "a memory term", "a schedule" } do
      local addition = engines[what]
      it(what, function()
        local cells = check_row(what, addition.changes)
        addition.works(tree)
        for name in cells[3]:gmatch "`(lua%.[%w_]+)`" do
          local told, good = test(tree, name)
          assert.is_true(good, name .. " fails:\n" .. told)
        end
      end)

      for path, name in pairs(addition.forgotten) do
        it(what .. ", and a test of its row tells when " .. path .. " was forgotten", function()
          local with = read(tree .. "/" .. path)
          write(tree .. "/" .. path, read(source .. "/" .. path))
          finally(function() write(tree .. "/" .. path, with) end)
          assert_told(what, name, tree)
        end)
      end
    end

    it("a schedule in no more than five files", function()
      local count = 0
      for _ in pairs(engines["a schedule"].changes) do count = count + 1 end
      assert.is_true(count <= 5)
    end)
  end)
end)
