-- SPDX-License-Identifier: Apache-2.0
-- spec.lua: spec files and options → the request, a plain table in SI units that everything else reads.
-- Several files are laid over each other, field by field, later ones winning; options win over all of them. `model` is one field.
-- What is wrong raises a usage failure of one line: where, which field, its value, what was expected, the nearest legal value.

local contradictions = require "pipeplan.input.contradictions"
local documents = require "pipeplan.base.documents"
local failure = require "pipeplan.base.failure"
local fields = require "pipeplan.input.fields"
local files = require "pipeplan.input.files"
local hardware = require "pipeplan.input.hardware"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"
local model = require "pipeplan.input.model"
local recipe = require "pipeplan.input.recipe"
local stages = require "pipeplan.input.stages"
local units = require "pipeplan.base.units"
local vocabulary = require "pipeplan.vocabulary"

local spec = {}

local MOST_DEEP = 16  -- tables in tables of a spec: it has four

-- "did you mean": a key of the same object, or the field of that name elsewhere.
local function unknown_key(key, group, origin)
  if #key > 60 then key = key:sub(1, 57):gsub("[\x80-\xBF]*$", "") .. "…" end
  key = key:gsub("%c", "?")
  local known = fields.by_name[key]
  local path = group == "" and key or group .. "." .. key
  if known then failure.usage("%s: %s is no field of a spec; %s belongs under %s", origin, path, key, known.path) end
  local elsewhere = require("pipeplan.names").in_spec(key)
  failure.usage("%s: %s is no field of a spec%s", origin, path,
                elsewhere ~= "" and elsewhere or failure.suggestion(key, fields.keys(group)))
end

-- Is a value of Lua one that JSON can say? A list with a hole or a name in it would be cut short without a word. path: "" of the whole.
local function check_sayable(value, origin, path, depth)
  local kind = type(value)
  if kind == "string" or kind == "number" or kind == "boolean" or value == json.null then return end
  local at = origin .. (path == "" and "" or ": " .. path)
  if kind ~= "table" then failure.usage("%s is a %s: expected a text, a number, true, false or a table", at, kind) end
  local named = lists.is_named(value)
  if not named and not lists.is_list(value) then
    failure.usage("%s is a table of other keys than all names or all of 1, 2, 3 …: expected an object or a list", at)
  end
  if depth == MOST_DEEP then failure.usage("%s lies more than %d tables deep: does a table hold itself?", at, MOST_DEEP) end
  local prefix = path == "" and "" or path .. "."
  for _, key in ipairs(lists.sorted_keys(value)) do
    check_sayable(value[key], origin, (named and prefix or path) .. (named and key or "[" .. key .. "]"), depth + 1)
  end
end

-- Lays the fields of one object over `given`.
local function collect(given, object, group, origin, base)
  local known = fields.groups[group]
  if group == "" then documents.check(object, "spec", origin) end
  local keys = {}
  for key in pairs(object) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(keys) do
    local value, entry = object[key], known[key]
    if not entry then
      if group ~= "" or key ~= "$schema" then unknown_key(tostring(key), group, origin) end  -- $schema is for editors
    elseif type(entry) == "string" then
      if type(value) ~= "table" or value == json.null or json.is_array(value) then
        failure.usage("%s: %s is %s: expected an object with %s", origin, entry, fields.show(value),
                      table.concat(fields.keys(entry), ", "))
      end
      collect(given, value, entry, origin, base)
    elseif value == json.null then
      failure.usage("%s: %s is null: leave the field out when it has no value", origin, entry.path)
    else
      given[entry.path] = { value = value, origin = origin, shown = entry.path, base = base }
    end
  end
end

local function collect_options(given, options, base)
  for _, name in ipairs(lists.sorted_keys(options)) do
    local entry = fields.by_name[name]
    if not entry then
      failure.usage("command line: no option --%s%s", name, failure.suggestion(name, lists.sorted_keys(fields.by_name)))
    end
    check_sayable(options[name], "command line", "--" .. name, 0)
    given[entry.path] = { value = options[name], origin = "command line", shown = "--" .. name, base = base }
  end
end

-- Raises the failure for a field that was given.
local function complain(at, format, ...)
  failure.usage("%s: %s is %s", at.origin, at.shown, string.format(format, ...))
end

