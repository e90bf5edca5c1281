-- SPDX-License-Identifier: Apache-2.0
-- Analysis of policies: what `policy check` finds, against brute force and against what is known of the shipped table.

local pipeplan = require "pipeplan"
local boxes = require "pipeplan.analysis.boxes"
local cells = require "pipeplan.analysis.cells"
local check = require "pipeplan.analysis.check"
local conditions = require "pipeplan.policy.conditions"
local files = require "policy_files"
local findings = require "pipeplan.analysis.findings"
local realise = require "pipeplan.analysis.realise"
local tables = require "pipeplan.analysis.table"

teardown(files.remove)

local function policy_of(text)
  return pipeplan.policy(text and files.write("site.lua", text) or nil, { date = "2026-11-27" }).policy
end

local function check_of(text, options)
  return check.policy(policy_of(text), options or { witnesses = false })
end

local function with_code(list, code)
  local out = {}
  for _, finding in ipairs(list) do
    if finding.code == code then out[#out + 1] = finding end
  end
  return out
end

local function one(text, code)
  local found = with_code(check_of(text), code)
  assert.equal(1, #found, code)
  return found[1]
end

-- ------------------------------------------------------------------------------------------------------------- the shipped table

describe("the shipped decision table", function()
  -- The pairs with different outcomes that can hold together (the earlier wins), no row unreachable, and what only the last row
  -- covers.
  local expected = {
    "small_run moe_with_ep", "small_run dense", "small_run otherwise", "moe_with_ep dense", "moe_with_ep dense_large",
    "moe_with_ep otherwise", "dense_large otherwise",
  }

  it("has exactly the overlaps that are meant", function()
    local analysis, pairs_found = tables.analyse(policy_of(nil).rows), {}
    for i, overlap in ipairs(analysis.overlaps) do pairs_found[i] = overlap.first.rule.id .. " " .. overlap.second.rule.id end
    table.sort(pairs_found)
    table.sort(expected)
    assert.same(expected, pairs_found)
  end)

  it("has no row that never decides, and one that covers the rest", function()
    local analysis = tables.analyse(policy_of(nil).rows)
    assert.same({}, analysis.shadowed)
    assert.same({}, analysis.undecided)
    assert.equal("otherwise", analysis.catch_all.rule.id)
    local words = {}
    for i, box in ipairs(analysis.gaps) do words[i] = analysis.space:text(box) end
    assert.same({ "gpus 500 or more, architecture dense, alltoall_fraction 10 % or more",
                  "gpus 500 or more, architecture moe, expert_parallel 1, alltoall_fraction 10 % or more" }, words)
  end)

  it("has no finding that a review must act on", function()
    assert.equal(0, findings.count(check_of(nil), "warning"))
  end)

  it("is shown by specs that plan accepts, for which both rows of an overlap hold and the earlier decides", function()
    local policy, shown = policy_of(nil), 0
    for _, finding in ipairs(with_code(check.policy(policy), "overlap")) do
      local plan = require("pipeplan.plan.init").plan {
        request = require("pipeplan.input.spec").from_table(finding.witness.spec), policy = policy, explain = true }
      local holds = {}
      for _, rule in ipairs(plan.explanation.rules) do holds[rule.id] = rule.holds end
      assert.is_true(holds[finding.id], finding.message)
      assert.is_true(holds[finding.related[1].id], finding.message)
      shown = shown + 1
    end
    assert.equal(#expected, shown)
  end)
end)

describe("a spec that shows a rule", function()
  -- seven models on each of two sizes of cluster show nothing: the first spec on 16 GPUs is the fifteenth
  it("is looked for in more specs than the eight that follow one which was found", function()
    local policy = policy_of [[reject { id = "no_pipelines", pipeline_parallel = over(1), message = "m" }]]
    local rule, sizes = policy.rules.no_pipelines, {}
    local space, planned = cells.space { rule }, setmetatable({}, { __index = function() return true end })   -- so that none is planned here
    local found = realise.spec(policy, { space = space, box = space:box(rule), holds = { rule }, planned = planned, shows = function(draft)
      sizes[draft.cluster.gpus] = true
      return draft.cluster.gpus == 16
    end })
    assert.equal(16, found.spec.cluster.gpus)
    assert.is_true(found.fields.pipeline_parallel > 1)
    assert.same({ [16] = true, [128] = true, [4096] = true }, sizes)
  end)
end)

-- ---------------------------------------------------------------------------------------------------------------- brute force

-- Small tables over fields whose constants stay below 12, so that a grid up to 24 has every case; parity and multiples of 3 repeat after 6.
local GRID = {
  { field = "gpus", values = 24 }, { field = "pipeline_parallel", values = 24 },
  { field = "architecture", names = { "dense", "moe" } }, { field = "tied_embeddings", names = { false, true } },
}

local function random_condition(random, dim)
  if dim.names then
    return { field = dim.field, op = "equal", value = dim.names[random(#dim.names)] }
  end
  local kind, value = random(9), random(11)
  local simple = { "under", "at_most", "over", "at_least", "equal" }
  if kind <= 5 then return { field = dim.field, op = simple[kind], value = value } end
  if kind == 6 then return { field = dim.field, op = "between", low = math.min(value, 6), high = math.max(value, 6) } end
  if kind == 7 then return { field = dim.field, op = random(2) == 1 and "odd" or "even" } end
  if kind == 8 then return { field = dim.field, op = random(2) == 1 and "multiple_of" or "not_multiple_of", value = 3 } end
  return { field = dim.field, op = random(2) == 1 and "one_of" or "none_of", values = { value, random(11) } }
end

local function random_table(random)
  local rules = {}
  for i = 1, 2 + random(4) do
    local rule = { id = "r" .. i, verb = "row", try = { random(2) == 1 and "1f1b" or "zb_h1" }, conditions = {} }
    for _, dim in ipairs(GRID) do
      if random(2) == 1 then table.insert(rule.conditions, random_condition(random, dim)) end
    end
    conditions.sort(rule.conditions)
    rules[i] = rule
  end
  return rules
end

local function grid_points(visit)
  for gpus = 1, GRID[1].values do
    for depth = 1, GRID[2].values do
      for _, architecture in ipairs(GRID[3].names) do
        for _, tied in ipairs(GRID[4].names) do
          visit { gpus = gpus, pipeline_parallel = depth, architecture = architecture, tied_embeddings = tied }
        end
      end
    end
  end
end

-- What the grid says: which row decides each point, which pairs hold together, whether a point is left over, and whether a row could go.
local function by_grid(rules)
  local engine = require "engine"
  local compiled, out = {}, { decides = {}, overlaps = {}, gap = false, could_go = {} }
  for i, rule in ipairs(rules) do
    compiled[i] = conditions.engine(rule)
    out.could_go[i] = true
  end
  grid_points(function(point)
    local holding, closed = {}, false
    for i in ipairs(rules) do
      if engine.conditions.match(point, compiled[i]) then
        holding[#holding + 1] = i
        closed = closed or #rules[i].conditions > 0
      end
    end
    if not closed then out.gap = true end
    if holding[1] then
      out.decides[holding[1]] = true
      local heir = holding[2]
      if not heir or rules[heir].try[1] ~= rules[holding[1]].try[1] then out.could_go[holding[1]] = false end
    end
    for a = 1, #holding do
      for b = a + 1, #holding do
        if rules[holding[a]].try[1] ~= rules[holding[b]].try[1] then out.overlaps[holding[a] .. " " .. holding[b]] = true end
      end
    end
  end)
  return out
end

describe("table analysis", function()
  it("agrees with brute force on random tables", function()
    local state, redundant_seen, shadowed_seen, gaps_seen = 20261128, 0, 0, 0
    local function random(n)
      state = (state * 1103515245 + 12345) % 2147483648
      return (state >> 8) % n + 1
    end
    local most = require "long" and 250 or 80
    for case = 1, most do
      local rules = random_table(random)
      local truth, analysis = by_grid(rules), tables.analyse(rules, {})
      local name = "table " .. case
      assert.equal(truth.gap, #analysis.gaps > 0, name .. ": gap")
      if truth.gap then gaps_seen = gaps_seen + 1 end
      local never, could_go, overlaps = {}, {}, {}
      for _, shadowed in ipairs(analysis.shadowed) do never[shadowed.row.rule.id] = true end
      for _, redundant in ipairs(analysis.redundant) do could_go[redundant.row.rule.id] = true end
      for _, row in ipairs(analysis.rows) do never[row.rule.id] = never[row.rule.id] or row.empty end
      for _, overlap in ipairs(analysis.overlaps) do
        overlaps[overlap.first.rule.id:sub(2) .. " " .. overlap.second.rule.id:sub(2)] = true
      end
      for i, rule in ipairs(rules) do
        assert.equal(not truth.decides[i], never[rule.id] or false, name .. ": shadowed " .. i)
        if truth.decides[i] then assert.equal(truth.could_go[i], could_go[rule.id] or false, name .. ": redundant " .. i) end
        if never[rule.id] then shadowed_seen = shadowed_seen + 1 end
        if could_go[rule.id] then redundant_seen = redundant_seen + 1 end
      end
      assert.same(truth.overlaps, overlaps, name)
    end
    assert.is_true(gaps_seen > most / 5 and shadowed_seen > most / 5 and redundant_seen > most / 25)  -- the cases are there
  end)

  it("describes boxes in words", function()
    local rules = { { id = "a", try = { "1f1b" }, conditions = { { field = "gpus", op = "between", low = 8, high = 64 },
                                                                   { field = "fabric", op = "none_of", values = { "efa", "none" } } } } }
    local analysis = tables.analyse(rules, {})
    assert.equal("gpus 8 to 64, fabric not efa, none", analysis.space:text(analysis.rows[1].box))
    assert.equal("anything", analysis.space:text(boxes.all(analysis.space.shape)))
  end)
end)

-- ------------------------------------------------------------------------------------------------------------------- each finding

describe("policy check", function()
  it("finds a row that never decides, shadowed by several earlier ones together", function()
    local found = with_code(check_of [[
      row { id = "few",  gpus = at_most(128), try = { "1f1b" } }
      row { id = "many", gpus = over(64), architecture = "moe", try = { "zb_h1" } }
      row { id = "mid",  gpus = between(32, 256), architecture = "moe", try = { "zb_v" } }
      disable { id = "small_run" }]], "shadowed")
    assert.equal(2, #found)  -- and of course the default's moe_with_ep
    assert.matches("^row 'mid' never decides: 'few', 'many' take all of it %(gpus 32 to 256, architecture moe%)$", found[1].message)
    assert.same({ "few", "many" }, { found[1].related[1].id, found[1].related[2].id })
  end)

  it("finds a gap where there is no row for the rest", function()
    local finding = one([[disable { id = "otherwise" }]], "gap")
    assert.matches("no row covers: gpus 500 or more, architecture dense, alltoall_fraction 10 %% or more", finding.message)
    assert.matches("without expert parallelism there is no all%-to%-all", finding.message)
  end)

  it("finds conditions that always or never hold", function()
    assert.matches("sequence_length at least 1 always holds",
                   one([[row { id = "x", sequence_length = at_least(1), gpus = under(8), try = { "1f1b" } }]], "constant").message)
    assert.matches("can never hold: gpus under 1 holds for no value",
                   one([[reject { id = "x", gpus = under(1), message = "m" }]], "impossible").message)
  end)

  -- A condition that takes a part of every run of values, and leaves no end of the field out.
  it("says of what two rows hold for an example where it is no run of values", function()
    local field_of_row = { gpus = "even", layers = "not_multiple_of(4)", pipeline_parallel = "odd", context_parallel = "not_multiple_of(64)",
                           sequence_length = "not_multiple_of(7)", microbatches = "odd" }
    for field, condition in pairs(field_of_row) do
      local found = with_code(check_of(("row { id = 'x', %s = %s, try = { '1f1b' } }"):format(field, condition)), "overlap")
      assert.matches("rows 'x' and 'small_run' both hold for .*" .. (field == "gpus" and "gpus under 100, " or field .. " ") .. "such as %d", found[1].message)
    end
  end)

  it("finds a reject that another reject makes idle, and names it", function()
    local finding = one([[reject { id = "very_deep", pipeline_parallel = over(70), message = "m" }]], "never_fires")
    assert.matches("reject 'very_deep' changes nothing: 'too_deep' drops all its candidates", finding.message)
    assert.equal("too_deep", finding.related[1].id)
  end)

  it("finds a warning about plans that are never made", function()
    assert.matches("warn 'w' changes nothing", one([[warn { id = "w", pipeline_parallel = over(64), message = "m" }]], "never_fires").message)
  end)

  it("finds a refusal that nobody can want", function()
    assert.matches("no row tries gpipe",
                   one([[refuse { id = "r", schedule = "gpipe", recommend = "1f1b", message = "m" }]], "unwanted").message)
  end)

  it("finds a parameter that nothing reads", function()
    assert.matches("'spare'", one([[parameter { id = "spare", value = 3, unit = "1", loosens = "none", meaning = "m" }
                                    row { id = "r", gpus = 3, try = { "1f1b" } }]], "unused_parameter").message)
  end)

  it("names functions instead of guessing what they do", function()
    local list = check_of [[row { id = "odd_one", try = { "1f1b" }, when = function(f) return f.gpus > 3 or f.layers > 3 end }]]
    assert.equal("odd_one", with_code(list, "opaque")[1].id)
    assert.same({}, with_code(list, "shadowed"))  -- it may hold for nothing, so it takes nothing away
  end)

  it("lists what a site loosens and what expires soon", function()
    local list = check_of [[disable { id = "odd_microbatches", reason = "ours takes odd M", expires = "2026-12-10" }]]
    assert.matches("ours takes odd M %(until 2026%-12%-10%)", with_code(list, "loosened")[1].message)
    assert.matches("expires on 2026%-12%-10", with_code(list, "expires_soon")[1].message)
  end)

  it("says where the finding is", function()
    local path = files.write("site.lua", [[

      reject { id = "x", gpus = under(1), message = "m" }]])
    local list = check.policy(pipeplan.policy(path, { date = "2026-11-27" }).policy, { witnesses = false })
    local finding = with_code(list, "impossible")[1]
    assert.equal(path, finding.file)
    assert.equal(2, finding.line)
  end)

  it("leaves the default policy's own notes out of a site's check", function()
    local policy = policy_of [[row { id = "mine", gpus = 7, try = { "1f1b" } }]]
    local kept, left_out = check.about_sites(policy, check.policy(policy, { witnesses = false }))
    for _, finding in ipairs(kept) do
      local mine = finding.id == "mine"
      for _, other in ipairs(finding.related) do mine = mine or other.id == "mine" end
      assert.is_true(mine, finding.message)
    end
    assert.is_true(left_out >= 9)
  end)

  -- docs/policy.md: a policy cannot hang it. A rule that takes a whole budget when it is asked takes as much of each spec that is tried.
  it("takes a few budgets at most, whatever functions take", function()
    local never, loop = "while true do local _ = f.tensor_parallel end", "for i = 1, %s do local _ = f.tensor_parallel end"
    local many = {}
    for i = 1, 9 do many[i] = string.format([[reject { id = "e%d", message = "no", when = function(f) %s end }]], i, never) end
    local slow_elsewhere = [[reject { id = "slow", message = "no", when = function(f)
      ]] .. loop:format "f.gpus == 64 and f.layers ~= 80 and 20000 or 1" .. [[ return f.tensor_parallel == 3 end }]]
    for _, case in ipairs {
      { many[1], fails = 1 }, { table.concat(many, "\n"), fails = 3 }, { slow_elsewhere, fails = 0 },
      { [[reject { id = "dear", message = "no", when = function(f) ]] .. loop:format "60000" .. [[ error "no" end }]], fails = 1 },
    } do
      local policy = pipeplan.policy(files.write("site.lua", case[1]), { date = "2026-11-27", work = 1000000 }).policy
      local host, spent = policy.host, 0
      policy.host = setmetatable({}, { __index = function(_, name)
        return function(_, ...)
          if name == "refill" then spent = spent + host:usage().work / host:usage().work_limit end
          return host[name](host, ...)
        end
      end })
      assert.equal(case.fails, #with_code(check.policy(policy, { witnesses = true }), "function_fails"), case[1])
      policy.host:refill()
      assert.is_true(spent < 5, spent .. " budgets: " .. case[1])
    end
  end)

  it("finds the same again, whatever a check before it spent", function()
    local text = [[reject { id = "slow", message = "no", when = function(f) for i = 1, 2000 do local _ = f.gpus end return f.pipeline_parallel > 99 end }
      reject { id = "wide", tensor_parallel = over(8), pipeline_parallel = over(3), message = "no" }]]
    local policy = pipeplan.policy(files.write("site.lua", text), { date = "2026-11-27", work = 2000000 }).policy
    local shown = {}
    for i = 1, 3 do
      shown[i] = 0
      for _, finding in ipairs(check.policy(policy, { witnesses = true })) do shown[i] = shown[i] + (finding.witness and 1 or 0) end
    end
    assert.is_true(shown[1] > 0)
    assert.same({ shown[1], shown[1] }, { shown[2], shown[3] })
  end)

  it("knows which parameters the planner itself reads", function()
    local found = {}
    for _, directory in ipairs { "plan", "policy", "report", "input", "cli" } do
      local handle = assert(io.popen("cat " .. os.getenv "PIPEPLAN_SOURCE" .. "/stdlib/" .. directory .. "/*.lua"))
      local text = handle:read "a"
      handle:close()
      for name in text:gmatch 'parameter%([%w_.]+, "([%l_]+)"%)' do found[name] = true end
      for name in text:gmatch "policy%.parameters%.([%l_]+)" do found[name] = true end
      for name in text:gmatch "builder%.parameters%.([%l_]+)" do found[name] = true end
    end
    for _, parameter in pairs(require("pipeplan.policy.statements").families) do found[parameter] = true end
    local names = {}
    for name in pairs(found) do names[#names + 1] = name end
    table.sort(names)
    local listed = table.move(check.planner_parameters, 1, #check.planner_parameters, 1, {})
    table.sort(listed)
    assert.same(names, listed)
  end)
end)
