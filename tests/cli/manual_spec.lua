-- SPDX-License-Identifier: Apache-2.0
-- The manual, README.md and docs/*.md: shown outputs are what the program prints (scripts/update-readme writes them), every command runs or
-- says why not, and every file, link and option that a page names exists. A page's sessions run in order, in one directory.

local manual = require "manual"
local program = require "program"

local read = require "read_file"

local function exists(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end

local pages = manual.pages()
local texts = {}
for _, path in ipairs(pages) do texts[path] = read(path) end

-- Folders of the source tree that pages name files of.
local folders = { docs = true, engine = true, examples = true, policies = true, scripts = true, stdlib = true, tests = true }

-- The help of a command, asked once.
local helps = {}
local function help_of(command)
  helps[command] = helps[command] or program.run(command .. " --help")
  return helps[command]
end

-- "policy check" of "policy check --policy FILE"
local function command_of(arguments)
  local first, second = arguments:match "^([%l-]+) ?([%l-]*)"
  if first == "policy" and second and second:find "^%l" then return "policy " .. second end
  return first or ""
end

for _, path in ipairs(pages) do
  describe(path, function()
    local text = texts[path]
    local shell = manual.shell(os.getenv "PIPEPLAN")
    teardown(function() shell:close() end)

    for i, block in ipairs(manual.blocks(text)) do
      if not manual.generated[block.kind] then
        it(string.format("shows what is printed: block %d, %s %s", i, block.kind, block.name), function()
          assert.equal(shell:output(block), block.shown)
        end)
      end
    end

    it("has no commands that nothing runs without saying why", function()
      for _, block in ipairs(manual.commands(text)) do
        local place = path .. ":" .. block.line
        assert.is_truthy(block.note, place .. ": no marker above these commands")
        local test = block.note:match "^run by: (%S+)$"
        if test then
          assert.is_truthy(read(test):find(path, 1, true), place .. ": " .. test .. " does not read this page")
        else
          assert.matches("^not run: %S+ %S+", block.note, nil, nil, place)
        end
      end
    end)

    it("has commands in its text that run, or where they stand for many have options that there are", function()
      for _, span in ipairs(manual.spans(text)) do
        local arguments = span.text:match "^pipeplan (.+)$"
        if arguments then
          local place = string.format("%s:%d: pipeplan %s", path, span.line, arguments)
          local help = help_of(command_of(arguments))
          assert.equal(0, help.status, place)
          if arguments:find "%f[%w]%u[%u%d]+%f[%W]" or arguments:find "…" then   -- SPEC, FILE: for many
            for option in arguments:gmatch "%f[%S](%-%-[%w_-]+)" do assert.is_truthy(help.stdout:find(option, 1, true), place) end
          elseif arguments:find " " then
            local result = { stdout = "" }
            for part in (arguments:gsub("\\| pipeplan ", "\n") .. "\n"):gmatch "([^\n]*)\n" do
              result = program.run(part, result.stdout)
              assert.is_true(result.status <= 1, place .. ": " .. result.stderr)
            end
          end
        end
      end
    end)

    it("names files that there are", function()
      for _, span in ipairs(manual.spans(text)) do
        local name = span.text:match "^[%w_./-]+"
        local folder = name and name:match "^(%l+)/"
        if folder and folders[folder] and not span.text:find "NAME" and not span.text:find "%*" then
          assert.is_true(exists(name), string.format("%s:%d: %s", path, span.line, name))
        end
      end
    end)

    it("has links that lead somewhere", function()
      for _, link in ipairs(manual.links(text)) do
        local place = string.format("%s:%d: %s#%s", path, link.line, link.path, link.anchor)
        local target = path
        if link.path ~= "" then target = (path:match "^docs/" and "docs/" or "") .. link.path end
        target = target:gsub("^docs/%.%./", "")
        assert.is_true(exists(target), place)
        if link.anchor ~= "" then assert.is_true(manual.anchors(texts[target] or read(target))[link.anchor], place) end
      end
    end)
  end)
end

describe("the manual", function()
  it("shows no complaint of the program but where one is meant", function()
    local page = "<!-- session%s -->\n```console\n$ pipeplan plan none.json\n```\n<!-- end -->\n"
    local _, problem = pcall(manual.render, page:format "", os.getenv "PIPEPLAN")
    assert.equal("a block of the kind session shows an error: pipeplan: none.json: cannot be read: No such file or directory", problem)
    assert.matches("\npipeplan: none.json: cannot be read", manual.render(page:format ": fails", os.getenv "PIPEPLAN"), 1, true)
  end)

  it("has a first page of 200 lines at most, which names every other page", function()
    assert.is_true(select(2, texts["README.md"]:gsub("\n", "")) <= 200)
    for _, path in ipairs(pages) do
      if path ~= "README.md" then assert.is_truthy(texts["README.md"]:find("](" .. path, 1, true), path) end
    end
  end)

  it("names tests that there are, for what it withstands", function()
    local count = 0
    for name in texts["docs/withstanding.md"]:gmatch "| `([%w_.]+)`[^|\n]* |\n" do
      local handle <close> = io.popen(string.format("ls tests tests/*/ | grep -F '%s'", name:match "[^.]+$"))
      assert.is_truthy(handle:read "l", name)
      count = count + 1
    end
    assert.is_true(count >= 8)
  end)

  it("names two set-up commands that exist", function()
    for _, script in ipairs { "scripts/plan", "scripts/test" } do
      assert.is_truthy(texts["README.md"]:find(script, 1, true))
      assert.is_true(exists(script))
    end
  end)
end)
