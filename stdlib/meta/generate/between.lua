-- SPDX-License-Identifier: Apache-2.0
-- between.lua: a page of the manual with what stands between `<!-- marker -->` and `<!-- end -->` made anew.

return function(page, marker, text)
  local before, after = page:match("^(.-\n<!%-%- " .. marker .. " %-%->\n).-(<!%-%- end %-%->.*)$")
  return assert(before, "no marker " .. marker) .. text .. "\n" .. after
end
