-- SPDX-License-Identifier: Apache-2.0
-- facts.lua: `pipeplan facts TOPIC`: what pipeplan knows, as tables to read, and the JSON Schemas of spec and plan.

local argparse = require "pipeplan.argparse"
local command_line = require "pipeplan.cli.arguments"
local documents = require "pipeplan.base.documents"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"

local facts = {}

local topics = { "accelerators", "completion", "fields", "frameworks", "hosts", "kernels", "links", "man", "overheads", "primitives",
                 "schedules", "schema", "spec", "statements" }
local shells = { "bash", "fish", "zsh" }

facts.usage = [[
Usage: pipeplan facts TOPIC [--format text|json]

  accelerators  GPUs by catalogue name: memory, peaks, links
  hosts         hosts by family of accelerators: what an offloaded optimizer works with
  links         networks and scale-up links: what they reach
  kernels       all-to-all kernels: what they need
  frameworks    what runs which schedule
  overheads     what a process takes of a GPU's memory beside tensors
  schedules     pipeline schedules and how they work
  spec          fields of a spec, which are options of `plan` too
  fields        fields that policy rules may read
  statements    statements of a policy file, with an example each
  primitives    what the engine computes for policies, with an example each
  schema spec   JSON Schema of a spec (draft 2020-12)
  schema plan   JSON Schema of a plan
  schema decision  JSON Schema of a line of plan --record
  schema times  JSON Schema of what simulate --times reads
  schema calibration  JSON Schema of a site's measured runs
  schema kernels  JSON Schema of measured kernels
  schema profile  JSON Schema of a profile: measured stages
  man           names of the man pages; man NAME: that page
  completion    shells that complete its command line; completion bash: the file for it

Examples:
   pipeplan facts accelerators
   pipeplan facts frameworks --format json
   pipeplan facts schema plan
   pipeplan facts primitives
]]

