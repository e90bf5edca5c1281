-- SPDX-License-Identifier: Apache-2.0
-- untold.lua: what of a spec's recipe decides memory or time and stands in no key of the framework: "training.lora_rank 16: adapters"; nil:
-- nothing. A framework says what it has another way for (catalog/frameworks: told).

local fields = {
  { "lora_rank", what = "adapters" },
}

return function(f)
  local told = f.entry.told or {}
  for _, field in ipairs(fields) do
    local name = field[1]
    local value = f.request.training[name]
    if value ~= nil and not told[name] then return string.format("training.%s %s: %s", name, value, field.what) end
  end
end
