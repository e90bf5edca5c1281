-- SPDX-License-Identifier: Apache-2.0
-- Which way arrows point. docs/design.md says what may use what; this reads every `require` of the Lua, every `#include` and call of the C.

local source = os.getenv "PIPEPLAN_SOURCE"

local function read(path)
  local file <close> = assert(io.open(source .. "/" .. path, "rb"))
  return file:read "a"
end

-- ---------------------------------------------------------------------------------------------------------------------------- the page

-- The names `in backticks` of a cell.
local function names(cell)
  local list = {}
  for name in cell:gmatch "`([^`]+)`" do list[#list + 1] = name end
  return list
end

-- The rows of the table under a heading: the cells of each. The heading row and its rule have no names.
local function rows(page, heading)
  local list = {}
  local part = (page .. "\n## "):match("\n## " .. heading .. "\n(.-)\n## ")
  for line in part:gmatch "[^\n]+" do
    local cells = {}
    for cell in line:gmatch "|%s*([^|]*)" do cells[#cells + 1] = cell end
    if #cells > 1 and #names(cells[1]) > 0 then list[#list + 1] = cells end
  end
  return list
end

-- From the page: layers from top to bottom, by name too, and the exceptions, as `problems` names them.
local function table_of(page)
  local layers, known = {}, {}
  for i, cells in ipairs(rows(page, "Which way arrows point")) do
    local layer = { name = names(cells[1])[1], order = i, places = names(cells[2]), uses = {} }
    for _, name in ipairs(names(cells[4])) do layer.uses[name] = true end
    layers[i], layers[layer.name] = layer, layer
  end
  for _, cells in ipairs(rows(page, "Known exceptions")) do
    known[table.concat(names(cells[1]), cells[1]:find "→" and " → " or ", ")] = true
  end
  return layers, known
end

-- ------------------------------------------------------------------------------------------------------------------------- the sources

-- What a `require` of ours names: a file; for a name that is put together the folder; for what others wrote its first word.
local function required(name)
  if name == "engine" then return "engine/lua/engine.c" end
  if name == "pipeplan" then return "stdlib/init.lua" end
  if name == "pipeplan.argparse" then return "argparse" end  -- embedded beside ours
  local root, rest = name:match "^(%l+)%.(.*)$"
  local folder = root == "pipeplan" and "stdlib/" or root == "generate" and "stdlib/meta/generate/"
  if not folder then return root or name end
  rest = rest:gsub("%.", "/")
  return folder .. rest .. (rest:find "/$" and "" or ".lua")
end

local function lua_arrows(path, text, add)
  if text:find "^%-%-%-@meta" then return end  -- declarations for editors
  text = text:gsub("%[%[[ \n].-%]%]", "")               -- texts, and comments of several lines
  for line in text:gmatch "[^\n]+" do
    line = line:gsub("^%s*%-%-.*", ""):gsub("%s%-%-%s.*", "")
    local _, wanted = line:gsub("%f[%w_.:`\"]require%s*[(\",]", "")
    local found = 0
    for name in line:gmatch '%f[%w_.:`"]require%(?,? ?"([%w_.]+)"' do
      add(path, required(name))
      found = found + 1
    end
    if found < wanted then add(path, "? " .. line) end
  end
end

-- `exists`: what an #include names stands beside the file, or below engine/.
local function c_arrows(path, text, add, exists)
  for name in text:gmatch '#include "([^"]+)"' do
    local beside = path:match "^.*/" .. name
    add(path, exists[beside] and beside or "engine/" .. name)
  end
end

-- The functions and tables that a C file defines, and all such names in it.
local function c_names(text)
  local defined, mentioned = {}, {}
  for line in text:gmatch "[^\n]+" do
    local name = line:match "^%a[%w_ *]*%f[%w_](pp_[%w_]+)%s*[(%[=]"
    if name and not line:find "^static" and (line:find "=" or not line:find ";%s*$") then defined[name] = true end
  end
  for name in text:gmatch "%f[%w_](pp_[%w_]+)" do mentioned[name] = true end
  return defined, mentioned
end

-- All files, and arrows: { from, to }, by `require` and `#include`; calls: the same from C file to C file, whatever the headers.
local function scan()
  local files, exists, arrows, calls = {}, {}, {}, {}
  local list <close> = io.popen("cd '" .. source .. "' && find stdlib policies/default engine -name '*.lua' -o -name '*.[ch]' | LC_ALL=C sort")
  for path in list:lines() do files[#files + 1], exists[path] = path, true end
  local where, mentions = {}, {}
  for _, path in ipairs(files) do
    local text = read(path)
    local function add(from, to) arrows[#arrows + 1] = { from = from, to = to } end
    if path:find "%.lua$" then lua_arrows(path, text, add) else c_arrows(path, text, add, exists) end
    if path:find "%.c$" then
      local defined
      defined, mentions[path] = c_names(text)
      for name in pairs(defined) do where[name] = path end
    end
  end
  for path, mentioned in pairs(mentions) do
    for name in pairs(mentioned) do
      if where[name] and where[name] ~= path then calls[#calls + 1] = { from = path, to = where[name] } end
    end
  end
  return files, arrows, calls
end

-- ---------------------------------------------------------------------------------------------------------------------------- problems

-- The layer of a file or folder, or of what others wrote (its name alone); the number of layers that it stands in.
local function layer_of(layers, path)
  local found, count = nil, 0
  for _, layer in ipairs(layers) do
    for _, place in ipairs(layer.places) do
      if place == path or place:find "/$" and path:sub(1, #place) == place then found, count = layer, count + 1 end
    end
  end
  return found, count
end

-- The circles of a graph { node = { node = true } }: each a sorted list of nodes that reach each other.
local function circles(graph)
  local reached = {}
  for node in pairs(graph) do
    local seen, stack = {}, { node }
    while #stack > 0 do
      for other in pairs(graph[table.remove(stack)] or {}) do
        if not seen[other] then seen[other], stack[#stack + 1] = true, other end
      end
    end
    reached[node] = seen
  end
  local list, done = {}, {}
  for node, seen in pairs(reached) do
    local circle = {}
    for other in pairs(seen) do
      if not done[node] and reached[other] and reached[other][node] then circle[#circle + 1] = other end
    end
    for _, other in ipairs(circle) do done[other] = true end
    table.sort(circle)
    if #circle > 1 then list[#list + 1] = circle end
  end
  return list
end

-- What is not as the layers say: { name = in words }; names as exceptions have them.
local function problems(layers, files, arrows, calls)
  local found, used, graphs, exists = {}, {}, {}, {}
  for _, path in ipairs(files) do
    exists[path] = true
    local _, count = layer_of(layers, path)
    if count ~= 1 then found[path] = string.format("%s stands in %d layers", path, count) end
  end
  for _, layer in ipairs(layers) do
    for name in pairs(layer.uses) do
      if layers[name] and layers[name].order <= layer.order then
        found[layer.name .. ": " .. name] = string.format("%s may not name %s: that is no row below it", layer.name, name)
      end
    end
  end
  local function inside(layer, from, to)
    local graph = graphs[layer.name] or {}
    graphs[layer.name] = graph
    graph[from] = graph[from] or {}
    if from ~= to then graph[from][to] = true end
  end
  for _, arrow in ipairs(arrows) do
    local from, to = layer_of(layers, arrow.from), layer_of(layers, arrow.to)
    local name = to and to.name or arrow.to
    if to and not exists[arrow.to] and not arrow.to:find "/$" then
      found[arrow.to] = string.format("%s uses %s, which is not there", arrow.from, arrow.to)
    elseif from and from == to then
      inside(from, arrow.from, arrow.to)
    elseif from and from.uses[name] then
      used[from.name .. " → " .. name] = true
    elseif from then
      found[arrow.from .. " → " .. arrow.to] = string.format("%s uses %s: %s may not use %s", arrow.from, arrow.to, from.name, name)
    end
  end
  for _, call in ipairs(calls) do
    local from, to = layer_of(layers, call.from), layer_of(layers, call.to)
    if from and from == to then inside(from, call.from, call.to) end
  end
  for _, graph in pairs(graphs) do
    for _, circle in ipairs(circles(graph)) do
      local name = table.concat(circle, ", ")
      found[name] = "in a circle: " .. name
    end
  end
  for _, layer in ipairs(layers) do
    for name in pairs(layer.uses) do
      if not used[layer.name .. " → " .. name] then
        found[layer.name .. " → " .. name] = string.format("%s does not use %s", layer.name, name)
      end
    end
  end
  return found
end

-- The problems that are not known, and the known that are none, in words.
local function judged(found, known)
  local list = {}
  for name, words in pairs(found) do
    if not known[name] then list[#list + 1] = words end
  end
  for name in pairs(known) do
    if not found[name] then list[#list + 1] = "no exception any more: " .. name end
  end
  table.sort(list)
  return list
end

describe("directions", function()
  it("are as docs/design.md has them, with the exceptions that it lists", function()
    local layers, known = table_of(read "docs/design.md")
    local files, arrows, calls = scan()
    assert.is_true(#layers >= 15 and #files > 200 and #arrows > 600 and #calls > 100)
    assert.same({}, judged(problems(layers, files, arrows, calls), known))
  end)

  -- That the test above can fail: a page and sources of three layers.
  local page = [[
# Page

## Which way arrows point

| layer | its files | what stands there | may use |
| --- | --- | --- | --- |
| `top` | `stdlib/top/` | | `middle` `bottom` |
| `middle` | `stdlib/middle/` `engine/middle.c` | | `bottom` `library` |
| `bottom` | `stdlib/bottom.lua` | | |

## Known exceptions

| what | why |
| --- | --- |
| `stdlib/bottom.lua` → `stdlib/top/one.lua` | |
| `stdlib/middle/a.lua`, `stdlib/middle/b.lua` | |
]]
  local sound = {
    files = { "stdlib/top/one.lua", "stdlib/middle/a.lua", "stdlib/middle/b.lua", "stdlib/bottom.lua" },
    texts = {
      ["stdlib/top/one.lua"] = 'local a = require "pipeplan.middle.a"\nrequire("pipeplan.bottom").run()\n',
      ["stdlib/middle/a.lua"] = '-- require "pipeplan.top.one"\nlocal b = require "pipeplan.middle.b"\npcall(require, "library.part")\n',
      ["stdlib/middle/b.lua"] = 'require("pipeplan.middle." .. name)\nrequire "pipeplan.middle.a"\nrequire "pipeplan.bottom"\n',
      ["stdlib/bottom.lua"] = 'local one = require "pipeplan.top.one"  -- one\n',
    },
  }

  local function of(changes, file)
    local arrows, files = {}, { table.unpack(sound.files) }
    files[#files + 1] = file
    for _, path in ipairs(sound.files) do
      lua_arrows(path, changes[path] or sound.texts[path], function(from, to) arrows[#arrows + 1] = { from = from, to = to } end)
    end
    local layers, known = table_of(changes.page or page)
    return judged(problems(layers, files, arrows, {}), known)
  end

  it("are read from requires and a page", function()
    assert.same({}, of {})
  end)

  it("are broken by an arrow that points up, or to what others wrote and the row does not name", function()
    assert.same({ "stdlib/middle/a.lua uses stdlib/top/one.lua: middle may not use top" },
                of { ["stdlib/middle/a.lua"] = sound.texts["stdlib/middle/a.lua"] .. 'require "pipeplan.top.one"' })
    assert.same({ "stdlib/top/one.lua uses stdlib/bottom/: top may not use stdlib/bottom/" },
                of { ["stdlib/top/one.lua"] = sound.texts["stdlib/top/one.lua"] .. 'require("pipeplan.bottom." .. name)' })
    assert.same({ "stdlib/top/one.lua uses library: top may not use library" },
                of { ["stdlib/top/one.lua"] = sound.texts["stdlib/top/one.lua"] .. 'require "library"' })
  end)

  it("are broken by a require that cannot be read", function()
    assert.same({ "stdlib/top/one.lua uses ? require(name): top may not use ? require(name)" },
                of { ["stdlib/top/one.lua"] = sound.texts["stdlib/top/one.lua"] .. "require(name)" })
  end)

  it("are broken by a require of what is not there", function()
    assert.same({ "stdlib/top/one.lua uses stdlib/middle/c.lua, which is not there" },
                of { ["stdlib/top/one.lua"] = sound.texts["stdlib/top/one.lua"] .. 'require "pipeplan.middle.c"' })
  end)

  it("are broken by a file in no layer", function()
    assert.same({ "stdlib/other.lua stands in 0 layers" }, of({}, "stdlib/other.lua"))
  end)

  it("are broken by a row that names one that is not below it, or one that it does not use", function()
    assert.same({ "bottom does not use middle", "bottom may not name middle: that is no row below it" },
                of { page = page:gsub("(`stdlib/bottom.lua` | |)", "%1 `middle`") })
    assert.same({ "top does not use library" }, of { page = page:gsub("`middle` `bottom` |", "`middle` `bottom` `library` |") })
  end)

  it("are broken by a circle, in Lua or of calls in C, and by an exception that is none any more", function()
    assert.same({ "in a circle: stdlib/middle/a.lua, stdlib/middle/b.lua" }, of { page = page:gsub("| `stdlib/middle/a%.lua`.*", "") })
    assert.same({ "no exception any more: stdlib/middle/a.lua, stdlib/middle/b.lua" },
                of { ["stdlib/middle/b.lua"] = 'require "pipeplan.bottom"' })
    assert.same({ "no exception any more: stdlib/bottom.lua → stdlib/top/one.lua" }, of { ["stdlib/bottom.lua"] = "" })
    local layers = table_of(page:gsub("`engine/middle.c`", "`engine/`"))
    local calls = { { from = "engine/a.c", to = "engine/b.c" }, { from = "engine/b.c", to = "engine/a.c" } }
    assert.is_string(problems(layers, {}, {}, calls)["engine/a.c, engine/b.c"])
  end)

  it("are read from what C files define and mention", function()
    local defined, mentioned = c_names [[
int pp_declared(int value);
static int helper(void) { return pp_called(1); }
pp_status *pp_defined(int value,
                      int other) {
const pp_row pp_rows[] = { 1 };
]]
    assert.same({ pp_defined = true, pp_rows = true }, defined)
    assert.same({ pp_declared = true, pp_called = true, pp_status = true, pp_defined = true, pp_row = true, pp_rows = true }, mentioned)
  end)
end)
