-- SPDX-License-Identifier: Apache-2.0
-- What the program says of a name that nobody would give a thing is plain on both streams: no character that a terminal obeys or nobody sees,
-- no line that the name made; and it is no bug.

require "pipeplan"
local files = require "policy_files"
local json = require "pipeplan.base.json"
local names = require "hostile_names"
local program = require "program"

teardown(files.remove)

-- As an argument of a shell, which holds no zero byte.
local function quoted(text) return "'" .. text:gsub("%z", ""):gsub("'", "'\\''") .. "'" end

local function said(arguments, name, input)
  local result = program.run(arguments, input)
  for _, stream in ipairs { "stdout", "stderr" } do
    local wrong = names.wrong(result[stream])
    if wrong then error(string.format("%s on %s of %s, of the name %q:\n%s", wrong, stream, arguments, name, result[stream]), 0) end
  end
  assert.is_true(result.status <= 6, arguments .. "\n" .. result.stderr)
  return result
end

local commands = {
  "%s", "facts %s", "facts schema %s", "plan %s", "plan --%s", "plan --gpus=%s", "plan --model=%s", "plan --framework=%s", "plan --set=%s",
  "plan SPEC --set=tie_fraction=%s", "plan SPEC --set=%s=1", "plan SPEC --why=%s", "plan SPEC --why=schedule=%s", "plan SPEC --date=%s",
  "plan SPEC --policy=%s", "plan SPEC --policies=%s", "plan SPEC --format=%s", "plan SPEC --accelerator=%s", "plan SPEC --measured=%s",
  "plan SPEC --profile=%s", "plan SPEC -o /nowhere/%s", "plan --jsonl --jobs=%s", "simulate %s", "simulate ./%s.csv", "simulate 1f1b --ranks=%s",
  "simulate 1f1b --ranks=4 --microbatches=8 --times=%s", "simulate 1f1b --ranks=4 --microbatches=8 --runtime=%s",
  "simulate 1f1b --ranks=4 --microbatches=8 --profile=%s", "monitor %s x", "monitor README.md %s", "policy %s", "policy test %s",
  "policy test examples/sites --filter=%s", "policy mutate %s", "policy init %s", "policy diff %s default", "policy diff default default %s",
  "policy check --search=%s", "policy check --policy=%s --format=sarif", "policy show --policy=%s",
}

describe("a name made of anything is plain where it is complained of:", function()
  local any = names.generator(3)

  it("on the command line", function()
    for _, command in ipairs(commands) do
      local name = any()
      local arguments = command:gsub("SPEC", "examples/specs/7b-fits-one-gpu.json"):gsub("%%s", function() return quoted(name) end)
      assert.is_true(said(arguments, name).status > 0, arguments)
    end
  end)

  it("in a spec: a key, a value, a line of many", function()
    for _ = 1, 6 do
      local name = any()
      local lines = {}
      for i, spec in ipairs { { [name] = 1 }, { cluster = { [name] = 1 } }, { cluster = { gpus = name } }, { framework = name },
                              { model = { [name] = 1 } }, { cluster = { gpus = 8, accelerator = name } }, name } do
        lines[i] = json.encode(spec)
        assert.equal(2, said("plan " .. quoted(files.write("spec.json", lines[i])), name).status)
      end
      lines[#lines + 1] = '{"cluster": "' .. name
      said("plan --jsonl", name, table.concat(lines, "\n"):gsub("\nFORGED", " FORGED") .. "\n")
    end
  end)

  it("in a policy: raised, unknown, asked for, stated", function()
    for _ = 1, 6 do
      local name = any()
      for text, status in pairs {
        ["error(%q, 0)"] = 6, ["local x = %q; x()"] = 6, ["require(%q)"] = 6, ["site(%q) set { [%q] = 1 }"] = 6,
        ["reject { id = %q, gpus = 1, message = 'm' }"] = 6, ["reject { id = 'x', [%q] = 1, message = 'm' }"] = 6,
        ["reject { id = 'x', schedule = %q, message = 'm' }"] = 6, ["reject { id = 'x', gpus = under(%q), message = 'm' }"] = 6,
        ["reject { id = 'x', when = function() error(%q, 0) end, message = 'm' }"] = 3,
        ["warn { id = 'x', when = function(f) return f[%q] end, message = 'm' }"] = 3,
      } do
        local path = files.write(name:gsub("[%z/]", "_") .. ".lua", (text:gsub("%%q", function() return string.format("%q", name) end)))
        local result = said("plan examples/specs/deepseek-v3.json --policy " .. quoted(path), name)
        assert.equal(status, result.status, text .. "\n" .. result.stderr)
      end
    end
  end)
end)