-- training.loss and training.unfused, among which a loss stood before it had a field of its own.
local function losses(request, given)
  local loss, kernels = given["training.loss"], given["training.unfused"]
  if not (kernels and kernels.value[fields.old_loss]) then return loss and loss.value, kernels and kernels.value or {} end
  if loss and loss.value ~= "torch" then complain(loss, "%s beside an unfused loss, as torch was called", loss.value) end
  table.insert(request.warnings, { id = "renamed_field", severity = "warning",
                                   message = "training.unfused says loss, which is training.loss torch now" })
  local others = lists.with(kernels.value)
  others[fields.old_loss] = nil
  return "torch", others
end

-- Paths become those that can be opened from here.
local function find_files(entry, at)
  if entry.type == "path" then at.value = files.readable(at) end
  if entry.type ~= "paths" then return end
  for i, path in ipairs(at.value) do
    at.value[i] = files.readable { value = path, origin = at.origin, shown = at.shown, base = at.base }
  end
end

local function check_all(given, name)
  for _, entry in ipairs(fields.list) do
    local at = given[entry.path]
    if at then
      local value, problem = fields.check(entry, at.value)
      if value == nil then complain(at, "%s", problem) end
      at.written, at.value = at.value, value
      find_files(entry, at)
    elseif entry.required then
      failure.usage("%s: %s is missing: expected %s (or option --%s)", name, entry.path, entry.meaning, entry.name)
    end
  end
end

local function sharding_stage(name, zero) return name and vocabulary.zero_of[name] or zero end

