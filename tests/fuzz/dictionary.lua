-- SPDX-License-Identifier: Apache-2.0
-- dictionary.lua: words that files of pipeplan hold, for libFuzzer: names of fields, keys of config.json, statements, schedules, log lines.
-- lua5.4 tests/fuzz/dictionary.lua > DICTIONARY

local words = {}

-- Every quoted word and every plain name in some of our own files: whatever a reader knows stands there.
local files = {
  "stdlib/vocabulary.lua", "stdlib/input/fields.lua", "stdlib/catalog/families.lua", "stdlib/catalog/accelerators.lua", "stdlib/catalog/links.lua",
  "stdlib/catalog/kernels.lua", "stdlib/catalog/frameworks.lua", "stdlib/catalog/schedules.lua", "stdlib/schema/profile.lua",
  "stdlib/input/hf_config.lua", "stdlib/input/nccl.lua", "stdlib/input/topology.lua", "stdlib/input/times.lua", "policies/default/parameters.lua",
}
for _, name in ipairs(files) do
  local file = io.open(name)
  if file then
    for word in file:read("a"):gmatch '"([%w_.%-]+)"' do words[word] = true end
    file:close()
  end
end
for _, word in ipairs { "reject", "refuse", "row", "set", "change", "disable", "kernel", "invariant", "parameter", "prefer", "warn", "under", "over",
                        "at_most", "at_least", "between", "none_of", "multiple_of", "odd", "even", "any", "when", "function(f)", "return", "true",
                        "false", "null", "1e308", "-1", "0", "9223372036854775807", "9007199254740993", "1e400", "NaN", "0.5", "14.8T", "80GiB",
                        "400Gbps", "8%", "iteration ", "elapsed time per iteration (ms): ", "GPU-I", "NODE", "NV18", "PIX", "SYS", "float", "\\x00",
                        "\\xff", "\\xe2\\x80\\xae", "[[", "{", "}", "[", "]" } do
  words[word] = true
end

local list = {}
for word in pairs(words) do list[#list + 1] = word end
table.sort(list)
for _, word in ipairs(list) do print(string.format('"%s"', word)) end
