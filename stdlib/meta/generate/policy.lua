-- SPDX-License-Identifier: Apache-2.0
-- policy.lua: definitions of what a policy file can say: statements from their schemas, fields from the vocabulary, parameters and rules
-- from the default policy.

local examples = require "pipeplan.policy.examples"
local lists = require "pipeplan.base.lists"
local load = require("pipeplan.policy.load").load
local ranks = require "pipeplan.policy.ranks"
local statements = require "pipeplan.policy.statements"
local units = require "pipeplan.base.units"
local vocabulary = require "pipeplan.vocabulary"
local writer = require "generate.writer"

-- How a property of that kind (see `check` in statements.lua) is written.
local kinds = {
  boolean = "boolean", catalogue_name = "string", link = "string",
  recommend = "pipeplan.schedule|pipeplan.layout", schedules = "pipeplan.schedule[]",
  severity = '"warning"|"note"', template = "string", text = "string", within = '"any"|pipeplan.quantity|pipeplan.parameter',
}

local meanings = {
  final = "no later layer may loosen it",
  link = "where to read more",
  owner = "who answers for it",
  message = "what the plan says when it holds; {field} and {parameter} are filled in, with their units",
  overlapping = "does it run beside compute? (default true)",
  severity = "how much it matters (default warning)",
  source = "where the rule comes from",
  try = "schedules or families in order: the first is wanted, the others may replace it",
  unless = "rule that, visibly loosened, permits it",
  why = "the reason, for whoever reads the plan",
  within = 'decides among plans that close to the fastest; "any": keeps what matches whenever something does',
}
local recommended = {
  kernel = "its name in the catalogue (default: the id)",
  reject = "what to do instead", refuse = "what to do instead; a schedule takes the refused one's place",
}

-- What each verb is for, and how it is read.
local verbs = {
  row = "A row of the decision table: which schedules to try. The first row that holds decides; rows of a later layer stand above.",
  reject = "A hard reject: a plan for which it holds is never made.",
  refuse = "A refusal: what to do instead of a schedule or a plan that is possible but a bad idea.",
  prefer = "Decides among candidates that come close.",
  kernel = "Which all-to-all kernel to recommend. The first that matches decides; those of a later layer stand above.",
  warn = "What the reader of the plan should know.",
  invariant = "What no planned result may ever satisfy.",
}

local order = { "row", "reject", "refuse", "prefer", "kernel", "warn", "invariant" }

-- What a parameter holds that is a list, by its unit.
local lists_of = { schedule = "pipeplan.schedule[]", microbatch = "integer[]", recompute = "pipeplan.value.recompute[]",
                   sharding = "pipeplan.value.sharding[]" }

local scopes = {
  { "request", "Fields that follow from the spec." },
  { "candidate", "Fields that differ between candidate plans." },
  { "simulated", "Fields known only after a candidate was simulated." },
  { "plan", "Fields of the finished plan." },
}

