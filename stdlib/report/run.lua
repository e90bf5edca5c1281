-- SPDX-License-Identifier: Apache-2.0
-- run.lua: the middle of the page: the run, its stages, memory, time, traffic, copies of the parameters, the all-to-all kernel, and where
-- the schedule can be run. Each function returns a paragraph, a list of them, or nil where there is nothing to say.

local engine = require "engine"
local format = require "pipeplan.base.format"
local frameworks = require "pipeplan.catalog.frameworks"
local lists = require "pipeplan.base.lists"

local run = {}

-- Consecutive numbers as ranges: { 0, 1, 2, 5 } → "0–2, 5".
local function ranges(numbers)
  local parts, i = {}, 1
  while i <= #numbers do
    local j = i
    while numbers[j + 1] == numbers[j] + 1 do j = j + 1 end
    parts[#parts + 1] = i == j and tostring(numbers[i]) or numbers[i] .. "–" .. numbers[j]
    i = j + 1
  end
  return table.concat(parts, ", ")
end

-- Runs of equal values: { 4, 4, 3 } → { { value = 4, first = 1, last = 2 }, { value = 3, first = 3, last = 3 } }.
local function runs(list)
  local result = {}
  for i, value in ipairs(list) do
    local last = result[#result]
    if last and last.value == value then last.last = i
    else result[#result + 1] = { value = value, first = i, last = i } end
  end
  return result
end

-- ": each 160 GB/s there, infiniband 400 Gb/s": speeds of one GPU, inside its scale-up domain and out of it.
local function links(cluster)
  local parts = {}
  if cluster.scale_up_bytes_per_second then
    parts[1] = format.rate(cluster.scale_up_bytes_per_second)
      .. (cluster.scale_up_gpus == cluster.gpus_per_node and " there" or " among " .. format.integer(cluster.scale_up_gpus))
  end
  if cluster.network_bytes_per_second then
    parts[#parts + 1] = (cluster.fabric or "network") .. " " .. format.rate(cluster.network_bytes_per_second)
  end
  return #parts > 0 and ": each " .. table.concat(parts, ", ") or ""
end

function run.described(plan)
  local model, cluster, training = plan.model, plan.cluster, plan.training
  local lines = {
    string.format("%s: %s, %s, %s parameters%s%s", model.name, model.architecture == "moe" and "MoE" or "dense",
                  format.plural(model.layers, "layer"), format.count(model.total_parameters),
                  model.architecture == "moe" and ", " .. format.count(model.active_parameters) .. " active" or "",
                  model.tower_parameters and string.format("; tower %s, %s", format.count(model.tower_parameters), training.tower) or ""),
    string.format("%s × %s, %d a node%s", format.integer(cluster.gpus), cluster.accelerator, cluster.gpus_per_node, links(cluster)),
  }
  local idle = plan.gpus_used and cluster.gpus - plan.gpus_used or 0
  if idle > 0 then
    lines[#lines + 1] = string.format("%s of the GPUs stay idle: this ranks before every layout of all of them", format.integer(idle))
  end
  local recipe = string.format("%s tokens; sequences of %s; %s", format.count(training.tokens), format.integer(training.sequence_length),
                               training.precision)
  if #training.recompute > 0 then recipe = recipe .. "; recompute " .. table.concat(training.recompute, ", ") end
  if plan.sharding == "gradients" or plan.sharding == "parameters" then recipe = recipe .. "; " .. plan.sharding .. " sharded" end
  lines[#lines + 1] = recipe
  if plan.global_batch_size then
    lines[#lines + 1] = string.format("batch %s (%s tokens) = M %s × DP %s × microbatch %d; M/P %s",
      format.integer(plan.global_batch_size), format.count(plan.tokens_per_step), format.integer(plan.microbatches),
      format.integer(plan.parallelism.data), plan.micro_batch_size, format.digits(plan.microbatches_per_rank))
  end
  return lines
end

-- What the small batches of a ramp cost; nil where that rounds to nothing.
function run.ramp_cost(plan)
  local extra, hours = 0, 0
  for _, segment in ipairs(plan.training.batch_ramp) do
    extra, hours = extra + (segment.extra_gpu_hours or 0), hours + (segment.gpu_hours or 0)
  end
  if hours <= 0 or math.abs(extra) < 0.5 then return nil end
  return string.format("the small batches cost %s GPU-hours (%s of the run): so many fewer do the same tokens at %s", format.count(extra),
                       format.percent(extra / hours), format.integer(plan.global_batch_size))
end

function run.ramp(plan)
  local ramp = plan.training.batch_ramp
  if not ramp then return nil end
  local parts = {}
  for _, segment in ipairs(ramp) do
    local words = { segment.microbatches and "M " .. segment.microbatches or nil }
    if segment.bubble_fraction then words[#words + 1] = "bubble " .. format.percent(segment.bubble_fraction) end
    parts[#parts + 1] = string.format("from %s: %s%s", format.count(segment.first_token), format.integer(segment.global_batch_size),
                                      words[1] and " (" .. table.concat(words, ", ") .. ")" or "")
  end
  local lines = { "legality at the smallest batch, totals over the whole ramp: " .. table.concat(parts, ", ") }
  local cost = run.ramp_cost(plan)
  if cost then table.insert(lines, 1, cost) end
  return lines
end

-- "3, 14 times 4, 2".
local function layers(list)
  local parts = {}
  for _, same in ipairs(runs(list)) do
    local n = same.last - same.first + 1
    parts[#parts + 1] = n == 1 and tostring(same.value) or n .. " times " .. same.value
  end
  return table.concat(parts, ", ")
end

-- The even split beside the planned one: "even split 4 times 8: 2.98 s a step, 5.5 % slower".
function run.even_split(plan)
  local even = plan.even_split
  if not even then return nil end
  local change = math.abs(even.slower_fraction) < 0.0005 and "as fast"
    or format.percent(math.abs(even.slower_fraction)) .. (even.slower_fraction > 0 and " slower" or " faster")
  return string.format("even split (%s): %s a step, %s%s", layers(even.layers_per_stage), format.seconds(even.step_seconds), change,
                       even.fit == "does_not_fit" and "; does not fit" or "")
end

function run.stages(plan)
  if not plan.layers_per_stage then return nil end
  local line = "layers a stage, first to last: " .. layers(plan.layers_per_stage)
  if plan.placement and plan.schedule ~= "none" then
    local both = true
    for _, ranks in ipairs(plan.placement) do both = both and #ranks == 2 end
    if both then
      line = line .. "; rank r holds slices r and " .. (#plan.placement - 1) .. " − r, embedding and head meet on rank 0"
    elseif engine.schedule.traits(plan.schedule).placement == "v" then
      line = line .. "; placed as a V, embedding and head meet on rank 0"
    end
  end
  local lines = { line }
  lines[#lines + 1] = run.even_split(plan)
  for _, flag in ipairs(plan.layout_flags or {}) do
    local names = #flag > 300 and flag:match "^(%S+) %S*,"   -- the names of all layers
    lines[#lines + 1] = names and names .. ": as pipeplan plan --format " .. plan.framework .. " writes it" or flag
  end
  if plan.framework_flags then lines[#lines + 1] = "also " .. table.concat(plan.framework_flags, ", ") end
  if plan.activation_limit_chunks then
    lines[#lines + 1] = string.format("planned for at most %d microbatches' activations on a rank (P is %d)", plan.activation_limit_chunks,
                                      plan.parallelism.pipeline)
  end
  return lines
end

-- --------------------------------------------------------------------------------------------------------------- memory and time

local max_rank_rows = 5

-- Ranks that look alike in the table are one row; of many rows the first, the last, the fullest and the emptiest stay.
local function memory_rows(ranks)
  local groups = {}
  for _, rank in ipairs(ranks) do
    local cells = { format.gib(rank.parameters_bytes), format.gib(rank.gradients_bytes), format.gib(rank.optimizer_bytes),
                    format.gib(rank.activations_bytes), format.gib(rank.buffers_bytes), format.gib(rank.total_bytes) }
    local key = table.concat(cells, " ")
    local last = groups[#groups]
    if last and last.key == key then last.ranks[#last.ranks + 1] = rank.rank
    else groups[#groups + 1] = { key = key, cells = cells, ranks = { rank.rank }, total = rank.total_bytes } end
  end
  local kept = {}
  if #groups > max_rank_rows then
    local full, empty = 1, 1
    for i, group in ipairs(groups) do
      if group.total > groups[full].total then full = i end
      if group.total < groups[empty].total then empty = i end
    end
    kept = { [1] = true, [2] = true, [#groups] = true, [full] = true, [empty] = true }
  end
  local rows, others = {}, 0
  for i, group in ipairs(groups) do
    if #groups <= max_rank_rows or kept[i] then
      rows[#rows + 1] = { (#group.ranks > 1 and "ranks " or "rank ") .. ranges(group.ranks), table.unpack(group.cells) }
    else
      others = others + #group.ranks
    end
  end
  return rows, others
end

function run.memory(plan)
  if not plan.memory then return nil end
  local rows, others = memory_rows(plan.memory.ranks)
  local title = others > 0 and string.format("GiB, %d more", others) or "GiB"
  return {
    label = "memory", group = "sizes", weight = 17, keep = #rows, rows = rows,
    columns = { { title, true }, { "weights" }, { "grads" }, { "optimizer" }, { "activations" }, { "buffers" }, { "total" } },
  }
end

function run.stage_time(plan)
  if not plan.stages or #plan.stages == 0 then return nil end
  local stage = lists.largest(plan.stages, function(one) return one.forward_seconds + one.full_seconds end)
  local parts = { "F " .. format.ms(stage.forward_seconds), "I " .. format.ms(stage.input_seconds),
                  "W " .. format.ms(stage.weight_seconds) }
  if stage.pair_seconds then parts[#parts + 1] = "F&B " .. format.ms(stage.pair_seconds) end
  local ahead, back = format.ms(stage.alltoall_forward_seconds), format.ms(stage.alltoall_backward_seconds)
  if stage.alltoall_forward_seconds + stage.alltoall_backward_seconds > 0 then
    parts[#parts + 1] = ahead == back and "all-to-all " .. ahead .. " each way" or "all-to-all " .. ahead .. " of F, " .. back .. " of I"
  end
  local mean = 0
  for _, each in ipairs(plan.stages) do mean = mean + (each.forward_seconds + each.full_seconds) / #plan.stages end
  return string.format("slowest is stage %d, %s × the mean; ms a microbatch: %s", stage.stage,
                       format.digits((stage.forward_seconds + stage.full_seconds) / mean), table.concat(parts, ", "))
end

-- Where launches take the host longer than the card takes for them: from two percent of a stage, or of a profile's step, on.
function run.launches(plan)
  local waited_for = plan.profile and plan.profile.host_wait_seconds
  if waited_for then
    if waited_for < 0.02 * plan.step_seconds then return nil end
    return string.format("hosts pace the cards: the one that waits most waits %s of a step for its host; experts in one grouped "
      .. "product, CUDA graphs, larger microbatches help, by as much at most", format.percent(waited_for / plan.step_seconds))
  end
  if not plan.stages or #plan.stages == 0 then return nil end
  local stage = lists.largest(plan.stages, function(one) return one.host_forward_seconds + one.host_backward_seconds end)
  local waited = stage.host_forward_seconds + stage.host_backward_seconds
  local share = waited / (stage.forward_seconds + stage.full_seconds)
  if share < 0.02 then return nil end
  return string.format("hosts pace the cards: %s of stage %d waits for launches; CUDA graphs, larger microbatches, less TP help",
                       format.percent(share), stage.stage)
end

function run.step(plan)
  local parts = { "step " .. format.seconds(plan.step_seconds) }
  if plan.step then
    local terms = {}
    local function add(name, value)
      if value and value >= 0.0005 * plan.step_seconds then
        terms[#terms + 1] = name .. " " .. format.digits(value, value < 1 and 2 or 3)
      end
    end
    add("pipeline", plan.step.pipeline_seconds)
    add("gradients", plan.step.gradient_sync_seconds)
    add("parameters", plan.step.parameter_sync_seconds)
    add("mirror ranks", plan.step.mirror_seconds)
    add("replicas", plan.step.replicas_seconds)
    add("shards", plan.step.sharding_seconds)
    add("optimizer", plan.step.optimizer_seconds)
    add("other", plan.step.overhead_seconds)
    if #terms > 1 then parts[1] = parts[1] .. " = " .. table.concat(terms, " + ") end
  end
  if plan.ideal_step_seconds then
    parts[#parts + 1] = string.format("ideal %s, utilisation %s", format.seconds(plan.ideal_step_seconds),
                                      format.percent(plan.predicted_utilisation_fraction))
  end
  return table.concat(parts, "; ")
end

-- What a profile says of itself.
function run.profile(plan)
  local profile = plan.profile
  if not profile then return nil end
  local parts = {}
  for i, each in ipairs(profile.calibration) do
    parts[i] = string.format("%s at M %d %s, measured %s (%+.1f %%)", format.schedule(each.schedule), each.microbatches,
                             format.seconds(each.predicted_seconds), format.seconds(each.measured_seconds), each.error_fraction * 100)
  end
  return string.format("stages, on %s%s", profile.source or profile.file,
                       #parts > 0 and "; its own runs: " .. table.concat(parts, ", ") or "")
end

-- What lower clocks take back.
function run.power(plan)
  local power = plan.power
  if not power then return nil end
  local gain = string.format("against %s %s at the clocks of cool cards, %s as they heat up", format.schedule(power.baseline),
                             format.percent(power.cool_gain_fraction), format.percent(power.gain_fraction))
  if not power.taken_back_fraction or power.taken_back_fraction <= 0 then return gain end
  return string.format("%s: the power cap takes back %s of the gain", gain, format.percent(math.min(1, power.taken_back_fraction)))
end

local traffic_names = { { "pipeline", "pipeline" }, { "tensor", "TP" }, { "context", "CP" }, { "expert", "EP" }, { "data", "DP" } }

function run.traffic(plan)
  if not plan.communication then return nil end
  local parts = {}
  for _, name in ipairs(traffic_names) do
    local traffic = plan.communication[name[1]]
    if traffic and traffic.seconds > 0 then
      parts[#parts + 1] = name[2] .. " " .. format.seconds(traffic.seconds)
        .. (traffic.exposed_seconds and " (+" .. format.seconds(traffic.exposed_seconds) .. ")" or "")
    end
  end
  return #parts > 0 and "communication a step (and what it adds): " .. table.concat(parts, ", ") or nil
end

-- What nodes and storage hold; nothing where nothing is offloaded and the storage's speed is not given.
function run.host(plan)
  local host, parts = plan.host, {}
  if not host then return nil end
  if host.optimizer_bytes > 0 then
    parts[1] = "offloaded optimizer " .. format.bytes(host.optimizer_bytes) .. " of a node's host memory"
      .. (host.memory_bytes and " of " .. format.bytes(host.memory_bytes) or "")
  end
  if host.checkpoint_seconds then
    parts[#parts + 1] = string.format("a checkpoint is %s, written in %s", format.bytes(host.checkpoint_bytes),
                                      format.seconds(host.checkpoint_seconds))
  end
  return #parts > 0 and table.concat(parts, "; ") or nil
end

function run.copies(plan)
  local replication = plan.replication
  if not replication then return nil end
  local line = string.format("%d %s of the parameters at equal devices; the fullest GPU holds %s of them, one copy spread "
                             .. "evenly is %s (density %s)", replication.copies, replication.copies == 1 and "copy" or "copies",
                             format.count(replication.resident_parameters_per_gpu), format.count(replication.unique_parameters_per_gpu),
                             format.percent(replication.density_fraction))
  if replication.copies > 1 then line = line .. "; the second costs " .. format.bytes(replication.extra_bytes) .. " on the fullest rank" end
  if plan.schedule == "dualpipev" then line = line .. "; \"2×\" in other tables counts at equal stages, not at equal devices" end
  return line
end

-- Frameworks that run the schedule; of few, and of the one that the spec names, how a user asks for it there and since which version.
function run.available(plan)
  local names = plan.available_in
  if not names or plan.schedule == "none" then return nil end   -- without a pipeline there is no schedule to run
  if #names == 0 then return "no framework that pipeplan knows" end
  local parts = {}
  for i, name in ipairs(names) do
    local entry = (#names <= 4 or name == plan.framework) and frameworks.find(name)
    local how = entry and entry.schedules[plan.schedule] or {}
    local details = { how.flag and how.flag:gsub("{limit}", tostring(plan.activation_limit_chunks or "P … 2P")) or nil }
    details[#details + 1] = how.csv and "from pipeplan plan --format csv" or how.state
    details[#details + 1] = how.since
    parts[i] = name .. (#details > 0 and " (" .. table.concat(details, "; ") .. ")" or "")
  end
  return table.concat(parts, ", ")
end

function run.kernel(plan)
  local kernel = plan.alltoall_kernel
  if not kernel then return nil end
  local lines = { kernel.name and kernel.name .. ": " .. kernel.why or "none: " .. kernel.why }
  if #kernel.needs > 0 then lines[2] = "needs " .. table.concat(kernel.needs, "; ") end
  return lines
end

return run
