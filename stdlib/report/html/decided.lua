-- SPDX-License-Identifier: Apache-2.0
-- decided.lua: which rules decided, with the file and line of each; what would change the decision; where the figures come from; what was
-- assumed; and how to make the page again.

local document = require "pipeplan.report.html.document"
local element = require "pipeplan.report.html.element"
local format = require "pipeplan.base.format"
local tables = require "pipeplan.report.html.table"

local decided = {}

local rule_columns = { { "verb" }, { "rule" }, { "because", class = "because" }, { "where", class = "loc" }, { "source", class = "src" } }

-- A source that is an address is one to follow.
function decided.source(text)
  if not text then return "" end
  local address, rest = text:match "^(https?://[^%s,;]+)(.*)$"
  if not address then return text end
  return element.list(element("a", { href = address, rel = "noreferrer" }, (address:gsub("^https?://", ""))), rest)
end

local function rule_table(rules, class)
  local rows = {}
  for i, rule in ipairs(rules) do
    rows[i] = { rule.verb, element.name(rule.id), rule.because, document.place(rule), decided.source(rule.source) }
  end
  return tables.make(rule_columns, rows, { class = class, heading = 2 })
end

local forbids = { reject = true, refuse = true, invariant = true, warn = true }

-- Rules that hold and have a say: of rows and kernels only the one that is used; where nothing is planned, what forbids it.
local function has_a_say(rule, planned)
  return rule.holds and (planned or forbids[rule.verb]) and not rule.because:find "; [%w_%-]+ stands before it$"
    and not rule.because:find "; not used$"
    and not rule.because:find "; the spec states one$" and not rule.because:find "; nothing to send at EP 1$"
end

local override_columns = { { "rule" }, { "what" }, { "by", class = "loc" }, { "reason" } }

local function overridden(list)
  local rows = {}
  for i, entry in ipairs(list) do
    rows[i] = { element.name(entry.id), entry.kind .. ": " .. entry.what, document.place(entry),
                (entry.reason or "") .. (entry.expires and ", until " .. entry.expires or "") }
  end
  return #rows > 0 and tables.make(override_columns, rows, { class = "rules", caption = "What layers over the default hide" }) or nil
end

local function figures(list)
  local rows = {}
  for i, figure in ipairs(list) do
    rows[i] = { element.name(figure.figure), element.list(figure.name, ", ", figure.formula, element("br"),
                                                          element("small", nil, figure.inputs)),
                figure.source }
  end
  return tables.make({ { "figure" }, { "formula, inputs" }, { "source" } }, rows, { class = "figs" })
end

function decided.section(plan)
  local explanation = plan.explanation
  local steps, say, rest = {}, {}, {}
  for i, step in ipairs(explanation.decided) do steps[i] = element("li", nil, step) end
  for _, rule in ipairs(explanation.rules) do
    if has_a_say(rule, plan.status == "planned") then say[#say + 1] = rule else rest[#rest + 1] = rule end
  end
  local silent = 0
  for _, rule in ipairs(rest) do silent = silent + (rule.holds and 0 or 1) end
  local summary = string.format("%s that %s not hold", format.plural(silent, "rule"), silent == 1 and "does" or "do")
    .. (#rest > silent and string.format(", %d that %s and decide%s nothing", #rest - silent, #rest - silent == 1 and "holds" or "hold",
                                         #rest - silent == 1 and "s" or "") or "")
  return document.section("What decided", element.list(
    #steps > 0 and element("ol", { class = "dec" }, steps), rule_table(say, "rules main"), overridden(explanation.overridden),
    #rest > 0 and document.folded(summary, rule_table(rest, "rules")),
    #explanation.figures > 0 and document.folded(#explanation.figures == 1 and "Where one figure comes from"
      or string.format("Where each of %d figures comes from", #explanation.figures),
                                                figures(explanation.figures))), { id = "rules" })
end

local function hours(number) return format.count(math.floor(number + 0.5)) end

-- What the changed plan would cost, beside this one.
local function cost(change, plan)
  if not change.step_seconds then return "" end
  local more = ""
  if change.gpu_hours and plan.gpu_hours and plan.gpu_hours > 0 then
    more = string.format(" (%+.1f %%)", 100 * (change.gpu_hours / plan.gpu_hours - 1))
  end
  return element.list(
    change.gpu_hours and { hours(change.gpu_hours), " GPU-hours", more, element("span", { class = "scr" }, ", ") } or nil,
    element("span", { class = change.gpu_hours and "scr" or nil }, format.seconds(change.step_seconds), " a step",
            change.peak_bytes and ", " .. format.gib(change.peak_bytes) .. " GiB" or ""))
end

function decided.changes(plan, title)
  local rows = {}
  for i, change in ipairs(plan.explanation.changes) do
    rows[i] = { change.words, change.status, change.effect, cost(change, plan) }
  end
  local content = #rows > 0 and tables.make({ { "if" }, { "then" }, { "because" }, { "which takes", class = "takes" } }, rows,
                                            { class = "chg" })
    or element("p", nil, "No value that was tried of one stated field changes the outcome.")
  return document.section(title or "What would change it", content, { id = "changes" })
end

function decided.assumptions(plan)
  local rows = {}
  for i, entry in ipairs(plan.assumptions) do rows[i] = { entry.field, format.quantity(entry.value), entry.why } end
  if #rows == 0 then return nil end
  return document.section("Assumptions", document.folded(format.plural(#rows, "value") .. " that the spec leaves open",
    tables.make({ { "field" }, { "taken as" }, { "why" } }, rows, { class = "chg" })), { id = "assumed" })
end

-- A word of a command as a shell reads it back.
local function quoted(word)
  if word:find "^[%w_./:=,@%%+-]+$" then return word end
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

function decided.command(arguments)
  local words = {}
  for i, word in ipairs(arguments) do words[i] = quoted(word) end
  return table.concat(words, " ")
end

local function spec_rows(plan)
  local rows = {}
  for i, entry in ipairs(plan.explanation.spec or {}) do
    local value = entry.value
    if type(value) == "table" then value = require("pipeplan.base.json").encode(value) end
    rows[i] = { element.name(entry.field), tostring(value), entry.origin }
  end
  return rows
end

-- command: the words of the command line.
function decided.again(plan, command)
  local rows = spec_rows(plan)
  local dated = command
  for _, word in ipairs(command) do if word:find "^%-%-date" then dated = nil end end
  if dated then
    dated = table.move(command, 1, #command, 1, {})
    dated[#dated + 1], dated[#dated + 2] = "--date", plan.policy.date
  end
  return document.section("Make it again", element.list(
    element("pre", { class = "cmd", tabindex = 0 }, decided.command(dated or command)),
    element("p", { class = "sub" }, "pipeplan ", plan.engine_version, ", policy ", table.concat(plan.policy.layers, " + "), ", digest ",
            element("code", nil, plan.policy.digest), plan.spec and { ", spec ", element("code", nil, plan.spec.digest) } or nil,
            ": the same spec, policy, version and date give the same bytes."),
    #rows > 0 and document.folded("The spec", tables.make({ { "field" }, { "as written" }, { "where" } }, rows, { class = "chg" }))),
    { id = "again" })
end

return decided
