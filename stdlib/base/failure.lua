-- SPDX-License-Identifier: Apache-2.0
-- failure.lua: errors that are answers. Raised anywhere in stdlib, caught once in cli/main.lua (and by whoever uses the Lua API).
-- An error value that is not one of these is a bug of pipeplan (exit 70).

local failure = {}

-- Exit statuses, the same for every command (docs/commands.md, "Exit status").
failure.status = { ok = 0, refused = 1, usage = 2, policy_error = 3, over_budget = 4, nothing = 5, policy_unloadable = 6, bug = 70 }

-- The same from worst to best: over several inputs the worst counts.
local severity = { "bug", "policy_unloadable", "usage", "policy_error", "over_budget", "nothing", "refused", "ok" }
local rank = {}
for i, name in ipairs(severity) do rank[failure.status[name]] = i end

-- The worse of two exit statuses.
function failure.worse(a, b) return rank[a] < rank[b] and a or b end

-- place: "file:line: " of whoever called pipeplan from Lua (init.lua).
local metatable = { __tostring = function(self) return (self.place or "") .. self.message end }

-- Raises an answer: `status` is a key of failure.status, the rest is a format and its arguments.
function failure.raise(status, format, ...)
  error(setmetatable({ status = assert(failure.status[status], status), message = string.format(format, ...) }, metatable), 0)
end

-- An answer of another process: its exit status and message.
function failure.again(status, message)
  error(setmetatable({ status = status, message = message }, metatable), 0)
end

-- The same for what is to be told in several lines, each a text.
function failure.raise_lines(status, lines)
  error(setmetatable({ status = assert(failure.status[status], status), message = table.concat(lines, "\n"), lines = lines }, metatable), 0)
end

-- What a policy's host says went wrong (engine.host's problem) as an answer. `status`: where neither its budget nor memory ran out;
-- `unknown`: the name that nothing has, whatever it is asked about.
function failure.of_host(problem, status, format, ...)
  local ran_out = problem.kind ~= "broken"
  error(setmetatable({ status = failure.status[ran_out and "over_budget" or status], memory = problem.kind == "memory" or nil,
                       unknown = problem.unknown, message = string.format(format, ...) }, metatable), 0)
end

-- A command line or an input that cannot be read or understood: exit 2.
function failure.usage(format, ...)
  failure.raise("usage", format, ...)
end

-- A policy that cannot be loaded, --set included: exit 6, so that a gate can tell whose fault it is.
function failure.unloadable(format, ...)
  failure.raise("policy_unloadable", format, ...)
end

-- Is this error value an answer?
function failure.is(value)
  return getmetatable(value) == metatable
end

-- Is it that the system has no memory left? Lua's own words; the engine's begin with them.
local function is_memory(value)
  return type(value) == "string" and value:find("not enough memory", 1, true) ~= nil
end

-- The answer that an error value is: itself, or for memory that ran out one that says so. nil: a bug.
function failure.of(value)
  if failure.is(value) then return value end
  if not is_memory(value) then return nil end
  local what = value:match "^[^:]*:%d+: (.*)$"  -- of the engine; Lua does not say where
  return setmetatable({ status = failure.status.over_budget, memory = true, message = "out of memory" .. (what and ": " .. what or "") },
                      metatable)
end

local function pass_memory(good, ...)
  local problem = not good and failure.of((...))
  if problem and problem.memory then error(problem, 0) end
  return good, ...
end

-- pcall for whoever makes something of an error. Memory that ran out is not what went wrong there, and goes on.
function failure.try(run, ...)
  return pass_memory(pcall(run, ...))
end

-- How many letters two words have in common, wherever they stand. counts: of the first, by byte.
local function in_common(counts, word)
  local used, common = {}, 0
  for i = 1, #word do
    local byte = word:byte(i)
    local before = used[byte] or 0
    if before < (counts[byte] or 0) then used[byte], common = before + 1, common + 1 end
  end
  return common
end

-- The name in `names` (a list) that is nearest to `name`, or nil when none is near: Levenshtein distance at most a third of its length + 1,
-- or else the first that begins with it.
function failure.nearest(name, names)
  if #name > 64 then return nil end  -- no name of ours; the table below would grow with it
  for _, candidate in ipairs(names) do
    if candidate == name then return name end
  end
  local most, counts, best = #name // 3 + 1, {}, nil   -- the distance that is of interest: after each that is found, a nearer one
  for i = 1, #name do counts[name:byte(i)] = (counts[name:byte(i)] or 0) + 1 end
  for _, candidate in ipairs(names) do
    if math.abs(#candidate - #name) > most then goto continue end   -- it is at least that far, and as far as the letters that differ
    if math.max(#candidate, #name) - in_common(counts, candidate) > most then goto continue end
    local previous = {}
    for j = 0, #candidate do previous[j] = j end
    for i = 1, #name do
      local current, byte, least = { [0] = i }, name:byte(i), i
      for j = 1, #candidate do
        local substitution = previous[j - 1] + (byte == candidate:byte(j) and 0 or 1)
        current[j] = math.min(substitution, previous[j] + 1, current[j - 1] + 1)
        least = math.min(least, current[j])
      end
      if least > most then goto continue end  -- no row below has less
      previous = current
    end
    if previous[#candidate] <= most then best, most = candidate, previous[#candidate] - 1 end
    ::continue::
  end
  for _, candidate in ipairs(not best and #name >= 4 and names or {}) do
    if candidate:sub(1, #name) == name then return candidate end
  end
  return best
end

-- Do two names differ in one place, by two letters at most?
function failure.is_slip(a, b)
  local first, last = 0, 0
  local most, least = math.max(#a, #b), math.min(#a, #b)
  while first < least and a:byte(first + 1) == b:byte(first + 1) do first = first + 1 end
  while last < least - first and a:byte(-1 - last) == b:byte(-1 - last) do last = last + 1 end
  return most - first - last <= 2
end

-- ", did you mean 'x'?" or "".
function failure.suggestion(name, names)
  local near = failure.nearest(tostring(name), names)
  return near and string.format(", did you mean '%s'?", near) or ""
end

return failure
