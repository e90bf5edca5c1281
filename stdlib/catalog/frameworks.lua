-- SPDX-License-Identifier: Apache-2.0
-- frameworks.lua: what each framework runs, asks and takes for granted: one table a framework, in frameworks/NAME.lua. Planner, reports, and
-- whoever reads or writes a framework's files read these tables and nothing else. A test holds their shape (tests/lua/frameworks_spec.lua).
--
-- versions       { name, what }: the releases or commits that the facts are of
-- schedules      name → { since or state, flag: how a user asks for it ({limit}: the plan's activation limit), layers: as below, where
--                stricter than the framework's; csv = true: not a schedule of the framework, but its runtime executes the program that
--                `pipeplan plan --format csv` prints; name: what a key that chooses one has; alone = true: without a pipeline its pairs hide the all-to-all too }
-- names          what its users call M and P
-- rounds         microbatches of a chunk's turn: M in max(1, M div P) equal rounds, instead of any group of at least P
-- has            which kinds of parallelism there are; tied_embeddings: can embedding and output weights be tied across stages?
-- layers         how stages get unequal numbers of layers: any, layout (a string: any numbers), names (lists of modules: any numbers), ends
--                (the first and the last rank their own number, the others alike, all multiples of `multiple`), remainder_first (as even as
--                can be, the first ones one more), even (not at all); key, first, last: what says it
-- sharding       with_pipeline: ZeRO stages that go together with one; alone: those without (nil: 0 and 1); gradients: what sharded ones
--                are reduced and kept in when nobody says (nil: as the spec's); in_place: without copies between collectives and compute; master:
--                sharded parameters are the master weights themselves, cast as they are gathered;
--                bucket, bucket_per_rank: parameters whose gradients are reduced at once, the larger of the one and the other for each rank
-- overlap        what hides which traffic; data: share of a microbatch's backward behind which gradients are reduced when nobody says (assumed)
-- recompute      per_weight: with a split backward W computes a checkpointed layer again for each of its weights; nil: once, in I
-- loss           how: how its trainer computes the cross entropy (engine/core/loss.c); eager: … where kernels are said not to be fused; source; nil: as
--                the program that it runs does
-- weight_gradients  how: temporaries of weights' gradients are "kept", one for each shape of weights, or "dropped" once they are added; source
-- defaults       what holds when nobody says: expert_tensor "tensor" (as many as TP) or a number, which Megatron's kin have at EP over 1; nil: not
--                known; zero, moments, gradients, precision, sequence_parallel; linear_inputs: with fp8 products, what SwiGLU reads is kept in
-- communicators  process groups that a rank communicates in, as engine.search names them; measured: with sizes that were
--                (overheads.lua), in groups of one rank too
-- host_floor     seconds that the host needs to launch one layer in one direction, under the names of pp_host, and their source; nil: not known
-- chosen         function: the schedule that its own keys ask for, or nil; it is given a function from keys to values
-- argparse       where its arguments are declared: one that it does not know ends it; nil: what it knows is not all in `keys`
-- facts          name → key: what rules call the value of a key that is no field of the vocabulary
-- strangers      what it does with YAML: severity of a key that it does not know: error, it does not start, or warning, the key is not read;
--                words: values become words of a command line, whose parser judges them; choices: it has the base's own; source
-- required       key → true: it does not start without it; or the key that may stand for it
-- keys           { key, field: of a spec, or plan.NAME: of a plan, type, values, default or default_of: another field, when nobody says,
--                present: what a flag stands for, written: when a plan for it writes the key: always, differs (from the default), pipeline
--                (wherever there is one), never; silent: a plan says it beside the layout, for its absence is legal and means something
--                else; value: a function of the request's training, of which fields its spec gives, and of the plan, where the field itself
--                is not it; wants: a key that must stand beside it; same: function, are two values one to a plan?; least: the least that it
--                may be, where that is no degree's 1, and a value that is no number is refused; positive: a number under 1 leaves a model without
--                that part; unset: function, is a number the same as not saying it?; unread { field, what }: what
--                a run has with it that no spec says, for which `plan` refuses a launch; assumed { field, value, why }: what a plan takes
--                instead; needed: it does not start where that is null; base: the key of the framework that it is derived from }
-- accepts        of one that launches are written for: by, what of its own code took them; test, of tests/torch; except, { what, why, when =
--                function of a plan and of what is written, key → value }: what of them that code was not asked about
-- unverified     why none of its code was asked at all, instead
-- writes         key → function: what a plan makes of a key that is no single field of it (megatron_writes.lua); nil: launches are not written
-- unplanned      function of a model's shape: what of it no plan says, in words, and the keys that do; a launch that is written says so
-- unsaid         function of the same as those: what of a plan no key says, in words; nil: nothing
-- told           field of training → true: what of a recipe it has a way to say that is no key's field, or that the user's program has; unfused →
--                kernel → true (report/launch/untold.lua)
-- recipes        name of a program that makes its configuration → key → what it sets beside the keys' defaults
-- gone           { key, now: what took its place, how: refused, unrecognized, renamed (taken all the same) or ignored, source }
-- rules          { id, message, source, and conditions }: what it refuses. A condition is field = value, field = { values } or field =
--                { operator = a number or the name of a field }, as in a policy; `when` a function of the fields; all must hold. by = "engine":
--                no plan ever breaks it, so that only whoever reads a file asks: `severity` of such a rule is warning or note where the
--                framework runs, and does something else than the file seems to ask; `about`, the field whose line a finding is told
--                at, where it is not the first one of its message. Not to be disabled by any policy
-- plan_rules     those of the rules that plans are held against: all but by = "engine"
-- program        fields of a plan that stand in a program of the user's, so that a launch need not say them
-- gpus_elsewhere true: how many GPUs a launch gets stands in no file
-- notes, source  for people
-- A derived framework (derive.lua) also has base: the name of the other, and spell: function, how it writes a key of that. What only who reads
-- or writes a framework's files asks for is made when somebody does (parts.lua).

local lists = require "pipeplan.base.lists"
local lookup = require "pipeplan.catalog.lookup"
local parts = require "pipeplan.catalog.frameworks.parts"

-- In the order in which people look for one.
local entries = {
  require "pipeplan.catalog.frameworks.megatron",
  require "pipeplan.catalog.frameworks.megatron_bridge",
  require "pipeplan.catalog.frameworks.flagscale",
  require "pipeplan.catalog.frameworks.deepseek_dualpipe",
  require "pipeplan.catalog.frameworks.torchtitan",
  require "pipeplan.catalog.frameworks.torch",
  require "pipeplan.catalog.frameworks.deepspeed",
  require "pipeplan.catalog.frameworks.nanotron",
  require "pipeplan.catalog.frameworks.mindspeed",
  require "pipeplan.catalog.frameworks.primus",
  require "pipeplan.catalog.frameworks.colossalai",
  (require "pipeplan.catalog.frameworks.zero_bubble"),  -- one value: the last call of a list gives all that it returns
}

for _, entry in ipairs(entries) do
  entry.plan_rules = entry.plan_rules or parts.of_plans(entry.rules)   -- of a table in one part
end

local catalogue = lookup { entries = entries }

-- Names of the frameworks that run a schedule, in the order above.
function catalogue.running(schedule)
  local list = {}
  for _, entry in ipairs(entries) do
    if entry.schedules[schedule] then list[#list + 1] = entry.name end
  end
  return list
end

-- Sorted names of the schedules that a framework runs.
function catalogue.schedules(entry)
  return lists.sorted_keys(entry.schedules)
end

-- Is a key of a framework's table said by standing there, and takes no value?
function catalogue.is_flag(key) return key.type == "flag" or key.present ~= nil end

-- How stages of that schedule get their layers in a framework that runs it.
function catalogue.layers(entry, schedule)
  local how = entry.schedules[schedule]
  return how and how.layers or entry.layers
end

-- ---------------------------------------------------------------------------------------------------------------------------- rules

local told = { id = true, message = true, source = true, when = true, nearest = true, by = true, severity = true, about = true }

-- What stands behind a field of a rule.
local function read(field, right)
  if type(right) ~= "table" then return { field = field, op = "equal", value = right } end
  if right[1] ~= nil then return { field = field, op = "one_of", values = right } end
  local op, value = next(right)
  return { field = field, op = op, value = type(value) == "string" and { field = value } or value }
end

-- { field, op, value or values } of a rule, by field, as engine.conditions takes them.
local function conditions(rule)
  local list = {}
  for _, field in ipairs(lists.sorted_keys(rule)) do
    if not told[field] then list[#list + 1] = read(field, rule[field]) end
  end
  return list
end
catalogue.conditions = conditions

-- Is it a rule about that schedule, and not about every one?
local function is_about(rule, schedule)
  return rule.schedule == schedule or type(rule.schedule) == "table" and lists.contains(rule.schedule, schedule)
end

-- Those of the first list that stand in the second too.
local function common(rules, others)
  local ids = {}
  for _, rule in ipairs(others) do ids[rule.id] = true end
  local list = {}
  for _, rule in ipairs(rules) do
    if ids[rule.id] then list[#list + 1] = rule end
  end
  return list
end

local function shared(schedule)
  local list
  for _, entry in ipairs(entries) do
    if entry.schedules[schedule] then
      local mine = {}
      for _, rule in ipairs(entry.plan_rules) do
        if is_about(rule, schedule) then mine[#mine + 1] = rule end
      end
      list = list and common(list, mine) or mine
      if #list == 0 then break end
    end
  end
  return list or {}
end

local known = {}

-- Rules of plans about a schedule that all frameworks which run it have: they hold where no framework is named.
function catalogue.shared(schedule)
  known[schedule] = known[schedule] or shared(schedule)
  return known[schedule]
end

-- Process groups that a rank communicates in; without a framework those that any has.
function catalogue.communicators(name)
  return name and catalogue.find(name).communicators or catalogue.find("torch").communicators
end

-- Expert TP where nobody says: a number, "tensor", or nil where the framework is not known to say.
function catalogue.default_expert_tensor(name)
  local entry = name and catalogue.find(name)
  return entry and entry.defaults.expert_tensor or nil
end

return catalogue
