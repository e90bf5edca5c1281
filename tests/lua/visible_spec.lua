-- SPDX-License-Identifier: Apache-2.0
-- Whatever a thing is called, what people read of it is plain: valid UTF-8 without a character that a terminal obeys or nobody sees, and one
-- line where one is meant. What machines read keeps the name.

local pipeplan = require "pipeplan"
local check = require "pipeplan.analysis.check"
local engine = require "engine"
local files = require "policy_files"
local json = require "pipeplan.base.json"
local markdown = require "pipeplan.report.markdown"
local names = require "hostile_names"
local planning = require "planning"
local schema = require "pipeplan.schema.plan"
local text = require "pipeplan.report.text"
local visible = require "pipeplan.base.visible"

teardown(files.remove)

local function clean(shown, name)
  local wrong = names.wrong(shown)
  if wrong then error(string.format("%s, of the name %q, in\n%s", wrong, name, shown), 0) end
end

-- In JSON nothing is left raw either, and what was given comes back; bytes that are no UTF-8 JSON cannot hold.
local function kept(encoded, name, find)
  clean(encoded, name)
  local value = find(json.decode(encoded, "report"))
  if utf8.len(name) then assert.equal(name, value) end
end

local function write(path, body)
  local file = assert(io.open(path, "wb"))
  file:write(body)
  file:close()
end

-- A name that a file can have.
local function file_name(name) return (name:gsub("[%z/]", "_")) end

