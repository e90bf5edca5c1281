-- `--help` of every command: on standard output, no wider than a terminal, with examples that run.

require "pipeplan"
local program = require "program"

local commands = { "", "plan", "simulate", "facts", "policy", "policy show" }

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
        if arguments then
          local result = program.run(arguments)
          count = count + 1
          assert.equal(0, result.status, line .. ": " .. result.stderr)
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
  end)
end)
