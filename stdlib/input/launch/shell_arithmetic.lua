-- SPDX-License-Identifier: Apache-2.0
-- shell_arithmetic.lua: $((…)) of a shell over whole numbers. What is not known, or no arithmetic, gives nil.

local arithmetic = {}

local binary = {
  ["||"] = 1, ["&&"] = 2, ["|"] = 3, ["^"] = 4, ["&"] = 5, ["=="] = 6, ["!="] = 6, ["<"] = 7, ["<="] = 7, [">"] = 7, [">="] = 7,
  ["<<"] = 8, [">>"] = 8, ["+"] = 9, ["-"] = 9, ["*"] = 10, ["/"] = 10, ["%"] = 10, ["**"] = 11,
}

-- As a shell divides: towards zero.
local function quotient(a, b)
  local q = a // b
  return q < 0 and q * b ~= a and q + 1 or q
end

local function power(a, b)
  local product = 1
  for _ = 1, b do product = product * a end
  return product
end

local function truth(value) return value and 1 or 0 end

local function apply(op, a, b)
  if op == "+" then return a + b elseif op == "-" then return a - b elseif op == "*" then return a * b
  elseif op == "/" then return b ~= 0 and quotient(a, b) or nil
  elseif op == "%" then return b ~= 0 and a - quotient(a, b) * b or nil
  elseif op == "**" then return b >= 0 and b < 63 and power(a, b) or nil
  elseif op == "<" then return truth(a < b) elseif op == "<=" then return truth(a <= b)
  elseif op == ">" then return truth(a > b) elseif op == ">=" then return truth(a >= b)
  elseif op == "==" then return truth(a == b) elseif op == "!=" then return truth(a ~= b)
  elseif op == "&&" then return truth(a ~= 0 and b ~= 0) elseif op == "||" then return truth(a ~= 0 or b ~= 0)
  elseif op == "&" then return a & b elseif op == "|" then return a | b elseif op == "^" then return a ~ b
  elseif b < 0 or b > 62 then return nil end
  return op == "<<" and a << b or a >> b
end

local MOST_LEVELS = 48

-- arithmetic.value(text, number): the value; number(name) is that of a variable.
function arithmetic.value(text, number)
  local tokens, at = {}, 1
  if #text > 4096 then return nil end
  while at <= #text do
    local stop = text:match("^%s*()", at)
    local token = text:match("^%$?{?[%a_][%w_]*}?", stop) or text:match("^0[xX]%x+", stop) or text:match("^%d+", stop)
                  or text:match("^%*%*", stop) or text:match("^[<>=!]=", stop) or text:match("^<<", stop) or text:match("^>>", stop)
                  or text:match("^&&", stop) or text:match("^||", stop) or text:match("^[%+%-%*/%%%(%)<>!~&|^]", stop)
    if not token then
      if stop > #text then break end
      return nil
    end
    tokens[#tokens + 1] = token
    at = stop + #token
  end
  local position, level = 1, 0
  local expression

  local function operand()
    local token = tokens[position]
    position = position + 1
    if not token then return nil end
    if token == "(" then
      local value = expression(0)
      if tokens[position] ~= ")" then return nil end
      position = position + 1
      return value
    elseif token == "-" or token == "+" or token == "!" or token == "~" then
      level = level + 1
      if level > MOST_LEVELS then return nil end
      local value = operand()
      level = level - 1
      if not value then return nil end
      if token == "-" then return -value elseif token == "!" then return truth(value == 0) end
      return token == "~" and ~value or value
    end
    local name = token:match "^%$?{?([%a_][%w_]*)}?$"
    if name then return number(name) end
    return math.tointeger(tonumber(token))
  end

  function expression(least)
    level = level + 1
    if level > MOST_LEVELS then return nil end
    local left = operand()
    while left do
      local op = tokens[position]
      local rank = op and binary[op]
      if not rank or rank < least then break end
      position = position + 1
      local right = expression(op == "**" and rank or rank + 1)
      left = right and apply(op, left, right)
    end
    level = level - 1
    return left
  end

  local value = expression(0)
  return position > #tokens and value or nil
end

return arithmetic
