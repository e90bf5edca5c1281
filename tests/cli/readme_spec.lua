-- README.md shows what the program prints: scripts/update-readme writes it, this test notices when it was not run.

local program = require "program"

describe("README.md", function()
  local readme = assert(io.open "README.md"):read "a"

  for arguments, shown in readme:gmatch "<!%-%- run: (.-) %-%->\n```text\n(.-)```\n<!%-%- end %-%->" do
    it("shows what `pipeplan " .. arguments .. "` prints", function()
      assert.equal(program.run(arguments).stdout, shown)
    end)
  end

  it("shows at least a plan and a simulation", function()
    local runs = select(2, readme:gsub("<!%-%- run: ", ""))
    assert.is_true(runs >= 2)
  end)

  it("names two set-up commands that exist", function()
    for _, script in ipairs { "scripts/plan", "scripts/test" } do
      assert.is_truthy(readme:find(script, 1, true))
      assert.is_truthy(io.open(script))
    end
  end)
end)
