-- SPDX-License-Identifier: Apache-2.0
-- bridge.lua: a command line of Megatron-Bridge's runner in a shell script → its launch: --recipe, and overrides of it as Hydra has them,
-- section.key=value, with + before one that is added, "…" around a text, […] for a list and {…} for an object.

local failure = require "pipeplan.base.failure"
local frameworks = require "pipeplan.catalog.frameworks"
local launcher = require "pipeplan.input.launch.launcher"
local lists = require "pipeplan.base.lists"
local script = require "pipeplan.input.launch.shell_script"
local text_of = require "pipeplan.base.text"

local bridge = {}

local source = "https://github.com/NVIDIA-NeMo/Megatron-Bridge/blob/v0.6.2/scripts/training/run_recipe.py"

-- Short options of the runner and the overrides that they are (scripts/training/run_recipe.py: COMMON_OVERRIDE_FIELDS).
local options = {
  max_steps = "train.train_iters", ms = "train.train_iters", global_batch_size = "train.global_batch_size", gb = "train.global_batch_size",
  micro_batch_size = "train.micro_batch_size", mb = "train.micro_batch_size", seq_length = "dataset.seq_length", sl = "dataset.seq_length",
  tensor_model_parallel_size = "model.tensor_model_parallel_size", tp = "model.tensor_model_parallel_size",
  pipeline_model_parallel_size = "model.pipeline_model_parallel_size", pp = "model.pipeline_model_parallel_size",
  context_parallel_size = "model.context_parallel_size", cp = "model.context_parallel_size",
  virtual_pipeline_model_parallel_size = "model.virtual_pipeline_model_parallel_size", vp = "model.virtual_pipeline_model_parallel_size",
  expert_model_parallel_size = "model.expert_model_parallel_size", ep = "model.expert_model_parallel_size",
  expert_tensor_parallel_size = "model.expert_tensor_parallel_size", etp = "model.expert_tensor_parallel_size",
}

-- Its other options (run_recipe.py: _build_parser).
local others = { model = true, recipe = true, mode = true, ["step-func"] = true, step_func = true, dataset = true, lr = true,
                 min_lr = true, warmup_iters = true, pretrained_checkpoint = true, save_dir = true, load_dir = true, save_interval = true,
                 ["dry-run"] = true, dry_run = true, deterministic = true, ["dump-env"] = true, dump_env = true, help = true }

-- Where there is no comm_overlap, its switch is the model's own.
local same = { ["model.overlap_moe_expert_parallel_comm"] = "comm_overlap.overlap_moe_expert_parallel_comm" }

local sections = { model = true, train = true, ddp = true, optimizer = true, mixed_precision = true, comm_overlap = true, dataset = true,
                   checkpoint = true, scheduler = true, tokenizer = true, validation = true, logger = true, dist = true, rng = true }

-- "+model.a.b=c" → model.a.b, c; nil: no override.
local function override_of(text)
  local key, value = text:match "^%+*([%a_][%w_.]*)=(.*)$"
  if key and sections[key:match "^[%w_]+"] then return key, value end
end

-- Does a command start the runner, or a program that takes one of its recipes, or overrides of one?
local function starts(words)
  local recipes, named, overrides = frameworks.find("megatron-bridge").recipes, false, false
  for i, word in ipairs(words) do
    if text_of.base_name(word.text) == "run_recipe.py" then return true end
    local recipe = word.text:match "^%-%-recipe=(.+)$" or word.text == "--recipe" and words[i + 1] and words[i + 1].text
    if recipe and recipes[recipe] then return true end
    named, overrides = named or recipe, overrides or override_of(word.text) ~= nil
  end
  return named and overrides
end

local known

-- A key that is nearly one of the table's, which has not all fields of Megatron-Bridge's.
local function tell_slip(launch, word)
  local key = word.text:match "^([%a_][%w_]*%.[%w_.]+)="
  if not key or known[key] or same[key] then return end
  local near
  for name in pairs(known) do
    if failure.is_slip(key, name) and (not near or name < near) then near = name end
  end
  if near then
    launch.notes[#launch.notes + 1] = { id = "unknown_key", severity = "warning", line = word.line, key = key, nearest = near,
      source = source, file = launch.file,
      message = "Megatron-Bridge: " .. key .. " is nearly " .. near .. ", and none that pipeplan knows" }
  end
end

