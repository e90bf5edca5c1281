-- SPDX-License-Identifier: Apache-2.0
-- yaml.lua: YAML that configures a training run → its launch: told apart by what stands in it.

local engine = require "engine"
local failure = require "pipeplan.base.failure"
local files = require "pipeplan.input.files"
local flags = require "pipeplan.input.launch.flags"
local frameworks = require "pipeplan.catalog.frameworks"
local interpolation = require "pipeplan.input.launch.interpolation"
local lists = require "pipeplan.base.lists"
local reading = require "pipeplan.base.reading"
local tree = require "pipeplan.input.launch.yaml_tree"

local yaml = {}

local MOST_BYTES, MOST_VALUES = 2 ^ 20, 20000
local MOST_GPUS = 10 ^ 9

local known = {}   -- framework → key → its entry

local truths = { ["true"] = true, yes = true, on = true, ["false"] = false, no = false, off = false }

-- true, false, or nil: no truth value.
local function truth(value)
  return value.plain and not value.unknown and truths[value.text:lower()] or nil
end

local function is_false(value) return value.plain and not value.unknown and truths[value.text:lower()] == false end

local function new(framework, file, more)
  return lists.with({ framework = framework, file = file, settings = {}, spelled = {}, unresolved = {}, notes = {}, line = 1 }, more)
end

-- Keys that stand twice in one map.
local function tell_duplicates(launch, duplicates, severity, says)
  -- Megatron's own tests read theirs with what takes the last
  local source = launch.framework ~= "megatron" and "https://github.com/omry/omegaconf, _utils.py: get_yaml_loader" or nil
  for _, twice in ipairs(duplicates) do
    local how = severity == "warning" and twice.same and "note" or severity
    launch.notes[#launch.notes + 1] = { id = "duplicate_key", severity = how, line = twice.line, key = twice.name,
                                        file = twice.file, source = source,
                                        message = string.format("%s stands at line %d already: %s", twice.name, twice.first, says) }
  end
end

-- What a launch is given counts as often as an alias names it: values, and maps that hold none.
local function count(launch, line)
  launch.values = (launch.values or 0) + 1
  if launch.values > MOST_VALUES then failure.usage("%s:%d: more than %d values", launch.file, line, MOST_VALUES) end
end

-- key → its entry in the framework's table.
local function known_of(framework)
  known[framework] = known[framework] or {}
  if not next(known[framework]) then
    for _, key in ipairs(frameworks.find(framework).keys) do known[framework][key.key] = key end
  end
  return known[framework]
end

-- Has a key one value, which is no map of others?
local function is_single(entry)
  return entry ~= nil and (frameworks.is_flag(entry) or entry.type == "integer" or entry.type == "number" or entry.type == "fraction")
end

-- Does the framework not start where that key is null?
local function is_needed(framework, entry)
  return entry ~= nil and (entry.needed or ((frameworks.find(framework).required or {})[entry.base or entry.key]) ~= nil)
end

-- A whole number as YAML 1.1 has it in another base: 0x10, 010.
local function in_base_10(text)
  local sign, digits = text:match "^([-+]?)0([0-7_]+)$"
  local base = digits and 8
  if not digits then
    sign, digits = text:match "^([-+]?)0x([%x_]+)$"
    base = digits and 16
  end
  local number = base and #digits <= 15 and tonumber((digits:gsub("_", "")), base)
  return number and string.format("%s%d", sign == "-" and "-" or "", number) or text
end

-- What stands in the place of a value that somebody will write: ???, <tp>, @TP@, $TP, %(tp)s.
local function is_placeholder(text) return text:find "^%?%?%?$" ~= nil or text:find "[<>@$%%{}]" ~= nil end

