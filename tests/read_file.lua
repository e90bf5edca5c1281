-- SPDX-License-Identifier: Apache-2.0
-- read_file.lua: what a file holds; a file that cannot be read is an error.

return function(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end
