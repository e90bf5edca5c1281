-- README.md shows what the program prints: scripts/update-readme writes it, this test notices when it was not run. The tutorial's commands run
-- in order, in one directory.

local readme = require "readme"

describe("README.md", function()
  local text = assert(io.open "README.md"):read "a"
  local blocks = readme.blocks(text)
  local shell = readme.shell(os.getenv "PIPEPLAN")
  local kinds = {}

  teardown(function() shell:close() end)

  for i, block in ipairs(blocks) do
    kinds[block.kind] = (kinds[block.kind] or 0) + 1
    it(string.format("shows what is printed: block %d, %s %s", i, block.kind, block.name), function()
      assert.equal(shell:output(block), block.shown)
    end)
  end

  it("shows a plan, a simulation and a tutorial, none of them unchecked", function()
    assert.is_true(kinds.run >= 2 and kinds.file >= 2 and kinds.session >= 2)
    for _, kind in ipairs { "run", "file", "fidelity", "session" } do
      assert.equal(select(2, text:gsub("<!%-%- " .. kind .. "[: ]", "")), kinds[kind])
    end
    assert.equal(select(2, text:gsub("<!%-%- end %-%->", "")), #blocks)
  end)

  it("names two set-up commands that exist", function()
    for _, script in ipairs { "scripts/plan", "scripts/test" } do
      assert.is_truthy(text:find(script, 1, true))
      assert.is_truthy(io.open(script))
    end
  end)
end)
