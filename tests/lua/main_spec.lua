-- SPDX-License-Identifier: Apache-2.0
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

  it("for want of memory says so, what it did, and what is known of where", function()
    local status, text = run(function() error("not enough memory", 0) end)  -- as Lua raises it
    assert.same({ 4, "pipeplan: out of memory (in pipeplan plan)\n" }, { status, text })
    status, text = run(function() error "engine.search: not enough memory for 256 candidates" end)  -- as the engine does
    assert.same({ 4, "pipeplan: out of memory: engine.search: not enough memory for 256 candidates (in pipeplan plan)\n" }, { status, text })
  end)

  it("for want of memory does so also where something was to be made of its errors", function()
    local failure = require "pipeplan.base.failure"
    assert.same({ false, "no memory of ours" }, { failure.try(error, "no memory of ours", 0) })
    local status = run(function() failure.try(error, "not enough memory", 0) end)
    assert.equal(4, status)
    status = run(function() failure.try(failure.of_host, { kind = "memory" }, "policy_error", "a rule") end)
    assert.equal(4, status)
  end)
end)
