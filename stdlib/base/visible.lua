-- SPDX-License-Identifier: Apache-2.0
-- visible.lua: what came from elsewhere (names, paths, messages) as it may stand in text for people: what a terminal would obey, or a
-- reader not see, is escaped, by one function of the engine (engine/core/text.h). That is done where text leaves and nowhere before: by
-- format.page and format.wrap for what is printed, by cli/output.lua for standard error. JSON and XML keep what they were given, each
-- escaped its own way.

local text = require("engine").text

local visible = {}

-- A text as one line: a line break is escaped too. What is escaped already stays as it is.
visible.line = text.visible

-- A text as the lines that it has.
function visible.lines(several)
  return (several:gsub("[^\n]+", visible.line))
end

-- A text with `replace(character)` for each character that would not be shown as it is. The text is UTF-8.
function visible.replace(one, replace)
  if visible.line(one) == one then return one end
  return (one:gsub(utf8.charpattern, function(character)
    return visible.line(character) ~= character and replace(character) or nil
  end))
end

return visible