describe("a name made of anything", function()
  local one_line = names.generator(1, function(piece) return not piece:find "%c" end)  -- what a policy may state
  local any = names.generator(2)

  it("stays one plain line, however often it is shown", function()
    for _ = 1, 2000 do
      local name = any()
      local shown = visible.line(name)
      clean(shown, name)
      assert.is_nil(shown:find("\n", 1, true))
      assert.equal(shown, visible.line(shown))
    end
  end)

  it("is plain in the pages of a plan that is made and of one that is not, and exact in their JSON", function()
    local directory = files.directory {}
    for round = 1, 12 do
      local name = one_line():gsub("[{}]", "") .. "x"   -- a text of signs alone is refused
      local path = directory .. "/" .. file_name(any()) .. round .. ".lua"
      write(path, string.format([[
        set { small_run_gpus = 64 }
        warn { id = "told", gpus = at_least(1), message = %q, source = %q }
        reject { id = "no", gpus = 128, message = %q }
        disable { id = "too_deep", reason = %q }]], name, name, name, name))
      local site = pipeplan.policy(path, { date = "2026-11-27" })
      for _, gpus in ipairs { 256, 128 } do
        local model = { architecture = "dense", name = name, total = "70B", layers = 80 }
        local request = planning.merge(planning.llama, { cluster = { gpus = gpus } })
        request.model = model
        local plan = site:plan_spec(request, ".")
        for _, render in ipairs { text.render, markdown.render } do clean(render(plan), name) end
        kept(json.encode(json.shape(plan, schema)), name, function(value) return value.model.name end)
      end
      local policy = site.policy
      clean(require("pipeplan.policy.show").text(policy), name)
      local list = check.about_sites(policy, check.policy(policy, { witnesses = false }))
      local report = require "pipeplan.report.findings"
      clean(report.text(list, policy, 0), name)
      clean(report.github(list), name)
      kept(report.json(list, policy), path, function(value) return value.findings[1].file end)
      kept(report.sarif(list), path, function(value)
        local uri = value.runs[1].results[1].locations[1].physicalLocation.artifactLocation.uri
        assert.is_nil(uri:find "[^%w%-._~!$&'()*+,;=@/%%]")  -- RFC 3986, path characters
        return (uri:gsub("%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end))
      end)
    end
  end)

  it("breaks no row and no cell of Markdown, and starts no list, link or entity", function()
    local plan = planning.plan(planning.llama)
    local shape = markdown.render(plan):gsub("\\.", "x"):gsub("[^|\n]+", "x")  -- a layout has bars of its own, escaped
    for _ = 1, 60 do
      plan.model.name = any()
      for _, warning in ipairs(plan.warnings) do warning.message = any() end
      for _, other in ipairs(plan.alternatives) do other.why_not = { any() } end
      local rendered = markdown.render(plan)
      clean(rendered, plan.model.name)
      rendered = rendered:gsub("\\.", "x")  -- escaped: no bar, no backtick, no bracket of its own
      assert.equal(shape, (rendered:gsub("[^|\n]+", "x")))
      assert.is_nil(rendered:find "[`<&]")
    end
  end)

  it("is plain in what `policy test` prints, and well-formed in TAP and JUnit", function()
    local report = require "pipeplan.report.tests"
    for _ = 1, 40 do
      local name, message = any(), any()
      local results = {
        { name = name, file = name, line = 1, status = "failed", message = message, seconds = 0, assertions = 1 },
        { name = name, file = name, line = 2, status = "skipped", seconds = 0, assertions = 0 },
      }
      local items = { { kind = "row", id = "x", text = name, file = name, line = 3, layer = "s", covered = false } }
      clean(report.text(results, items), name)
      local tap = report.tap(results, items)
      clean(tap, name)
      for line in tap:gmatch "[^\n]+" do
        assert.is_truthy(line:find "^# " or line:find "^ok 2 %- " or line:find "^not ok 1 %- " or line == "1..2" or line == "TAP version 13")
      end
      assert.is_truthy(tap:find "\nok 2 %- [^\n]* # SKIP\n")
      local junit = report.junit(results)
      clean(junit, name)
      local attribute = '"[^"<]*"'
      assert.is_truthy(junit:find("<testcase classname=" .. attribute .. " name=" .. attribute .. " file=" .. attribute .. " line"))
      for entity in junit:gmatch "&[^;]*;?" do
        assert.is_truthy(entity:find "^&amp;$" or entity:find "^&lt;$" or entity:find "^&gt;$" or entity:find "^&quot;$" or
                         entity:find "^&apos;$" or entity:find "^&#x%x+;$", entity)
      end
      kept(report.json(results, items), name, function(value) return value.tests[1].name end)
    end
  end)

  it("is plain in a difference, and in a list of mutants", function()
    for _ = 1, 40 do
      local name = any()
      local outcome = { status = "planned", line = name, reasons = {} }
      local differs = { { field = "alltoall_kernel", before = name, after = false } }
      local changes = { { kind = "replanned", rule = "x", name = name, spec = { name = name }, before = outcome, after = outcome,
                          differs = differs } }
      local difference = require "pipeplan.report.difference"
      clean(difference.text(changes, 1), name)
      kept(difference.json(changes, 1), name, function(value) return value.changes[1].name end)
      kept(difference.json(changes, 1), name, function(value) return value.changes[1].differs[1].before end)
      assert.is_false(json.decode(difference.json(changes, 1), "changes").changes[1].differs[1].after)
      local mutants = { { mutant = { id = name, file = name, line = 1, kind = "x" }, outcome = "survived" } }
      local report = require "pipeplan.report.mutants"
      clean(report.text(mutants), name)
      kept(report.json(mutants), name, function(value) return value.mutants[1].file end)
    end
  end)

  it("is plain where a program, a profile, a table of nccl-tests or a log has it", function()
    local simulate, monitor = require "pipeplan.cli.simulate", require "pipeplan.cli.monitor"
    local directory = files.directory {}
    local function copy_of(path, ending)
      local file = assert(io.open(path, "rb"))
      local body = file:read "a"
      file:close()
      local name = file_name(any())
      write(directory .. "/" .. name .. ending, body)
      return directory .. "/" .. name .. ending, name
    end
    local plan = directory .. "/plan.json"
    write(plan, json.encode(json.shape(planning.plan(planning.deepseek), schema)))
    for _ = 1, 12 do
      local path, name = copy_of("tests/data/pytorch/ZBVZeroBubble_P4_M8.csv", ".csv")
      for _, format in ipairs { "text", "svg", "trace", "json" } do
        local shown = simulate.run { path, "--format", format }
        if type(shown) ~= "string" then
          local parts = {}
          for piece in shown do parts[#parts + 1] = piece end
          shown = table.concat(parts)
        end
        clean(shown, name)
      end
      path, name = copy_of("examples/monitor/straggler.log", ".log")
      clean((monitor.run { plan, path }), name)
      clean((monitor.run { plan, path, "--format", "json" }), name)
      path, name = copy_of("tests/data/measured/sendrecv-4xH100.txt", ".txt")
      local measured = planning.plan(planning.mixtral, { cluster = { network = { measured = { path } } } })
      clean(text.render(measured), name)
      clean(markdown.render(measured), name)
    end
  end)

  it("takes as many columns as it is shown in, and is never cut inside a character", function()
    local format = require "pipeplan.base.format"
    for round = 1, 400 do
      local name = any() .. " " .. any()
      local width = 8 + round % 30
      for _, line in ipairs(format.wrap(name, width, "name  ")) do
        clean(line, name)
        assert.is_true(engine.text.width(line) <= width, line)
      end
      assert.is_true(engine.text.width(format.cut(name, width)) <= width)
      clean(format.cut(name, width), name)
      assert.equal(math.max(width, format.width(name)), engine.text.width(format.pad(name, width)))
    end
  end)
end)
