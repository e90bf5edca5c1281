-- SPDX-License-Identifier: Apache-2.0
-- Man pages and completions, which are made from the parsers: every option that a command's help shows is in them; they are good roff and good
-- scripts of their shells, and Tab completes in them.

require "pipeplan"
local commands = require "pipeplan.cli.commands"
local policy = require "pipeplan.cli.policy"
local program = require "program"

local folder = os.tmpname()
os.remove(folder)
assert(os.execute(string.format("env -u LD_PRELOAD '%s/scripts/generate-manual' '%s' '%s'", os.getenv "PIPEPLAN_SOURCE", os.getenv "PIPEPLAN",
                                folder)))
teardown(function() os.execute("rm -r " .. folder) end)

local completions = { bash = "/bash/pipeplan", fish = "/fish/pipeplan.fish", zsh = "/zsh/_pipeplan" }

local function read(path)
  local file <close> = assert(io.open(folder .. path))
  return file:read "a"
end

local function output_of(command)
  local handle <close> = io.popen("env -u LD_PRELOAD " .. command .. " 2>&1")
  return handle:read "a"
end

local function there_is(tool) return output_of("sh -c 'command -v " .. tool .. "'") ~= "" end

-- "" and every command, as it is typed.
local all = { "" }
for _, name in ipairs(commands.list) do
  all[#all + 1] = name
  if name == "policy" then
    for _, verb in ipairs(policy.verbs) do all[#all + 1] = "policy " .. verb end
  end
end

-- Options of the help, and those that it says there are also: { "--policy", "-o", … }.
local function options_of(command)
  local list = {}
  local help = program.run(command .. " --help").stdout
  for name in help:gmatch "\n +%-%w, (%-%-[%w_-]+)" do list[#list + 1] = name end
  for name in help:gmatch "\n +(%-%-?[%w_-]+)" do list[#list + 1] = name end
  for name in help:gmatch "%[(%-%-[%w_-]+)" do list[#list + 1] = name end
  if help:find("also: -o FILE", 1, true) then list[#list + 1] = "-o" end
  return list
end

-- What a completion says of a command.
local part_of = {
  bash = function(text, command) return text:match('\n        "' .. command .. '"%)\n            options="([^"]*)"') end,
  fish = function(text, command)
    local at = command == "" and "test (count (commandline -opc)) -eq 1" or "__pipeplan_at " .. command
    local lines = {}
    for line in text:gmatch "[^\n]+" do
      if line:find("-n '" .. at .. "' ", 1, true) then
        lines[#lines + 1] = line:gsub("%-l ([%w_-]+)", "--%1 "):gsub("%-s (%w)", "-%1 ")
      end
    end
    return table.concat(lines, "\n")
  end,
  zsh = function(text, command)
    return text:match("\n_pipeplan" .. (command == "" and "" or "_" .. command:gsub(" ", "_")) .. "%(%) (%b{})\n")
  end,
}

for _, command in ipairs(all) do
  describe("of " .. (command == "" and "pipeplan" or command), function()
    local options = options_of(command)
    if command ~= "policy" then assert(#options > 0, command) end   -- whose commands have them

    it("the man page has every option, and what arguments are", function()
      local page = read("/man/pipeplan" .. (command == "" and "" or "-" .. command:gsub(" ", "-")) .. ".1"):gsub("\\%-", "-")
      for _, option in ipairs(options) do assert.is_truthy(page:find("\\fB" .. option .. "\\fR", 1, true), option) end
      local arguments = program.run(command .. " --help").stdout:match "\nArguments:\n(.-)\n\n" or ""
      for name, meaning in (arguments .. "\n"):gmatch " +(%l+)  +(%S[^\n]*)\n" do
        assert.is_truthy(page:find("\\fI" .. name .. "\\fR\n" .. meaning, 1, true), name)
      end
    end)

    it("the completions have every option", function()
      for shell, path in pairs(completions) do
        local part = assert(part_of[shell](read(path), command), shell)
        for _, option in ipairs(options) do
          assert.matches("%f[%w-]" .. option:gsub("%-", "%%-") .. "%f[^%w_-]", part, nil, nil, shell .. ": " .. option)
        end
      end
    end)
  end)
end

describe("the man pages", function()
  it("are one for each command, and good roff", function()
    local list = output_of("ls " .. folder .. "/man")
    assert.equal(#all, select(2, list:gsub("\n", "")))
    if not there_is "man" then return pending "no man here: man-db has it" end
    for page in list:gmatch "[^\n]+" do
      assert.equal("", output_of(string.format("sh -c 'man --warnings -l %s/man/%s >/dev/null'", folder, page)), page)
    end
  end)

  it("are listed and printed by facts, which knows no other", function()
    assert.equal(read "/man/pipeplan-plan.1", program.run("facts man pipeplan-plan").stdout)
    assert.equal(2, program.run("facts man plan").status)
    assert.equal(2, program.run("facts completion tcsh").status)
    assert.equal("bash\nfish\nzsh\n", program.run("facts completion").stdout)
  end)
end)

local lines = {   -- what Tab makes of it, as the arguments of pipeplan
  { "pipeplan pol", "policy" }, { "pipeplan policy ch", "policy check" }, { "pipeplan plan --sched", "plan --schedule" },
  { "pipeplan plan --schedule dualpipev", "plan --schedule dualpipev" }, { "pipeplan policy check --fail-on w", "policy check --fail-on warning" },
  { "pipeplan simulate interleaved_z", "simulate interleaved_zero_bubble" }, { "pipeplan facts schema pr", "facts schema profile" },
  { "pipeplan plan a", "plan a spec.json" }, { "pipeplan plan --gpus a", "plan --gpus a" }, { "pipeplan facts a", "facts accelerators" },
  { "pipeplan policy a", "policy a" },   -- words only, and none of these
  { "pipeplan policy check --policy a", "policy check --policy a spec.json" },
}

describe("Tab", function()
  for _, shell in ipairs { "bash", "zsh" } do
    it("completes commands, options, values and files in " .. shell, function()
      if not there_is(shell) then return pending("no " .. shell .. " here") end
      local typed, wanted = {}, {}
      for i, line in ipairs(lines) do typed[i], wanted[i] = "'" .. line[1] .. "'", line[2] end
      local script = os.getenv "PIPEPLAN_SOURCE" .. "/tests/cli/complete.py"
      assert.equal(table.concat(wanted, "\n") .. "\n", output_of(string.format("python3 '%s' %s %s %s", script, shell,
                                                                              folder .. completions[shell], table.concat(typed, " "))))
    end)
  end

  it("completes in fish", function()
    if not there_is "fish" then return pending "no fish here" end
    for _, line in ipairs(lines) do
      local word = line[2]:match "[^ ]+$"
      if not line[2]:find "spec.json$" and not line[1]:find "gpus" then
        local found = output_of(string.format("fish -c \"source %s; complete -C '%s'\"", folder .. completions.fish, line[1]))
        assert.matches("%f[%w-]" .. word:gsub("%-", "%%-") .. "%f[^%w_-]", found, nil, nil, line[1])
      end
    end
  end)
end)
