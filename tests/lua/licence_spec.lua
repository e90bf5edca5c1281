-- SPDX-License-Identifier: Apache-2.0
-- Each source file says under which licence it is, in a line of its own.

local source = os.getenv "PIPEPLAN_SOURCE"

local tag = "SPDX%-License%-Identifier: Apache%-2%.0"

-- Sources by their names; what tests take as input, and what a user fills in, is none.
local find = "cd '%s' && find .github engine stdlib policies scripts tests examples CMakeLists.txt -type f "
  .. "\\( -name '*.lua' -o -name '*.[ch]' -o -name '*.py' -o -name '*.sh' -o -name '*.cmake' -o -name '*.yml' -o -name '*.toml' "
  .. "-o -name '*.mjs' -o -name '*.sbatch' -o -name '*.in' -o -name CMakeLists.txt -o -perm -u+x \\) "
  .. "! -path 'tests/data/*' ! -path 'tests/fixtures/*' ! -path 'tests/hostile/*.lua' ! -path 'tests/hostile/corpus/*' "
  .. "! -path 'tests/fuzz/seeds/*' ! -path 'examples/launch/*' ! -path '*/__pycache__/*'"

describe("the licence", function()
  it("is named in each source file", function()
    local missing, count = {}, 0
    local handle <close> = io.popen(find:format(source))
    for path in handle:lines() do
      local file <close> = assert(io.open(source .. "/" .. path, "rb"))
      if not file:read("a"):find(tag) then missing[#missing + 1] = path end
      count = count + 1
    end
    assert.same({}, missing)   -- each wants the line: SPDX-License-Identifier: Apache-2.0
    assert.is_true(count > 500)
  end)

  it("is that of LICENSE", function()
    local file <close> = assert(io.open(source .. "/LICENSE"))
    assert.matches("Apache License%s+Version 2%.0", file:read "a")
  end)
end)
