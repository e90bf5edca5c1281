-- SPDX-License-Identifier: Apache-2.0
-- Where the stack is small, as `ulimit -s` or a thread of another C library leaves it, or an interpreter has a locale: the same answers, or a
-- sentence.

local program = require "program"

local small = "sh -c 'ulimit -s 256; exec \"$@\"' sh"
local specs = [[{ "cluster": { "gpus": 64, "accelerator": "H100-SXM", "network": { "fabric": "infiniband", "per_gpu": "400Gbps" } }, ]]
  .. [["model": "examples/models/mixtral-8x7b.json", "training": { "tokens": "1T", "global_batch_size": 512 } }]] .. "\n"

describe("with a stack of 256 KB", function()
  for _, command in ipairs {
    "plan examples/specs/deepseek-v3.json --date 2026-12-01 --explain",
    "plan --jsonl --jobs 2 --date 2026-12-01",
    "policy check --no-witnesses --date 2026-12-01",
    "simulate zb_auto --ranks 8 --microbatches 16 --times 1,1,1",
  } do
    it("says the same in " .. command, function()
      local wide = program.run(command, specs:rep(3))
      assert.equal(0, wide.status, wide.stderr)
      assert.same(wide, program.run(command, specs:rep(3), small))
    end)
  end

  it("the module says what it needs, for it stands on the stack of its interpreter", function()
    local handle = io.popen(small .. " lua5.4 -e 'print(pcall(require, \"pipeplan\"))' 2>&1")
    local text = handle:read "a"
    handle:close()
    assert.is_truthy(text:find "pipeplan needs a stack of 1024 KiB, this thread has %d+ KiB left", text)
  end)
end)

describe("with a locale that writes 1,5", function()
  it("the module says which it needs", function()
    local place = os.tmpname()
    os.remove(place)
    os.execute(string.format("mkdir %s && localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", place, place))
    local handle = io.popen("LOCPATH=" .. place .. " lua5.4 -e 'print(os.setlocale \"de_DE.UTF-8\", pcall(require, \"pipeplan\"))' 2>&1")
    local text = handle:read "a"
    handle:close()
    os.execute("rm -r " .. place)
    if text:find "^nil" then return pending "localedef makes no locale de_DE.UTF-8 here (Debian: locales)" end
    assert.is_truthy(text:find("this interpreter's locale 1,5: os.setlocale('C', 'numeric')", 1, true), text)
  end)
end)
