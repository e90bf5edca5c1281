-- SPDX-License-Identifier: Apache-2.0
-- `--help` of every command: on standard output, no wider than a terminal, with examples that run.

require "pipeplan"
local program = require "program"

local commands = { "", "plan", "lint", "simulate", "monitor", "facts", "policy", "policy init", "policy pin", "policy show", "policy check", "policy test",
                   "policy diff", "policy eval", "policy mutate" }

-- A directory in which the examples run: they write files, and read some that their user has.
local place = os.tmpname()
os.remove(place)
assert(os.execute(string.format("mkdir -p %s/sites && ln -s '%s/tests' %s && cp -r '%s/examples' %s", place, os.getenv "PIPEPLAN_SOURCE",
                                place, os.getenv "PIPEPLAN_SOURCE", place)))
-- An override of the site expires in 2027; that of its copy does when nobody runs this any more.
assert(os.execute(string.format("cd %s && sed -i 's/2027-/2999-/' examples/sites/aws-p5*.lua && "
                                .. "sed -i '/expires/s/$/  -- check: ignore expires_late: of a test/' examples/sites/aws-p5.lua && "
                                .. "cp examples/sites/aws-p5.lua site.lua && cp site.lua old.lua", place)))
assert(os.execute(string.format("tr -d '\\n' < '%s/tests/policy/dense.json' > %s/specs.jsonl", os.getenv "PIPEPLAN_SOURCE", place)))
teardown(function() os.execute("rm -r " .. place) end)

-- Those that take a minute are run by tests of their own; those that show what is not planned, or not kept, end with 1.
local slow = { ["--boundary"] = true, ["tests/policy "] = true, ["policy test examples/sites\n"] = true }
local refused = { ["specs/rules/"] = true, ["straggler.log"] = true, ["<specs.jsonl"] = true }

local function contains_one(text, words)
  for word in pairs(words) do
    if text:find(word, 1, true) then return true end
  end
  return false
end

-- → status, text of both streams
local function run_there(arguments)
  local handle = io.popen(string.format("cd %s && env -u LD_PRELOAD '%s' %s 2>&1; echo \"status $?\"", place, os.getenv "PIPEPLAN", arguments))
  local text, status = handle:read("a"):match "^(.*)status (%d+)\n$"
  handle:close()
  return tonumber(status), text
end

local function each_line(text)
  return text:gmatch("([^\n]*)\n")
end

for _, command in ipairs(commands) do
  local name = command == "" and "pipeplan" or command
  describe("the help of " .. name, function()
    local help = program.run(command .. " --help")

    it("is printed on standard output with exit 0, and -h is the same", function()
      assert.equal(0, help.status)
      assert.equal("", help.stderr)
      assert.equal(help.stdout, program.run(command .. " -h").stdout)
    end)

    it("has lines of at most 100 columns, in groups, and examples", function()
      for line in each_line(help.stdout) do assert.is_true(utf8.len(line) <= 100, line) end
      assert.matches("^Usage: pipeplan", help.stdout)
      assert.matches("\n\nExamples:\n", help.stdout, 1, true)
    end)

    it("has examples that run as they stand", function()
      local count = 0
      for line in each_line(help.stdout:match("Examples:\n(.*)$") .. "\n") do
        local arguments = line:match("^   pipeplan (.*)$")
        if arguments and not contains_one(arguments .. "\n", slow) then
          local status, text = run_there(arguments)
          count = count + 1
          assert.equal(contains_one(arguments, refused) and 1 or 0, status, line .. ": " .. text)
        end
      end
      assert.is_true(count > 0)
    end)
  end)
end

describe("a command", function()
  it("that is asked for help answers before it looks at anything else", function()
    assert.equal(0, program.run("plan no-such-file.json --why nonsense --help").status)
  end)

  it("without arguments that it needs says how it is used, on standard error", function()
    local result = program.run("")
    assert.equal(2, result.status)
    assert.equal("", result.stdout)
    assert.matches("^Usage: pipeplan COMMAND", result.stderr)
  end)
end)

describe("options of plan", function()
  local spec = "examples/specs/deepseek-v3.json --date 2026-11-27 "

  it("are written with hyphens or underscores", function()
    for _, pair in ipairs { { "--global_batch_size 8192", "--global-batch-size 8192" }, { "--per_gpu 200Gbps", "--per-gpu=200Gbps" },
                            { "--micro_batch_size 2", "--micro-batch-size=2" }, { "--alltoall_kernel false", "--alltoall-kernel false" } } do
      local one, other = program.run("plan " .. spec .. pair[1]), program.run("plan " .. spec .. pair[2])
      assert.equal(one.stdout, other.stdout)
      assert.is_true(one.status < 2, one.stderr)
      assert.are_not.equal(one.stdout, program.run("plan " .. spec).stdout)
    end
  end)

  it("are every field of the spec, in both spellings", function()
    local fields = require "pipeplan.input.fields"
    for _, entry in ipairs(fields.list) do
      for _, name in ipairs { entry.name, (entry.name:gsub("_", "-")) } do
        -- a value that no field takes: the message names the option, so the parser knows it
        local result = program.run("plan --" .. name .. "= ")
        assert.equal(2, result.status)
        assert.is_nil(result.stderr:find("unknown option", 1, true), name .. ": " .. result.stderr)
      end
    end
  end)

  it("that do not exist are answered with the nearest", function()
    local result = program.run("plan " .. spec .. "--globalbatch-size 3")
    assert.equal(2, result.status)
    assert.matches("unknown option '--globalbatch-size', did you mean '--global-batch-size'?", result.stderr, 1, true)
    assert.equal("pipeplan: plan: unknown option '--globl-bach-size', did you mean '--global-batch-size'?\n",
                 program.run("plan " .. spec .. "--globl-bach-size 3").stderr)
    assert.equal("pipeplan: plan: unknown option '--frobnicate'\n", program.run("plan " .. spec .. "--frobnicate").stderr)
  end)
end)