local function training(request, value, assume, precision)
  local maximum = request.model.max_positions
  local sequence_length = value "training.sequence_length" or
    assume("training.sequence_length", math.min(4096, maximum or 4096), maximum and maximum < 4096 and "the model's maximum" or "usual")
  local batch = value "training.global_batch_size"
  local ramp = type(batch) == "table" and batch or nil
  return {
    tokens = value "training.tokens",
    sequence_length = sequence_length,
    document_length = value "training.document_length", document_length_rms = value "training.document_length_rms",
    padding = value "training.padding" or 0,
    micro_batch_size = value "training.micro_batch_size" or 1,
    global_batch_size = ramp and ramp[#ramp][2] or batch,
    smallest_batch_size = ramp and ramp[1][2] or batch,
    batch_ramp = ramp,
    precision = precision,
    optimizer = value "training.optimizer" or assume("training.optimizer", "adam", "usual"),
    moments = value "training.moments" or assume("training.moments", "fp32", "Megatron's default"),
    gradients = value "training.gradients" or assume("training.gradients", "fp32", "Megatron's default with bf16"),
    weight_gradients = value "training.weight_gradients", lora_rank = value "training.lora_rank", tower = value "training.tower",
    reduction = value "training.reduction", reduced_gradients = value "training.reduced_gradients", dropout = value "training.dropout",
    zero = sharding_stage(value "training.sharding", value "training.zero"),
    reshard = value "training.reshard", fp8_gathers = value "training.fp8_gathers", replicas = value "training.replicas",
    optimizer_offload = value "training.optimizer_offload" or 0,
    weights = value "training.weights",
    activations = value "training.activations",
    expert_imbalance = value "training.expert_imbalance",
    recompute = value "training.recompute" or {},
    data_overlap = value "training.data_overlap", bucket = value "training.bucket",
    tensor_overlap = value "training.tensor_overlap",
    alltoall_overlap = value "training.alltoall_overlap",
    cuda_graphs = value "training.cuda_graphs",
    goodput = value "training.goodput",
  }
end

-- What of the recipe the plan chooses, for the spec leaves it out: { field = true }. A profile is of one recipe: with it nothing is chosen.
local function free_of(request, value)
  if value "profile" then return {} end
  local fixed, recipe_of = request.parallelism, request.training
  local free = { micro_batch_size = not value "training.micro_batch_size" or nil, recompute = not value "training.recompute" or nil,
                 sharding = not recipe_of.zero or nil, gpus_used = true }
  local batch, data = recipe_of.global_batch_size, fixed.data
  if not data and fixed.tensor and fixed.context and fixed.pipeline then
    data = request.cluster.gpus // (fixed.tensor * fixed.context * fixed.pipeline)
  end
  local rows = fixed.microbatches and data and fixed.microbatches * data
  if free.micro_batch_size and rows and batch then
    -- batch = M × DP × microbatch size leaves no choice; where it is not whole, the contradiction is told at 1
    recipe_of.micro_batch_size, free.micro_batch_size = batch % rows == 0 and batch // rows or 1, nil
  end
  return free
end

-- given: path → { value, origin, shown, base } of every field, checked. source: what else a request is made from, and keeps where fields
-- are laid over it: { file = what to call the spec in messages, files = paths, read = { assumptions, warnings } of what was read as a spec,
-- factors = of the price, in place of a calibration's (spec.with_factors) }.
local function build(given, source)
  local name, beside = source.file, source.read or {}
  local request = { source = source, given = {}, assumptions = {}, warnings = {} }
  local function value(path)
    return given[path] and given[path].value
  end
  local function assume(path, assumed, why)
    table.insert(request.assumptions, { field = path, value = units.written(assumed, fields.by_path[path].unit), why = why })
    return assumed
  end
  for path in pairs(given) do request.given[path] = true end
  if given["cluster.inventory"] then require("pipeplan.input.found_cluster").note(request, given) end

  local frozen = value "training.lora_rank" and "frozen"   -- adapters stand beside the text model's weights
  request.model = model.read(given.model, request, value "training.tower" or frozen)
  local accelerator = hardware.find(given, name, complain)
  request.training = training(request, value, assume, hardware.precision(given, accelerator, assume, complain))
  request.training.loss, request.training.unfused = losses(request, given)
  hardware.read(request, given, accelerator, name, assume, complain)
  request.parallelism = {}
  for _, key in ipairs(fields.keys "parallelism") do request.parallelism[key] = value("parallelism." .. key) end
  local fixed = request.parallelism
  request.training.sequence_parallel, fixed.sequence = fixed.sequence, nil  -- of the recipe: no candidate differs in these
  request.training.scatter_messages, fixed.scatter_messages = fixed.scatter_messages, nil
  fixed.layers_per_stage = stages.of(request, given, complain)
  local no_rank_left = fixed.data and fixed.data * (fixed.tensor or 1) * (fixed.context or 1) == request.cluster.gpus
  if fixed.schedule == "none" or no_rank_left then fixed.pipeline = fixed.pipeline or 1 end
  request.framework, request.framework_version = value "framework", value "framework_version"
  request.run, request.team, request.labels = value "run", value "team", value "labels"
  request.free = free_of(request, value)
  if not value "training.micro_batch_size" and not request.free.micro_batch_size then
    assume("training.micro_batch_size", request.training.micro_batch_size, value "profile" and "least memory" or "batch / (M × DP)")
  end
  if not value "training.recompute" and not request.free.recompute then
    assume("training.recompute", "nothing", "the profile is of a recipe without")
  end
  local calibration = value "cluster.calibration"
  if calibration then
    local at = given["cluster.calibration"]
    if value "profile" then complain(at, "given beside a profile, whose times are measured already; leave one out") end
    local read = require("pipeplan.input.calibration").read(calibration, request)
    request.calibration = read
    table.insert(request.assumptions, { field = "cluster.calibration", value = read.words, why = read.source })
  end
  local measured = value "profile"
  request.profile = measured and require("pipeplan.input.profile").read(measured, request)
  for i, assumption in ipairs(recipe.job(request)) do table.insert(request.assumptions, i, assumption) end
  for _, assumption in ipairs(recipe.assumptions(request)) do table.insert(request.assumptions, assumption) end
  for _, warning in ipairs(contradictions.unread(request, given)) do table.insert(request.warnings, warning) end
  for _, assumption in ipairs(beside.assumptions or {}) do table.insert(request.assumptions, assumption) end
  for _, warning in ipairs(beside.warnings or {}) do table.insert(request.warnings, warning) end
  return source.factors and spec.with_factors(request, source.factors) or request
end

-- The request with these factors of the price (input/calibration.lua) and no others; what is laid over it has them too.
function spec.with_factors(request, factors)
  return lists.with(request, { calibration = { factors = factors }, source = lists.with(request.source, { factors = factors }) })
end

-- gpus "minimum": a request without a number of GPUs. at(gpus) is the request for so many, or nil where the spec contradicts it; where the
-- fixed layout divides no other count, `unit` says which.
local function build_any(given, source)
  local function at(gpus)
    local copy = {}
    for path, field in pairs(given) do copy[path] = field end
    copy["cluster.gpus"] = { value = gpus, written = "minimum", origin = given["cluster.gpus"].origin, shown = given["cluster.gpus"].shown }
    local request = build(copy, source)
    local good, problem = failure.try(contradictions.check, request, copy, complain)
    request.stated = copy
    if good then return request end
    if not failure.is(problem) then error(problem, 0) end
    return nil, problem.message
  end
  local function fixed(path) return given["parallelism." .. path] and given["parallelism." .. path].value or 1 end
  local function stated(path) return given[path] and given[path].value end
  local experts = recipe.expert_tensor { framework = stated "framework", parallelism = {
    tensor = fixed "tensor", expert_tensor = stated "parallelism.expert_tensor" } }
  local inside = fixed "tensor" * fixed "context" * fixed "data" * fixed "pipeline"
  return { framework = stated "framework", stated = given,
           any_gpus = { at = at, units = { inside, fixed "expert" * experts * fixed "pipeline" } } }
end

local function finished(given, source)
  if given["cluster.inventory"] then require("pipeplan.input.found_cluster").fill(given) end
  check_all(given, source.file)
  if given["cluster.gpus"].value == "minimum" then return build_any(given, source) end
  local request = build(given, source)
  contradictions.check(request, given, complain)
  request.stated = given  -- for spec.laid
  return request
end

-- The request for a run whose fewest GPUs hold it without a pipeline alone. What is tried on as many has none either (spec.laid).
function spec.without_pipeline(request)
  local out = lists.with(request, { parallelism = lists.with(request.parallelism, { pipeline = 1 }), without_pipeline = true })
  table.insert(out.assumptions, { field = "parallelism.pipeline", value = 1, why = "without a pipeline the run fits on fewer GPUs" })
  return out
end

-- The request with fields of its spec as something else: path → value, as a spec would say it, null where it says nothing; nil where that
-- is no spec.
function spec.laid(request, changes)
  local given = {}
  for path, at in pairs(request.stated) do given[path] = at end
  for path, value in pairs(changes) do
    local at = given[path] or { origin = "changes", shown = path }
    local checked
    if value ~= json.null then
      checked = fields.check(fields.by_path[path], value)
      if checked == nil then return nil end
    end
    given[path] = checked ~= nil and { value = checked, written = value, origin = at.origin, shown = at.shown, base = at.base } or nil
  end
  local good, changed = failure.try(function()
    local other = build(given, request.source)
    contradictions.check(other, given, complain)
    other.stated = given
    local fixed = changes["cluster.gpus"] or other.parallelism.pipeline or other.parallelism.schedule
    local alone = request.without_pipeline and not fixed
    return alone and spec.without_pipeline(other) or other
  end)
  if not good and not failure.is(changed) then error(changed, 0) end
  return good and changed or nil
end

-- One object of a spec: what else JSON can say is told.
local function check_object(object, name)
  if type(object) ~= "table" or object == json.null or json.is_array(object) then
    failure.usage("%s: holds %s: expected an object with %s", name, fields.show(object), table.concat(fields.keys "", ", "))
  end
end

-- spec.read{ files = { … }, held = { file = its text }: of what was read before, options = { name = value }, base = directory of relative
--   paths in options,
--   objects = { { object, name, base } }: what looks like spec files, under the files; otherwise = { name = value }: what holds where
--   none of them says; read = { assumptions, warnings } of what the objects were read from } → request
function spec.read(arguments)
  local given, name = {}, "command line"
  collect_options(given, arguments.otherwise or {}, "")
  for _, each in ipairs(arguments.objects or {}) do
    name = each.name
    collect(given, each.object, "", name, each.base)
  end
  for _, file in ipairs(arguments.files or {}) do
    name = file == "-" and "standard input" or file
    local text = arguments.held and arguments.held[file]
    local object
    if text then object = json.decode(text, name) else object = json.read(file) end
    check_object(object, name)
    collect(given, object, "", name, file == "-" and "" or files.directory_of(file))
  end
  collect_options(given, arguments.options or {}, arguments.base or "")
  return finished(given, { file = name, files = arguments.files or {}, read = arguments.read })
end

-- The same from a Lua table that looks like a spec file, or from JSON that was read; `base` is the directory of relative paths in it.
function spec.from_table(object, base)
  check_object(object, "spec")
  check_sayable(object, "spec", "", 0)
  local given = {}
  collect(given, object, "", "spec", base and base .. "/" or "")
  return finished(given, { file = "spec", files = {} })
end

return spec
