-- SPDX-License-Identifier: Apache-2.0
-- numbers.lua: numbers as logs write them. What is no finite number of a sane size is nil, never an error.

local numbers = {}

-- "1.5", "8,412", "-3e-4" → a number; nil for anything else, NaN and infinity among it.
function numbers.read(text)
  if not text or #text > 40 then return nil end
  text = text:gsub("(%d),(%d%d%d)", "%1%2"):gsub("(%d),(%d%d%d)", "%1%2")  -- twice: in 1,234,567 the matches overlap
  local number = text:match "^[-+]?[%d.]+[eE]?[-+]?%d*$" and tonumber(text)
  if not number or number ~= number or math.abs(number) > 1e15 then return nil end
  return number
end

-- A count from 1 on, of at most 15 digits; nil for anything else.
function numbers.count(text)
  local number = text and #text <= 15 and text:match "^%d+$" and math.tointeger(tonumber(text))
  return number and number >= 1 and number or nil
end

-- Seconds of a step: from a microsecond to a week.
numbers.LEAST_SECONDS, numbers.MOST_SECONDS = 1e-6, 7 * 86400

function numbers.seconds(number)
  return number and number >= numbers.LEAST_SECONDS and number <= numbers.MOST_SECONDS and number or nil
end

-- Reads like NaN or infinity, as Python prints them?
function numbers.is_undefined(text)
  local word = text:lower():gsub("^[-+]", "")
  return word == "nan" or word == "inf" or word == "infinity"
end

-- Does a line tell a gradient's norm that is none? "grad norm: nan", "'grad_norm': inf", "actor/grad_norm:np.float64(nan)".
function numbers.undefined_gradient(line)
  if not line:find("norm", 1, true) then return false end
  for word in line:lower():gmatch "grad[_ ]?norm['\"]?%s*[:=]%s*['\"]?([-+%w.(]+)" do
    if numbers.is_undefined((word:gsub("^[%w.]*%(", ""))) then return true end
  end
  return false
end

-- A step as a sink takes it (monitor/steps.lua), of the words for its number, its tokens per second, and its loss, which may be nil; nil
-- where they make no sense.
function numbers.step_of_rate(iteration, rate, loss)
  local count, tokens = numbers.count(iteration), numbers.read(rate)
  if not count or not tokens or tokens <= 0 then return nil end
  return { iteration = count, tokens_per_second = tokens, undefined = loss and numbers.is_undefined(loss) and 1 or 0, skipped = 0 }
end

return numbers
