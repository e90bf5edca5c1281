-- SPDX-License-Identifier: Apache-2.0
-- digest.lua: SHA-256 of texts for specs, by coreutils.

local digest = {}

-- Hexadecimal SHA-256 of each text in a list, in order.
function digest.sha256(texts)
  local names, answers = {}, {}
  for i, text in ipairs(texts) do
    names[i] = os.tmpname()
    local file = assert(io.open(names[i], "wb"))
    file:write(text)
    file:close()
  end
  local pipe = assert(io.popen("sha256sum " .. table.concat(names, " ")))
  for line in pipe:lines() do answers[#answers + 1] = line:match "^%x+" end
  assert(pipe:close())
  for _, name in ipairs(names) do os.remove(name) end
  return answers
end

return digest