-- Rows (lists of cells; nil is "-") under headings, columns as wide as they need; the last one is not padded.
local function table_of(headings, rows)
  local widths = {}
  for i, heading in ipairs(headings) do widths[i] = format.width(heading) end
  for _, row in ipairs(rows) do
    for i = 1, #headings do
      row[i] = row[i] == nil and "-" or tostring(row[i])
      widths[i] = math.max(widths[i], format.width(row[i]))
    end
  end
  local lines = {}
  local function add(cells)
    local parts = {}
    for i = 1, #headings do parts[i] = i < #headings and format.pad(cells[i], widths[i]) or cells[i] end
    lines[#lines + 1] = table.concat(parts, "  ")
  end
  add(headings)
  for _, row in ipairs(rows) do add(row) end
  return format.page(lines)
end

local function domain_text(domain)
  return domain and type(domain[1]) == "string" and table.concat(domain, " ") or nil
end

local show = {}

function show.fields()
  local rows = {}
  for _, entry in ipairs(require("pipeplan.vocabulary").fields) do
    local meaning = entry.meaning
    local domain = domain_text(entry.domain)
    if domain then meaning = meaning .. ": " .. domain end
    rows[#rows + 1] = { entry.name, entry.scope, entry.type, entry.unit, format.range(entry.low, entry.high, entry.unit), meaning }
  end
  return table_of({ "FIELD", "SCOPE", "TYPE", "UNIT", "RANGE", "MEANING" }, rows)
end

function show.spec()
  local rows, spec_fields = {}, require "pipeplan.input.fields"
  for _, entry in ipairs(spec_fields.list) do
    local meaning = spec_fields.meaning(entry)
    local domain = domain_text(entry.domain)
    if domain then meaning = meaning .. ": " .. domain end
    rows[#rows + 1] = { entry.path, "--" .. entry.name, entry.type, entry.unit, format.range(entry.low, entry.high, entry.unit), meaning }
  end
  return table_of({ "FIELD", "OPTION", "TYPE", "UNIT", "RANGE", "MEANING" }, rows)
end

function show.schedules()
  local catalogue, rows = require "pipeplan.catalog.schedules", {}
  for _, name in ipairs(engine.schedule.kinds) do
    local traits = engine.schedule.traits(name)
    rows[#rows + 1] = {
      name, format.schedule(name), traits.family, traits.placement, traits.virtual or "2 or more", traits.copies,
      traits.split_backward and "I and W" or "whole", catalogue.find(name).idea,
    }
  end
  return table_of({ "SCHEDULE", "NAME", "FAMILY", "PLACEMENT", "CHUNKS", "COPIES", "BACKWARD", "IDEA" }, rows)
end

local function tera(number)
  return number and format.digits(number / 1e12) or nil
end

function show.accelerators()
  local rows = {}
  for _, entry in ipairs(require("pipeplan.catalog.accelerators").entries) do
    rows[#rows + 1] = {
      entry.name, entry.family, format.bytes(entry.memory_bytes), tera(entry.flops.bf16 or entry.flops.fp16), tera(entry.flops.fp8),
      format.rate(entry.memory_bandwidth), string.format("%d × %s GB/s", entry.scale_up_gpus, format.digits(entry.scale_up_per_gpu / 1e9)),
      entry.scale_up_link, format.rate(entry.network_per_gpu), entry.fabric, entry.source,
    }
  end
  local headings = { "ACCELERATOR", "FAMILY", "MEMORY", "BF16 TFLOP/s", "FP8", "BANDWIDTH", "SCALE-UP", "LINK", "NETWORK", "FABRIC",
                     "SOURCE" }
  return table_of(headings, rows)
end

function show.links()
  local rows = {}
  for _, entry in ipairs(require("pipeplan.catalog.links").entries) do
    rows[#rows + 1] = { entry.name, entry.kind, format.percent(entry.efficiency), format.seconds(entry.latency), entry.source }
  end
  return table_of({ "LINK", "KIND", "REACHES", "LATENCY", "SOURCE" }, rows)
end

local function giga(rate) return format.digits(rate / 1e9) .. " GB/s" end

function show.hosts()
  local rows = {}
  for _, entry in ipairs(require("pipeplan.catalog.hosts").entries) do
    rows[#rows + 1] = { entry.name, giga(entry.link), giga(entry.memory_bandwidth), format.percent(entry.update_efficiency), entry.source }
  end
  return table_of({ "FAMILY", "LINK", "MEMORY", "UPDATE REACHES", "SOURCE" }, rows)
end

function show.overheads()
  local overheads, rows = require "pipeplan.catalog.overheads", {}
  for i, entry in ipairs(overheads.entries) do rows[i] = { entry.name, format.bytes(entry.bytes), entry.what, entry.source } end
  rows[#rows + 1] = { "together", format.bytes(overheads.bytes), "cluster.overhead of a spec stands in its place" }
  return table_of({ "OVERHEAD", "BYTES", "WHAT", "SOURCE" }, rows)
end

local function words(list)
  return list and #list > 0 and table.concat(list, " ") or nil
end

function show.kernels()
  local rows = {}
  for _, entry in ipairs(require("pipeplan.catalog.kernels").entries) do
    rows[#rows + 1] = {
      entry.name, entry.title, entry.overlapping and "yes" or "no", entry.trains and "yes" or "no",
      string.format("%d-%d", table.unpack(entry.expert_parallel)), words(entry.accelerator_families) or "any",
      words(entry.fabrics) or "any", #entry.needs > 0 and table.concat(entry.needs, "; ") or nil,
    }
  end
  return table_of({ "KERNEL", "NAME", "OVERLAPS", "TRAINS", "EP", "ACCELERATORS", "FABRICS", "NEEDS" }, rows)
end

-- What stages may hold, of those frameworks that do not take any numbers.
local layer_words = { even = "even", remainder_first = "as even as can be" }

function show.frameworks()
  local catalogue, rows = require "pipeplan.catalog.frameworks", {}
  for _, entry in ipairs(catalogue.entries) do
    local names = catalogue.schedules(entry)
    for i, name in ipairs(names) do
      if entry.schedules[name].csv then names[i] = name .. "(csv)" end
    end
    local expert_tensor = entry.defaults.expert_tensor
    rows[#rows + 1] = {
      entry.name, entry.title, table.concat(names, " "), layer_words[entry.layers.how] or "any",
      entry.has.tied_embeddings and "yes" or "no", table.concat(entry.sharding.with_pipeline, " "),
      expert_tensor == "tensor" and "TP" or expert_tensor, #entry.rules, entry.names.microbatches,
    }
  end
  return table_of({ "FRAMEWORK", "NAME", "SCHEDULES", "LAYERS", "TIED", "ZERO", "ETP", "RULES", "ITS NAME FOR M" }, rows)
end

-- Examples one under the other: what it is called, what it is, its text, and what that comes to.
local function examples_page(before, list)
  local lines = {}
  local function add(margin, text)
    for line in (text .. "\n"):gmatch "([^\n]*)\n" do lines[#lines + 1] = line ~= "" and margin .. line or "" end
  end
  add("", before .. "\n")
  for _, one in ipairs(list) do
    add("", one.name .. "  " .. one.meaning)
    add("   ", one.text)
    lines[#lines + 1] = ""
  end
  lines[#lines] = nil
  return format.page(lines)
end

function show.statements()
  local examples, list = require "pipeplan.policy.examples", {}
  for i, example in ipairs(examples.statements) do list[i] = { name = example[1], meaning = example[2], text = example[3] } end
  return examples_page("Statements of a policy file. Those that override something stand over this layer:\n\n" .. examples.below, list)
end

function show.primitives()
  local examples, list, alone = require "pipeplan.policy.examples", {}, {}
  local function add(to, example)
    local name = (example[1]:find ":" and "" or "engine.") .. example[1]
    to[#to + 1] = { name = name, meaning = example[4], text = example[2] .. "  --> " .. example[3]:gsub("%s+$", "") }
  end
  for _, example in ipairs(examples.primitives) do add(list, example) end
  for _, example in ipairs(examples.beyond) do add(alone, example) end
  return examples_page("What the engine computes, in a rule's function and in stock lua5.4. Examples have this before them; "
                       .. "docs/reference.md and\nthe editor definitions say what each takes:\n\n" .. examples.prelude, list)
    .. "\n" .. examples_page("What programs alone have of it, and no policy. Examples have this before them, behind the lines above:\n\n"
                             .. examples.search, alone)
end

local schemas = {
  spec = function() return require("pipeplan.input.schema").spec() end,
  plan = function() return require "pipeplan.schema.plan" end,
  decision = function() return require "pipeplan.schema.decision" end,
  calibration = function() return require "pipeplan.schema.calibration" end,
  kernels = function() return require "pipeplan.schema.kernels" end,
  profile = function() return require "pipeplan.schema.profile" end,
  times = function() return require("pipeplan.input.times").schema() end,
}

function show.schema(which)
  local schema = schemas[which]
  if not schema then
    local names = table.concat(lists.sorted_keys(schemas), ", ")
    failure.usage("facts schema: expected one of %s%s", names, which and ": got '" .. which .. "'" or "")
  end
  return json.encode(schema(), { indent = 2 }) .. "\n"
end

function show.completion(shell)
  if not shell then return table.concat(shells, "\n") .. "\n" end
  if not lists.contains(shells, shell) then
    failure.usage("facts completion: no shell '%s': expected one of %s", shell, table.concat(shells, ", "))
  end
  return require("pipeplan.cli.shell." .. shell)()
end

function show.man(name)
  local man = require "pipeplan.cli.shell.man"
  if not name then return table.concat(man.names(), "\n") .. "\n" end
  return man.page(name) or failure.usage("facts man: no page '%s'%s", name, failure.suggestion(name, man.names()))
end

-- The same as data: the entries as they are kept, in SI units, each with its source.
local data = {
  fields = function() return require("pipeplan.vocabulary").fields end,
  spec = function() return require("pipeplan.input.fields").list end,
  schedules = function()
    local list = {}
    for i, name in ipairs(engine.schedule.kinds) do
      list[i] = lists.with(require("pipeplan.catalog.schedules").find(name), engine.schedule.traits(name))
    end
    return list
  end,
}
for _, topic in ipairs { "statements", "primitives" } do
  data[topic] = function()
    local list = {}
    for i, example in ipairs(require("pipeplan.policy.examples")[topic]) do
      list[i] = { name = example[1], example = topic == "statements" and example[3] or example[2],
                  meaning = topic == "statements" and example[2] or example[4], value = topic == "primitives" and example[3] or nil }
    end
    return list
  end
end
for _, topic in ipairs { "accelerators", "hosts", "kernels", "links", "overheads" } do
  data[topic] = function()
    local catalogue, list = require("pipeplan.catalog." .. topic), {}
    for i, name in ipairs(catalogue.names) do list[i] = catalogue.find(name) end   -- as it is found
    return list
  end
end

function data.frameworks()
  local list = {}
  for i, entry in ipairs(require("pipeplan.catalog.frameworks").entries) do
    assert(entry.keys)   -- made when somebody asks (frameworks/parts.lua)
    list[i] = lists.with(entry)
    list[i].plan_rules = nil   -- they stand among its rules
  end
  return list
end

-- A value as JSON takes it: of a list that has names beside its items the items are `list`; of a function, that there is one.
local function plain(value)
  if type(value) == "function" then return true end
  if type(value) ~= "table" or value == json.null then return value end
  local items, named = {}, {}
  for i, item in ipairs(value) do items[i] = plain(item) end
  for key, item in pairs(value) do
    if not items[key] then named[key] = plain(item) end
  end
  if next(named) == nil and #items > 0 then return items end
  if #items > 0 then named.list = items end
  return named
end

local function as_json(topic)
  return documents.encode("facts", { topic = topic, entries = json.array(plain(data[topic]())) }, { indent = 2 }) .. "\n"
end

-- What may stand behind it, and behind a topic.
facts.follow = { [""] = topics, schema = lists.sorted_keys(schemas), completion = shells }
facts.no_files = true

function facts.parser()
  local parser = argparse("pipeplan facts", "Prints what pipeplan knows: accelerators, links, kernels, frameworks, schedules, schemas.")
    :add_help(false):usage("Usage: pipeplan facts TOPIC [--format text|json]")
  parser:argument("topic", "what to print"):args("*")
  parser:option("--format", "what to print it as"):choices({ "text", "json" }):default("text")
  parser:option("--stdlib"):hidden(true)  -- read by the program before any Lua runs
  parser:flag("-h --help", "show this help")
  return parser
end

function facts.run(arguments)
  local parsed = command_line.parse(facts.parser(), arguments, "facts")
  if not parsed then return facts.usage, failure.status.ok end
  local topic, which, extra = table.unpack(parsed.topic)
  if not topic then failure.usage("facts: expected a topic: %s", table.concat(topics, ", ")) end
  if not show[topic] then failure.usage("facts: no topic '%s'%s", topic, failure.suggestion(topic, topics)) end
  if topic ~= "schema" and topic ~= "man" and topic ~= "completion" then which, extra = nil, which end
  if extra then failure.usage("facts %s: one argument too many: '%s'", topic, extra) end
  if parsed.format == "json" and data[topic] then return as_json(topic), failure.status.ok end
  return show[topic](which), failure.status.ok
end

return facts
