-- SPDX-License-Identifier: Apache-2.0
-- common_rules.lua: rules that frameworks have alike, each under an id and a source of its own: common_rules.NAME(framework's id, source).

local common_rules = {}

local function largest_divisor(number, limit)
  for divisor = math.min(number, limit), 2, -1 do
    if number % divisor == 0 then return divisor end
  end
  return 1
end

-- Each rank of TP has key-value heads of its own: none is repeated on several.
function common_rules.query_groups(id, source)
  return { id = id .. ".query_groups", query_groups = { not_multiple_of = "tensor_parallel" },
           message = "{framework} repeats no key-value heads: TP {tensor_parallel} does not divide {query_groups}",
           nearest = function(f)
             return { field = "tensor_parallel", value = largest_divisor(f.query_groups, f.tensor_parallel) }
           end, source = source }
end

-- Experts are whole on a rank.
function common_rules.expert_tensor(id, source)
  return { id = id .. ".expert_tensor", expert_tensor_parallel = { over = 1 },
           message = "{framework} splits no expert by tensor parallelism: ETP is {expert_tensor_parallel}",
           nearest = function() return { field = "expert_tensor_parallel", value = 1 } end, source = source }
end

return common_rules
