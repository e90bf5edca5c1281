-- What the command line says when a command fails in a way that is no answer.

require "pipeplan"

-- main{ "plan" } where the plan command is that function → exit status, standard error.
local function run(command)
  local kept, kept_module = io.stderr, package.loaded["pipeplan.cli.plan"]
  local written = {}
  io.stderr = { write = function(_, ...) written[#written + 1] = table.concat { ... } end }  -- luacheck: ignore 122
  package.loaded["pipeplan.cli.plan"] = { run = command }
  local status = require "pipeplan.cli.main" { "plan" }
  io.stderr, package.loaded["pipeplan.cli.plan"] = kept, kept_module  -- luacheck: ignore 122
  return status, table.concat(written)
end

describe("a command that fails", function()
  it("by a mistake of ours asks to be reported, with where it was", function()
    local status, text = run(function() return nil .. "x" end)
    assert.equal(70, status)
    assert.matches("^pipeplan: internal error, please report it\n.*main_spec%.lua:%d+: attempt to concatenate", text)
  end)

  it("for want of memory says so", function()
    local status, text = run(function() error("not enough memory", 0) end)  -- as Lua raises it
    assert.equal(70, status)
    assert.equal("pipeplan: out of memory\n", text)
  end)
end)