local function describe(entry)
  local parts = { entry.meaning }
  if entry.unit and entry.unit ~= "1" then parts[#parts + 1] = "in " .. entry.unit end
  parts[#parts + 1] = writer.range(entry.low, entry.high)
  return table.concat(parts, "; ")
end

-- ----------------------------------------------------------------------------------------------------------------------- conditions

local function choice(values)
  local parts = {}
  for i, value in ipairs(values) do parts[i] = string.format("%q", value) end
  return table.concat(parts, "|")
end

-- What a function reads of a field.
local function value_type(entry)
  if entry.name == "alltoall_kernel" then return "string|false" end
  return entry.type == "string" and entry.domain and "pipeplan.value." .. entry.name or entry.type
end

-- What may stand behind it in a statement.
local function condition_type(entry)
  if entry.type == "boolean" then return "boolean|pipeplan.condition" end
  if entry.type == "string" then
    local single = entry.domain and value_type(entry) or "string"
    return string.format("%s|%s[]|pipeplan.condition", value_type(entry), single)
  end
  return "pipeplan.quantity|pipeplan.quantity[]|pipeplan.condition"
end

local function add_fields(out, policy)
  local described = {}
  for name, entry in pairs(vocabulary.by_name) do described[name] = describe(entry) end
  out:alias("pipeplan.field", vocabulary.names, "Fields that conditions and messages can name.", { meanings = described })
  for _, entry in ipairs(vocabulary.fields) do
    if entry.type == "string" and entry.domain then out:alias(value_type(entry), entry.domain, entry.meaning) end
  end
  out:class("pipeplan.rank", nil, "What rules ask of ranks: over, at_least, under, at_most or between of each.")
  for _, name in ipairs(lists.sorted_keys(ranks.attributes)) do
    local field = vocabulary.by_name[ranks.attributes[name].least]
    out:field(name, "pipeplan.condition", true, "from " .. field.name .. " to " .. ranks.attributes[name].most)
  end
  for _, scope in ipairs(scopes) do
    out:class("pipeplan.conditions." .. scope[1], nil, scope[2])
    for _, entry in ipairs(vocabulary.fields) do
      if entry.scope == scope[1] then out:field(entry.name, condition_type(entry), true, describe(entry)) end
    end
    if scope[1] == "simulated" then
      out:field("any_rank", "pipeplan.rank", true, "one comparison of what holds of some rank of the pipeline")
      out:field("every_rank", "pipeplan.rank", true, "comparisons of what holds of all ranks of the pipeline")
    end
  end
  out:class("pipeplan.record", nil, "What a `when` function is given: fields of what it judges (nil: does not apply), and parameters.")
  for _, entry in ipairs(vocabulary.fields) do out:field(entry.name, value_type(entry), true, describe(entry)) end
  for _, id in ipairs(policy.parameter_order) do
    local p = policy.parameters[id]
    out:field(id, type(p.value) == "table" and lists_of[p.unit] or type(p.value), false, "parameter: " .. p.meaning)
  end
end

local constructors = {
  { "at_least", "the field is at least this", { "limit" } },
  { "at_most", "the field is at most this", { "limit" } },
  { "between", "the field is from low to high, both included", { "low", "high" } },
  { "equal", "the field equals this: for naming a parameter or another field", { "value" } },
  { "multiple_of", "the field is a multiple of this", { "factor" } },
  { "not_multiple_of", "the field is not a multiple of this", { "factor" } },
  { "over", "the field is more than this", { "limit" } },
  { "under", "the field is less than this", { "limit" } },
}

local function add_constructors(out)
  out:add("")
  out:comment('A number, or one with its unit: "14.8T", "80GiB", "400Gbps", "8%".')
  out:add("---@alias pipeplan.quantity number|string")
  out:class("pipeplan.condition", nil, "Made by the functions below; odd, even and any are conditions themselves.")
  for _, constructor in ipairs(constructors) do
    local name, meaning, sides = table.unpack(constructor)
    out:add("")
    out:comment("A condition: " .. meaning .. ".")
    for _, side in ipairs(sides) do out:add("---@param %s pipeplan.quantity|pipeplan.parameter|pipeplan.field", side) end
    out:add("---@return pipeplan.condition")
    out:add("function %s(%s) end", name, table.concat(sides, ", "))
  end
  out:add("")
  out:comment("A condition: the field is none of these, or does not apply.")
  out:add("---@param values any[]")
  out:add("---@return pipeplan.condition")
  out:add("function none_of(values) end")
  for _, bare in ipairs { { "odd", "A condition: the field is odd." }, { "even", "A condition: the field is even." },
                          { "any", "In `change`: takes the condition on this field away." } } do
    out:add("")
    out:comment(bare[2])
    out:add("---@type pipeplan.condition")
    out:add("%s = nil", bare[1])
  end
end

-- ----------------------------------------------------------------------------------------------------------------------- statements

local function add_statement(out, verb, argument)
  out:add("")
  out:comment(argument.meaning)
  for _, example in ipairs(examples.statements) do
    if example[1] == verb then out:comment("```lua\n" .. example[3] .. "\n```") end
  end
  out:add("---@param %s %s", argument.name or "statement", argument.type)
  if argument.returns then out:add("---@return %s", argument.returns) end
  out:add("function %s(%s) end", verb, argument.name or "statement")
end

local function add_rules(out)
  for _, verb in ipairs(order) do
    local schema, parents = statements.verbs[verb], {}
    for _, scope in ipairs(scopes) do
      if statements.readable[verb][scope[1]] then parents[#parents + 1] = "pipeplan.conditions." .. scope[1] end
    end
    out:class("pipeplan.statement." .. verb, parents)
    out:field("id", "string", false, "its name: letters, digits and underscores")
    for _, property in ipairs(lists.sorted_keys(schema.properties)) do
      out:field(property, kinds[schema.properties[property]], not lists.contains(schema.required, property),
                property == "recommend" and recommended[verb] or meanings[property])
    end
    out:field("when", "fun(record: pipeplan.record): boolean", true, "a condition that fields cannot express")
    add_statement(out, verb, { type = "pipeplan.statement." .. verb, meaning = verbs[verb] })
  end
end

local EXPIRES = "YYYY-MM-DD after which it falls away, where it lets more plans through"

-- What every statement may say of itself.
local function add_words(out, final)
  for _, name in ipairs { "owner", "why", "link" } do out:field(name, "string", true, meanings[name]) end
  if final then out:field("final", "boolean", true, meanings.final) end
end

local function add_overrides(out)
  local every = {}
  for i, scope in ipairs(scopes) do every[i] = "pipeplan.conditions." .. scope[1] end
  out:class("pipeplan.statement.change", every)
  out:field("id", "pipeplan.rule", false, "a row or rule of an earlier layer")
  local properties = {}
  for _, verb in ipairs(order) do
    for property, kind in pairs(statements.verbs[verb].properties) do
      local type = kinds[kind]
      if not properties[property] then properties[property] = { type }
      elseif not lists.contains(properties[property], type) then table.insert(properties[property], type) end
    end
  end
  for _, property in ipairs(lists.sorted_keys(properties)) do
    out:field(property, table.concat(properties[property], "|"), true,
              meanings[property] or "what to do instead, or the kernel's name in the catalogue")
  end
  out:field("when", "fun(record: pipeplan.record): boolean", true, "a condition that fields cannot express; any takes it away")
  out:field("reason", "string", true, "why; needed when it lets more plans through")
  out:field("expires", "string", true, EXPIRES)
  add_statement(out, "change", {
    type = "pipeplan.statement.change",
    meaning = "Changes a row or rule of an earlier layer: only what differs is given, `any` removes a condition.",
  })

  out:class("pipeplan.statement.disable")
  out:field("id", "pipeplan.rule", false, "a row or rule of an earlier layer")
  out:field("reason", "string", true, "why; needed for a reject or refusal")
  out:field("expires", "string", true, EXPIRES)
  add_words(out, true)
  add_statement(out, "disable", { type = "pipeplan.statement.disable", meaning = "Takes a row or rule of an earlier layer out." })
  out:class("pipeplan.statement.enable")
  out:field("id", "pipeplan.rule", false, "a row or rule that an earlier layer disables")
  out:field("reason", "string", true, "why; needed for a kernel")
  add_words(out, true)
  add_statement(out, "enable", { type = "pipeplan.statement.enable", meaning = "Brings back what an earlier layer disables." })
  out:class("pipeplan.statement.pin")
  out:field("default", "string", false, "digest of the default policy, as `pipeplan policy show --files` prints it")
  out:field("reason", "string", true, "why")
  add_words(out, false)
  add_statement(out, "pin", { type = "pipeplan.statement.pin",
                              meaning = "The default policy that a site was written for: over another it does not load." })
  add_statement(out, "site", { name = "name", type = "string", meaning = "Names the layer." })
  add_statement(out, "require", {
    name = "name", type = "string", returns = "any",
    meaning = 'Runs the policy file of that name beside this one, once, and gives what it returns: "limits" is limits.lua.\n'
      .. "Only at the top of a file, and only a regular file of that folder, or a link to one. The policy's digest covers its text.\n"
      .. "Layers that require one file share what it returns: what a rule of an earlier layer reads of it, a later one cannot change.",
  })
end

local function parameter_type(parameter)
  if type(parameter.value) == "boolean" then return "boolean" end
  return lists_of[parameter.unit] or "pipeplan.quantity"
end

local function add_parameters(out, policy)
  out:class("pipeplan.statement.parameter")
  out:field("id", "string", false, "the name that rules use")
  out:field("value", "pipeplan.quantity|boolean|string[]|integer[]", false, "its value")
  out:field("unit", choice(units.names) .. "|" .. choice(lists.sorted_keys(lists_of)), true, "of the value; a boolean has none")
  out:field("at_least", "pipeplan.quantity", true, "the least that it can be; default 0")
  out:field("at_most", "pipeplan.quantity", true, "the most that it can be; default of a fraction 1")
  out:field("loosens", '"up"|"down"|"none"', false, "the way that lets more plans through")
  out:field("meaning", "string", false, "what it is, in a few words")
  add_words(out, true)
  add_statement(out, "parameter", { type = "pipeplan.statement.parameter", meaning = "Declares a number or list that rules name." })

  out:class("pipeplan.statement.set")
  for _, id in ipairs(policy.parameter_order) do
    local p = policy.parameters[id]
    local unit = p.unit and p.unit ~= "1" and p.unit ~= "schedule" and "; in " .. p.unit or ""
    local range = p.type == "number" and "; " .. writer.range(p.low, p.high) or ""
    local loosens = p.loosens ~= "none" and "; loosens " .. p.loosens or ""
    out:field(id, parameter_type(p), true, p.meaning .. unit .. range .. loosens)
  end
  out:field("reason", "string", true, "why; needed when a value moves in its loosening direction")
  out:field("expires", "string", true, EXPIRES)
  add_words(out, true)
  out:field("[string]", "any", false, "a parameter that a layer below declares")
  add_statement(out, "set", { name = "values", type = "pipeplan.statement.set", meaning = "Changes parameters." })
end

-- ---------------------------------------------------------------------------------------------------------------------------- the file

local function add_names(out, policy)
  local schedules = {}
  for _, name in ipairs(vocabulary.schedules) do
    if name ~= "none" then schedules[#schedules + 1] = name end
  end
  for _, name in ipairs(lists.sorted_keys(statements.families)) do schedules[#schedules + 1] = name end
  out:alias("pipeplan.schedule", schedules, "Schedules, and families that stand for several.")
  out:alias("pipeplan.layout", statements.layouts, "Recommendations that are layouts.")
  out:alias("pipeplan.parameter", policy.parameter_order, "Parameters of the default policy; a layer may have others.", { open = true })
  out:alias("pipeplan.rule", lists.sorted_keys(policy.rules), "Rules of the default policy; a layer may have others.", { open = true })
end

-- → text. `policies` is the directory of the default policy.
return function(policies)
  local policy = load { date = "2000-01-01", policies = policies }  -- nothing in the default policy expires
  local out = writer.new("What a policy file can say.")
  add_names(out, policy)
  add_constructors(out)
  add_fields(out, policy)
  add_rules(out)
  add_overrides(out)
  add_parameters(out, policy)
  return out:text()
end
