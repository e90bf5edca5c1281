-- SPDX-License-Identifier: Apache-2.0
-- hostile_names.lua: names that nobody would give a thing, and what must not be left of them where people read.

local names = {}

local pieces = {
  "a", "plan", " ", "-", "_", ".", "x_y_", "\27[31m", "\27]0;title\7", "\nFORGED", "\r", "\t", "\1", "\127", "\u{80}", "\u{9B}31m",
  "\u{9F}", "\u{202A}", "\u{202E}", "\u{2066}", "\u{2069}", "\u{200E}", "\u{200F}", "\u{61C}", "\u{200B}", "\u{200D}", "\u{2028}",
  "\u{2029}", "\u{FEFF}", "\u{AD}", "\u{2060}", "\u{E0041}", "\u{FFFE}", "\xFF", "\x80", "\xC3", "\xE2\x82", "\xED\xA0\x80",
  "\xF4\x90\x80\x80", "漢字", "e\u{301}", "🚀", "é", "|", "`", "*", "<b>", "&amp;", "&", "]]>", "-->", '"', "'", "\\", "%", "%s", "%0A",
  "{gpus}", "{", "}", ",", ":", "::error::", "#", "[x](y)", "~~",
}

-- A generator of such names (Numerical Recipes' linear congruence): the same on every machine. `allowed(piece)`: nil, all.
function names.generator(seed, allowed)
  local state, some = seed, {}
  for _, piece in ipairs(pieces) do
    if not allowed or allowed(piece) then some[#some + 1] = piece end
  end
  local function draw(n)
    state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
    return (state >> 8) % n + 1
  end
  return function()
    local parts = {}
    for i = 1, draw(6) do parts[i] = some[draw(#some)] end
    return table.concat(parts)
  end
end

-- Code points that no text for people may hold, from Unicode's own lists and apart from the engine's: Cc, Zl, Zp; Bidi_Control; zero-width.
local forbidden = {
  { 0x00, 0x09 }, { 0x0B, 0x1F }, { 0x7F, 0x9F }, { 0xAD, 0xAD }, { 0x61C, 0x61C }, { 0x200B, 0x200F }, { 0x2028, 0x202E },
  { 0x2060, 0x206F }, { 0xFEFF, 0xFEFF }, { 0xFFF9, 0xFFFB }, { 0xFFFE, 0xFFFF }, { 0xE0000, 0xE007F },
}

-- nil, or what is wrong with a text that people read: bytes that are no UTF-8, a forbidden code point, a line that a name made.
function names.wrong(text)
  if not utf8.len(text) then return "no UTF-8" end
  for _, code in utf8.codes(text) do
    for _, range in ipairs(forbidden) do
      if code >= range[1] and code <= range[2] then return string.format("U+%04X", code) end
    end
  end
  return ("\n" .. text):find("\nFORGED", 1, true) and "a forged line" or nil
end

return names