-- Adds what an override says; of an object each of its fields too.
local function add(launch, key, value, word)
  local text = value:match '^"(.*)"$' or value:match "^'(.*)'$" or value
  local setting = { key = same[key] or key, file = launch.file, line = word.line, rests = word.rests, values = {} }
  local entry = known[setting.key]
  setting.resolved = entry ~= nil and entry.type == "list"
  local null = (text == "null" or text == "None") and not (entry and entry.needed)
  if null and key ~= "model.q_lora_rank" then
    launch.sets[setting.key] = nil
    for i = #launch.settings, 1, -1 do
      if launch.settings[i].key == setting.key then table.remove(launch.settings, i) end
    end
    return
  end
  local flag = entry and frameworks.is_flag(entry)
  if flag then setting.off = text:lower() == "false"
  else setting.values[1] = lists.with(word, { text = null and "0" or text, open = false }) end
  launch.settings[#launch.settings + 1] = setting
  launch.spelled[key] = true
  for _, name in ipairs(word.unknown or {}) do
    launch.unresolved[#launch.unresolved + 1] = { key = name, file = launch.file, line = word.line }
  end
  local inner = text:match "^{(.*)}$"
  for name, held in (inner or ""):gmatch "([%w_]+):([%w_]+)" do
    if known[key .. "." .. name] then add(launch, key .. "." .. name, held, word) end
  end
end

-- An option that the runner does not know: it ends there, for it takes no beginning of one either (run_recipe.py: _collect_overrides).
local function tell_stranger(launch, word, name)
  local names = {}
  for _, set in ipairs { options, others } do
    for each in pairs(set) do names[#names + 1] = each end
  end
  table.sort(names)
  local near = failure.nearest(name, names)
  launch.notes[#launch.notes + 1] = { id = "unknown_key", severity = "error", line = word.line, key = "--" .. name,
    nearest = near and "--" .. near or nil, source = source, file = launch.file,
    message = "Megatron-Bridge's run_recipe.py does not know --" .. name .. " and does not start with it" }
end

-- The runner gives the model the data set's sequence, whatever the model's own says (recipe_runner.py: sync_model_dataset_sequence_length).
local function take_sequence(launch)
  local of_model, of_data
  for i = #launch.settings, 1, -1 do
    local setting = launch.settings[i]
    if setting.key == "dataset.seq_length" then of_data = of_data or setting
    elseif setting.key == "model.seq_length" then of_model = of_model or table.remove(launch.settings, i) end
  end
  local said, holds = of_model and of_model.values[1], of_data and of_data.values[1]
  local preset, where = launch.sets["model.seq_length"], source:gsub("run_recipe", "recipe_runner")
  if said and said.text ~= (holds and holds.text or tostring(preset)) then
    launch.notes[#launch.notes + 1] = { id = "ignored_key", severity = "warning", line = of_model.line, key = "model.seq_length",
      nearest = "dataset.seq_length=" .. said.text, source = where .. ": sync_model_dataset_sequence_length",
      message = string.format("Megatron-Bridge's runner does not read model.seq_length: the model has the data set's sequence%s",
                              holds and ", " .. holds.text or preset and ", in this recipe " .. preset or "") }
  end
  if of_data then launch.settings[#launch.settings + 1] = lists.with(of_data, { key = "model.seq_length" }) end
end

local function settings_of(words, launch)
  local recipe
  local runner = words[1] and text_of.base_name(words[1].text) == "run_recipe.py"
  for i, word in ipairs(words) do
    local key, value = override_of(word.text)
    local long = word.text:match "^%-%-([%a][%w_-]*)"
    local option, inline = word.text:match "^%-%-?([%a_]+)=?(.*)$"
    local following = inline and inline ~= "" and lists.with(word, { text = inline }) or words[i + 1]
    tell_slip(launch, word)
    if key then add(launch, key, value, word)
    elseif option == "recipe" or option == "model" then recipe = following and not following.unknown and following.text or recipe
    elseif option and options[option] and following then add(launch, options[option], following.text, following)
    elseif runner and long and not others[long] and not options[long] and not word.unknown then tell_stranger(launch, word, long)
    elseif word.open then launch.open = launch.open or word end
  end
  if runner then take_sequence(launch) end
  return recipe
end

local function launch_of(words, file, counts)
  local launch = { framework = "megatron-bridge", file = file, settings = {}, spelled = {}, unresolved = {}, notes = {}, sets = {},
                   program = "run_recipe.py", line = words[1] and words[1].line }
  local mine, from = lists.with(counts), #words
  for i, word in ipairs(words) do
    mine.launcher = mine.launcher or launcher.kinds[text_of.base_name(word.text)]
    if word.text:find "%.py$" then from = math.min(from, i) end
  end
  launcher.count(mine, words, 1, from)
  launch.gpus = launcher.gpus(mine, launch)
  local recipes = frameworks.find("megatron-bridge").recipes
  local behind = table.move(words, from, #words, 1, {})
  for i, word in ipairs(behind) do
    local name = word.text:match "^%-%-recipe=(.+)$" or word.text == "--recipe" and behind[i + 1] and behind[i + 1].text
    if name and recipes[name] then launch.sets = lists.with(recipes[name]) end
  end
  local recipe = settings_of(behind, launch)
  if not recipes[recipe or ""] then
    launch.partial = (recipe and "the recipe " .. recipe or "a recipe") .. " says it, which is a program"
  end
  return launch
end

-- bridge.read(text, file, variables) → launches, none where no command starts the runner.
function bridge.read(text, file, variables)
  if not text:find("--recipe", 1, true) and not text:find("run_recipe.py", 1, true) then return {} end
  if not known then
    known = {}
    for _, key in ipairs(frameworks.find("megatron-bridge").keys) do known[key.key] = key end
  end
  local counts, list = launcher.of_slurm(text), {}
  script.run(text, file, variables, function(words, _, outer)
    if outer or #list >= 64 or not starts(words) then return end
    list[#list + 1] = launch_of(words, file, counts)
  end)
  return list
end

return bridge
