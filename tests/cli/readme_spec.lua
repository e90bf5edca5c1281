-- README.md shows what the program prints: scripts/update-readme writes it, this test notices when it was not run.

local program = require "program"

describe("README.md", function()
  local readme = assert(io.open "README.md"):read "a"

  local checked = 0
  for arguments, shown in readme:gmatch "<!%-%- run: (.-) %-%->\n```text\n(.-)```\n<!%-%- end %-%->" do
    checked = checked + 1
    it("shows what `pipeplan " .. arguments .. "` prints", function()
      assert.equal(program.run(arguments).stdout, shown)
    end)
  end

  it("shows the summary of the oracle table", function()
    if not os.getenv "PIPEPLAN_DATA" then
      pending "PIPEPLAN_DATA names no folder with the foreign data"
      return
    end
    local oracles = require "oracles.table"
    local shown = readme:match "<!%-%- oracles %-%->\n```text\n(.-)```\n<!%-%- end %-%->"
    assert.equal(table.concat(oracles.summary_lines(oracles.collect()), "\n") .. "\n", shown)
  end)

  it("shows a plan and a simulation, none of them unchecked", function()
    assert.is_true(checked >= 2)
    assert.equal(select(2, readme:gsub("<!%-%- run: ", "")), checked)
  end)

  it("names two set-up commands that exist", function()
    for _, script in ipairs { "scripts/plan", "scripts/test" } do
      assert.is_truthy(readme:find(script, 1, true))
      assert.is_truthy(io.open(script))
    end
  end)
end)