-- Adds to a setting what of YAML it is (init.lua); path: its key as the file has it; in_words: is it one of a command line to be?
local function add_form(setting, entry, node, path, in_words)
  local first = setting.values[1]
  setting.written, setting.texts = path, {}
  setting.form = node.kind ~= "scalar" and node.kind or setting.on and "true" or setting.off and "false" or setting.null and "null"
                 or node.plain and "plain" or "quoted"
  if node.kind == "scalar" and node.text:find("${", 1, true) and setting.form == "quoted" then setting.form = "plain" end
  for i, word in ipairs(setting.values) do setting.texts[i] = word.text end
  if #setting.texts == 0 and node.kind == "scalar" then setting.texts[1] = node.text end
  if not is_single(entry) or node.kind ~= "scalar" or not first or first.unknown then return end
  if is_placeholder(first.text) then first.unknown = { first.text }
  elseif frameworks.is_flag(entry) and not in_words and setting.form == "plain" and tonumber(first.text) == 0 then   -- as Python takes it
    setting.values, setting.off, setting.form = {}, true, "false"
  elseif setting.form == "plain" and entry.type == "integer" then
    first.text = in_base_10(first.text)
    setting.texts[1] = first.text
  end
end

-- Adds a setting of a node: a scalar, or a list of them, or a map where one value belongs; path: the key as the file has it.
local function add(launch, name, key, line, node, map, resolve, resolved, path)
  local words = {}
  for i, item in ipairs(node.kind == "list" and node.items or node.kind == "scalar" and { node } or {}) do
    count(launch, line)
    if item.kind == "scalar" then words[#words + 1] = resolve(item, map)
    elseif item.kind == "list" then  -- a layout as a list of lists
      local inner = {}
      for j, each in ipairs(item.items) do
        count(launch, line)
        inner[j] = each.kind == "scalar" and each.text or "?"
      end
      words[i] = { text = "[" .. table.concat(inner, ",") .. "]", line = item.line }
    end
  end
  local first = words[1]
  local flag = flags.find("--" .. name:gsub("_", "-"))
  local setting = { key = key, file = launch.file, line = line, flag = flag, values = words, name = name, resolved = resolved }
  if node.kind == "scalar" then
    local value = truth(first)
    if value then setting.values, setting.on = {}, true
    elseif is_false(first) then setting.values, setting.off = {}, true
    elseif first.null then setting.null = true end
  end
  if launch.framework ~= "megatron" then
    local strangers = frameworks.find(launch.framework).strangers
    add_form(setting, known_of(launch.framework)[key], node, path or name, strangers.words)
  end
  for _, word in ipairs(words) do
    for _, unknown in ipairs(word.unknown or {}) do
      launch.unresolved[#launch.unresolved + 1] = { key = unknown, file = launch.file, line = word.line }
    end
  end
  launch.settings[#launch.settings + 1] = setting
  launch.spelled["--" .. name:gsub("_", "-")] = true
  return setting
end

-- ------------------------------------------------------------------------------------------------------------- Megatron's MODEL_ARGS

-- A map, or a list where an argument takes one value.
local function tell_shape(launch, entry, flag)
  launch.notes[#launch.notes + 1] = {
    id = "bad_value", severity = "error", line = entry.line, key = entry.name,
    source = "https://github.com/NVIDIA/Megatron-LM/tree/d98e8a64, tests/functional_tests/shell_test_utils/_run_training.sh",
    message = string.format("Megatron-LM: %s is a %s: expected %s", entry.name, entry.value.kind,
                            flag and flag.kind == "integers" and "a whole number" or "one value") }
  launch.settings[#launch.settings + 1] = { key = entry.name, file = launch.file, line = entry.line, flag = flag,
                                            values = { { text = entry.name, line = entry.line, unknown = { entry.name } } } }
  launch.spelled[entry.name] = true
end

-- { "--flag": value }, of tests/functional_tests and of Megatron-MoE-ModelZoo.
local function model_args(root, file, duplicates, options)
  local launch = new("megatron", file, { program = nil })
  local args = tree.at(root, "MODEL_ARGS")
  launch.line = args.line
  tell_duplicates(launch, duplicates, "warning", "the last one holds")
  local resolve = interpolation.new { environment = true, variables = options.variables, lookup = function() end }
  for _, entry in ipairs(args.entries) do
    local name = entry.name:match "^%-%-(.+)$"
    local kind, flag = entry.value.kind, flags.find(entry.name)
    if name and (kind == "map" or kind == "list" and flag and flag.kind ~= "lists") then
      tell_shape(launch, entry, flag)
    elseif name then
      local setting = add(launch, name, entry.name, entry.line, entry.value, args, resolve)
      if setting.off or setting.null then table.remove(launch.settings) end   -- false, null: not written
      if setting.flag and setting.flag.kind == "lists" and #setting.values == 1 then  -- "a b c" is three words
        local word, words = setting.values[1], {}
        for part in word.text:gmatch "[^%s%[%]]+" do words[#words + 1] = lists.with(word, { text = part }) end
        setting.values = words
      end
      if setting.flag and setting.flag.kind == "choices" and setting.on then setting.values = { { text = "true", line = entry.line } } end
    end
  end
  return launch
end

-- --------------------------------------------------------------------------------------------------------------------- FlagScale

local left_out = { log_dir = true, details_dir = true, scripts_dir = true, pids_dir = true }

-- Nested maps are flattened without their own name (flagscale/runner/utils.py: flatten_dict_to_args).
local function flatten(launch, map, resolve)
  count(launch, map.line)
  for _, entry in ipairs(map.entries) do
    local name = entry.name:gsub("%-", "_")
    local key = known_of("flagscale")[name]
    if entry.value.kind == "map" and not is_single(key) then flatten(launch, entry.value, resolve)
    elseif not left_out[entry.name] then
      local setting = add(launch, name, name, entry.line, entry.value, map, resolve, nil, entry.name)
      if setting.off and not (is_single(key) and not frameworks.is_flag(key)) then table.remove(launch.settings)
      elseif setting.null then setting.values[1].text = "None" end
    end
  end
end

local function count_of(node)
  local number = node and node.kind == "scalar" and node.text:find "^%d+$" and math.tointeger(tonumber(node.text))
  return number and number >= 1 and number <= MOST_GPUS and number or nil
end

-- Of so many a node; nil: nobody has as many.
local function gpus_of(nodes, per_node, setting)
  if nodes * per_node > MOST_GPUS then return nil end
  return lists.with(setting, { value = nodes * per_node })
end

-- Lines "host slots=8 type=A100" of a hostfile, if it is there.
local function slots_of(path)
  local handle = reading.open(path, "regular")
  if not handle then return nil end
  local text = handle:read(65536) or ""
  handle:close()
  local sum = 0
  for line in text:gmatch "[^\n]+" do
    local slots = not line:find "^%s*#" and line:match "slots=(%d+)"
    sum = sum + (slots and tonumber(slots) or 0)
  end
  return sum > 0 and sum <= MOST_GPUS and math.tointeger(sum) or nil
end

local function flagscale_gpus(root, file)
  local runner, envs = tree.at(root, "experiment", "runner"), tree.at(root, "experiment", "envs")
  local hosts = tree.at(runner, "hostfile")
  local visible = tree.at(envs, "CUDA_VISIBLE_DEVICES")
  local devices = visible and visible.kind == "scalar" and select(2, visible.text:gsub("[^,%s]+", "")) or nil
  if hosts and hosts.kind == "scalar" and not (hosts.plain and (hosts.text == "null" or hosts.text == "")) and hosts.text ~= "None" then
    local slots = slots_of(hosts.text:sub(1, 1) == "/" and hosts.text or files.directory_of(file) .. hosts.text)
    return slots and { key = "hostfile", value = slots, file = file, line = hosts.line } or nil
  end
  local nodes, processes = tree.at(runner, "nnodes"), tree.at(runner, "nproc_per_node")
  local per_node = count_of(processes)
  if per_node and devices then per_node = math.min(per_node, devices) end
  per_node = per_node or devices
  if not per_node then return nil end
  local at, number = processes or visible, nodes and count_of(nodes) or not nodes and 1
  if not number then return nil end  -- "auto", say: what starts it knows
  return gpus_of(number, per_node, { key = processes and "nproc_per_node" or "CUDA_VISIBLE_DEVICES", file = file,
                                                   line = at.line })
end

local function is_true(map, name)
  local node = tree.at(map, name)
  return node ~= nil and node.kind == "scalar" and truths[node.text:lower()] == true
end

-- Anywhere in a map of maps, each of which is looked at once.
local function anywhere(map, name, seen)
  if is_true(map, name) then return tree.at(map, name) end
  seen[map] = true
  for _, entry in ipairs(map.entries) do
    local found = entry.value.kind == "map" and not seen[entry.value] and anywhere(entry.value, name, seen)
    if found then return found end
  end
end

local function unjudged(launch, line, message)
  launch.judged = false
  launch.notes[#launch.notes + 1] = { id = "not_judged", severity = "note", line = line, message = message }
end

-- Of what Megatron-LM does not start without, does anything stand here?
local function has_model(launch)
  for _, setting in ipairs(launch.settings) do
    if setting.key == "num_layers" or setting.key == "hidden_size" or setting.key == "micro_batch_size" then return true end
  end
  return false
end

local function flagscale_body(body, root, file, body_file, options)
  local launch = new("flagscale", body_file)
  if root ~= body then launch.gpus = flagscale_gpus(root, file) end
  local resolve = interpolation.new { lookup = interpolation.lookup_in { root, body }, variables = options.variables }
  for _, part in ipairs { "system", "model", "data" } do
    local map = tree.at(body, part)
    if map and map.kind == "map" then
      flatten(launch, map, resolve)
      local hetero = anywhere(map, "enable_hetero", {})
      if hetero then
        launch.judged = false
        launch.notes[#launch.notes + 1] = { id = "heterogeneous", severity = "note", line = hetero.line, key = "enable_hetero",
          source = "https://github.com/flagos-ai/FlagScale/tree/16a2dd5b, flagscale/train/arguments.py:80-225",
          message = "ranks of several kinds (enable_hetero): not judged, for all else here is about ranks that are alike" }
      end
    end
  end
  if launch.judged ~= false and not has_model(launch) then
    unjudged(launch, body.line, "no num_layers, hidden_size or micro_batch_size: no model of Megatron-LM, and nothing is judged")
  end
  return launch
end

local function read_file(path)
  local text = reading.given(path):read(MOST_BYTES + 1)
  if #(text or "") > MOST_BYTES then failure.usage("%s: larger than 1 MiB", path) end
  return text or ""
end

-- The top file of a FlagScale experiment: its body is conf/train/NAME.yaml, which `defaults` names.
local function flagscale_top(root, file, duplicates, options)
  local auto = tree.at(root, "action")
  local launch = new("flagscale", file)
  local body_name, body_line
  local defaults = tree.at(root, "defaults")
  for _, item in ipairs(defaults and defaults.kind == "list" and defaults.items or {}) do
    local node = tree.at(item, "train")
    if node and node.kind == "scalar" then body_name, body_line = node.text, node.line end
  end
  local inline = tree.at(root, "train")
  local body, body_file = inline, file
  local all = { table.unpack(duplicates) }
  if body_name then
    if not body_name:find "^[%w_%-.]+$" or body_name:find("..", 1, true) then
      failure.usage("%s:%d: defaults name train: %s: expected the name of a file in train/", file, body_line, body_name)
    end
    body_file = files.directory_of(file) .. "train/" .. body_name:gsub("%.yaml$", "") .. ".yaml"
    if engine.host.readable(body_file, true) then
      local more
      body, more = tree.read(read_file(body_file), body_file)
      for _, twice in ipairs(more) do all[#all + 1] = lists.with(twice, { file = body_file }) end
    end
  end
  if auto and auto.kind == "scalar" and auto.text == "auto_tune" then
    launch.judged = false
    launch.notes[1] = { id = "auto_tune", severity = "note", line = auto.line, key = "action",
                        source = "https://github.com/flagos-ai/FlagScale/tree/16a2dd5b, flagscale/auto_tuner",
                        message = "a search of FlagScale's auto tuner, not a run: nothing is judged" }
    return launch
  end
  for _, task in ipairs { { "type", "train" }, { "backend", "megatron" } } do
    local node = tree.at(root, "experiment", "task", task[1])
    if launch.judged ~= false and node and node.kind == "scalar" and node.text ~= task[2] then
      unjudged(launch, node.line, string.format("its task is of %s %s: no training with Megatron-LM, and nothing is judged", task[1],
                                                node.text))
    end
  end
  if launch.judged == false then return launch end
  if not body or body.kind ~= "map" then
    launch.judged = false
    launch.notes[1] = { id = "no_body", severity = "error", line = body_line or 1, key = "defaults", value = body_name,
                        source = "https://hydra.cc/docs/advanced/defaults_list/",
                        message = body_name and string.format("defaults name train: %s, and %s cannot be read: Hydra ends there",
                                                              body_name, body_file)
                                  or "its defaults name no train: FlagScale has nothing to run" }
    return launch
  end
  launch = flagscale_body(body, root, file, body_file, options)
  tell_duplicates(launch, all, "error", "OmegaConf refuses a key that stands twice")
  return launch
end

-- ------------------------------------------------------------------------------------------------------- Megatron-Bridge and NeMo

-- What NeMo's own YAML calls keys of Megatron-Bridge.
local of_nemo = {
  ["model.micro_batch_size"] = "train.micro_batch_size", ["model.global_batch_size"] = "train.global_batch_size",
  ["model.rampup_batch_size"] = "train.rampup_batch_size", ["model.encoder_seq_length"] = "model.seq_length",
  ["model.activations_checkpoint_granularity"] = "model.recompute_granularity",
  ["model.activations_checkpoint_method"] = "model.recompute_method",
  ["model.activations_checkpoint_num_layers"] = "model.recompute_num_layers", ["model.bias"] = "model.add_bias_linear",
  ["model.overlap_p2p_comm"] = "comm_overlap.overlap_p2p_comm", ["model.batch_p2p_comm"] = "comm_overlap.batch_p2p_comm",
}

local function walk(launch, map, path, resolve, rename, level)
  count(launch, map.line)
  for _, entry in ipairs(map.entries) do
    local key = path == "" and entry.name or path .. "." .. entry.name
    local known_key = known_of(launch.framework)[rename[key] or key]
    if entry.value.kind == "map" and not is_single(known_key) then
      if level < 8 then walk(launch, entry.value, key, resolve, rename, level + 1) end
    elseif entry.name:sub(1, 1) ~= "_" then
      local setting = add(launch, entry.name, rename[key] or key, entry.line, entry.value, map, resolve, true, key)
      if setting.null and not is_needed(launch.framework, known_key) then table.remove(launch.settings) end
    end
  end
end

local function words_said(launch, key, text, line)
  launch.settings[#launch.settings + 1] = { key = key, file = launch.file, line = line, values = { { text = text, line = line } },
                                            resolved = true }
end

local precisions = { bf16 = "bf16_mixed", ["bf16-mixed"] = "bf16_mixed", ["16"] = "fp16_mixed", ["16-mixed"] = "fp16_mixed" }

local function bridge(root, file, duplicates, options)
  local trainer = tree.at(root, "trainer")
  local launch = new("megatron-bridge", file, { version = trainer and "NeMo" or nil })
  tell_duplicates(launch, duplicates, trainer and "error" or "warning",
                  trainer and "OmegaConf refuses a key that stands twice" or "the last one holds")
  -- "training." is how the launcher's files name themselves
  local lookup = interpolation.lookup_in { root }
  local resolve = interpolation.new { variables = options.variables, lookup = function(path, map)
    return lookup(path:gsub("^training%.", ""), map)
  end }
  local model = tree.at(root, "model")
  launch.line = model.line
  launch.renamed = trainer and of_nemo or nil
  walk(launch, root, "", resolve, launch.renamed or {}, 0)
  local mixed = tree.at(root, "mixed_precision")
  if mixed and mixed.kind == "map" then
    local fp8 = tree.at(mixed, "fp8")
    local word = fp8 and fp8.kind == "scalar" and fp8.text ~= "null" and fp8.text ~= "" and "bf16_with_fp8_current_scaling_mixed"
                 or is_true(mixed, "bf16") and "bf16_mixed" or is_true(mixed, "fp16") and "fp16_mixed" or nil
    if word then words_said(launch, "mixed_precision", word, mixed.line) end
  end
  if trainer then
    local precision = tree.at(trainer, "precision") or tree.at(model, "precision")
    if precision and precision.kind == "scalar" then
      local word = is_true(model, "fp8") and "bf16_with_fp8_current_scaling_mixed" or precisions[precision.text]
      if word then words_said(launch, "mixed_precision", word, precision.line) end
    end
    local nodes, devices = tree.at(trainer, "num_nodes"), tree.at(trainer, "devices")
    local hosts, per_node = count_of(nodes), count_of(devices)
    if hosts and per_node then
      launch.gpus = gpus_of(hosts, per_node, { key = "trainer.devices", file = file, line = devices.line })
    end
  end
  return launch
end

-- ---------------------------------------------------------------------------------------------------------------------- Primus

-- The first of its modules that has overrides, or nil: none has.
local function module_of(modules)
  for _, entry in ipairs(modules.entries) do
    if tree.at(entry.value, "overrides") then return entry.value end
  end
end

local function primus(root, file, duplicates, options)
  local module = module_of(tree.at(root, "modules"))
  local framework = tree.at(module, "framework")
  if framework and framework.kind == "scalar" and framework.text ~= "megatron" then
    failure.usage("%s:%d: Primus with framework %s: only its Megatron is read", file, framework.line, framework.text)
  end
  local launch = new("primus", file)
  local config, model = tree.at(module, "config"), tree.at(module, "model")
  local named = config and config.kind == "scalar" and model and model.kind == "scalar" and config.text .. " " .. model.text
  local recipe = frameworks.find("primus").recipes[named or ""]
  if recipe then launch.sets = lists.with(recipe) else launch.presets = "the presets of Primus, which are not in this file" end
  tell_duplicates(launch, duplicates, "warning", "the last one holds")
  local overrides = tree.at(module, "overrides")
  launch.line = overrides.line
  local resolve = interpolation.new { environment = true, variables = options.variables, lookup = function() end }
  for _, entry in ipairs(overrides.kind == "map" and overrides.entries or {}) do
    local key = known_of("primus")[entry.name]
    if entry.value.kind ~= "map" or is_single(key) then
      local setting = add(launch, entry.name, entry.name, entry.line, entry.value, overrides, resolve, true)
      local null = setting.null or #setting.values == 1 and setting.values[1].text == "null"
      if null and not is_needed("primus", key) then
        table.remove(launch.settings)
        if recipe then launch.sets[setting.key] = nil end
      end
    end
  end
  return launch
end

-- ------------------------------------------------------------------------------------------------------------------------ the kinds

-- What a model of Megatron-Bridge's or NeMo's has one of, so that a file in which another is misspelled is known.
local degrees = { "tensor_model_parallel_size", "pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size",
                  "context_parallel_size", "expert_model_parallel_size" }

local function has_degree(model)
  for _, name in ipairs(degrees) do
    if tree.at(model, name) then return true end
  end
  return tree.at(model, "num_layers") ~= nil and tree.at(model, "num_attention_heads") ~= nil
end

local function is_map(node) return node ~= nil and node.kind == "map" end

-- yaml.read(text, file, options) → launches.
function yaml.read(text, file, options)
  if #text > MOST_BYTES then failure.usage("%s: larger than 1 MiB: no launch configuration is", file) end
  local root, duplicates = tree.read(text, file)
  if not is_map(root) then failure.usage("%s: holds no map: expected a launch configuration", file) end
  local model, system = tree.at(root, "model"), tree.at(root, "system")
  if is_map(tree.at(root, "MODEL_ARGS")) then return { model_args(root, file, duplicates, options) } end
  if is_map(tree.at(root, "modules")) and module_of(tree.at(root, "modules")) then return { primus(root, file, duplicates, options) } end
  if is_map(tree.at(root, "experiment")) then return { flagscale_top(root, file, duplicates, options) } end
  if is_map(system) and is_map(model) then
    local launch = flagscale_body(root, root, file, file, options)
    tell_duplicates(launch, duplicates, "error", "OmegaConf refuses a key that stands twice")
    return { launch }
  end
  if is_map(model) and has_degree(model) then return { bridge(root, file, duplicates, options) } end
  return require("pipeplan.input.launch.others").yaml(root, file)
end

return yaml
