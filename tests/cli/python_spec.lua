-- SPDX-License-Identifier: Apache-2.0
-- examples/torch is a package: pyproject.toml names what there is, what trains uses nothing of what measures, and ruff finds nothing.

local function output_of(command)
  local handle <close> = io.popen("env -u LD_PRELOAD " .. command .. " 2>&1")
  return handle:read "a"
end

local read = require "read_file"

describe("the Python of examples/torch", function()
  it("has its packages named in pyproject.toml, in the program's version", function()
    local project = read "examples/torch/pyproject.toml"
    local named = project:match "\npackages = %[([^%]]*)%]"
    local count = 0
    for folder in output_of("ls -d examples/torch/*/__init__.py"):gmatch "examples/torch/([%w_]+)/" do
      assert.is_truthy(named:find('"' .. folder .. '"', 1, true), folder)
      count = count + 1
    end
    assert.equal(count, select(2, named:gsub('"[%w_]+"', "")))
    assert.equal(read("CMakeLists.txt"):match "project%(pipeplan VERSION ([%d.]+)", project:match '\nversion = "([^"]+)"')
  end)

  it("trains without what measures", function()
    assert.equal("", output_of "grep -nE '^ *(from|import) (\\.\\.)?measuring' examples/torch/pipeline/*.py examples/torch/train_step.py")
    assert.are_not.equal("", output_of "grep -nE '^from measuring' examples/torch/profile_stage.py")   -- grep works
  end)

  it("is clean to ruff", function()
    if not output_of("sh -c 'ruff --version'"):find "^ruff %d" then return pending "no ruff here" end
    local command = "ruff check --no-cache --config examples/torch/pyproject.toml examples/torch tests/torch"
    assert.matches("^All checks passed!", output_of(command))
  end)

  it("says what each function takes and gives, to mypy", function()
    if not output_of("sh -c 'mypy --version'"):find "^mypy %d" then return pending "no mypy here" end
    assert.matches("^Success: ", output_of "sh -c 'cd examples/torch && mypy --cache-dir /dev/null'")
  end)
end)
