-- page.lua: what the one page says about a plan, before it is laid out: sections in reading order, most important first, rollback last.
-- text.lua fits them to 66 lines of 80 columns, markdown.lua writes them all.
--
-- A section: { label, group, lines = { paragraph, … }, columns = { { title, left }, … }, rows = { { cell, … }, … }, keep, weight }
--   It has lines or a table. With `inline` its lines are parts of one paragraph. `keep` is how many lines or rows stay when the page is
--   too long; sections of smaller `weight` are cut first. Sections of one group stand together. A column's `short` makes its cells shorter
--   where a row would be wider than the page.

local format = require "pipeplan.report.format"
local frameworks = require "pipeplan.catalog.frameworks"
local vocabulary = require "pipeplan.vocabulary"

local page = {}

local function plural(n, word)
  return format.integer(n) .. " " .. word .. (n == 1 and "" or "s")
end

-- "TP 8 · CP 2 · EP 64 · DP 128": what is 1 and could not be otherwise is left out.
local function spread(parallelism, separator)
  local parts = {}
  local function add(name, degree, always)
    if degree and (always or degree > 1) then parts[#parts + 1] = name .. " " .. format.integer(degree) end
  end
  add("TP", parallelism.tensor, true)
  add("CP", parallelism.context)
  add("EP", parallelism.expert)
  add("ETP", parallelism.expert_tensor and parallelism.expert_tensor ~= parallelism.tensor and parallelism.expert_tensor or 1)
  add("DP", parallelism.data, true)
  return table.concat(parts, separator or " · ")
end

-- "P 16 · V 2 · M 120 · TP 1 · …"
function page.layout(parallelism, microbatches, separator)
  separator = separator or " · "
  local parts = {}
  if parallelism.pipeline > 1 then parts[#parts + 1] = "P " .. parallelism.pipeline end
  if parallelism.virtual > 1 then parts[#parts + 1] = "V " .. parallelism.virtual end
  if microbatches and parallelism.pipeline > 1 then parts[#parts + 1] = "M " .. format.integer(microbatches) end
  parts[#parts + 1] = spread(parallelism, separator)
  return table.concat(parts, separator)
end

-- "default/refusals.lua:12 (R15)"
local function origin(reason)
  local place = reason.file and (reason.file .. (reason.line and ":" .. reason.line or "")) or reason.layer
  if place and reason.source then return place .. ", " .. reason.source end
  return place or reason.source
end

local function reason_line(reason)
  local from = origin(reason)
  return reason.id .. ": " .. reason.message .. (from and " [" .. from .. "]" or "")
end

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
    local run = result[#result]
    if run and run.value == value then run.last = i
    else result[#result + 1] = { value = value, first = i, last = i } end
  end
  return result
end

-- ------------------------------------------------------------------------------------------------------------------ the verdict

local function fullest(ranks)
  local best = ranks[1]
  for _, rank in ipairs(ranks) do
    if rank.total_bytes > best.total_bytes then best = rank end
  end
  return best
end

local function fits_line(memory)
  local rank = fullest(memory.ranks)
  local spare = memory.device_bytes - memory.headroom_bytes - rank.total_bytes
  local verdict = memory.fit == "tight" and "yes, tightly" or memory.fit == "fits" and "yes" or "NO"
  return string.format("%s: %s of %s on rank %d, the fullest (activations %s); %s GiB %s the headroom of %s", verdict,
                       format.gib(rank.total_bytes), format.bytes(memory.device_bytes), rank.rank, format.gib(rank.activations_bytes),
                       format.gib(math.abs(spare)), spare >= 0 and "free beyond" or "inside", format.gib(memory.headroom_bytes))
end

local bubble_definitions = { mean_idle = "mean idle share of the ranks", max_idle = "idle share of the most idle rank",
                             span = "idle share between a rank's first and last action" }

local function bubble_line(bubble)
  local parts = { format.percent(bubble.fraction) .. " " .. bubble_definitions[bubble.definition] }
  if bubble.baseline_1f1b_fraction then parts[1] = parts[1] .. " (1F1B here: " .. format.percent(bubble.baseline_1f1b_fraction) .. ")" end
  parts[#parts + 1] = "most idle rank " .. format.percent(bubble.max_idle_fraction)
  if bubble.closed_form_fraction then
    local name = bubble.closed_form_exact and "closed form " or "closed form at equal stages "
    parts[#parts + 1] = name .. format.percent(bubble.closed_form_fraction)
  end
  return table.concat(parts, "; ")
end

local function hours(number)
  return format.count(math.floor(number + 0.5))
end

-- ": bubble −7,709, overlap 580 k": what of a saving is due to which; what rounds to nothing is left out.
local function by_cause(saving)
  local parts = {}
  for _, cause in ipairs { { "bubble ", saving.bubble }, { "overlap ", saving.overlap } } do
    if math.abs(cause[2]) >= 0.5 then parts[#parts + 1] = cause[1] .. (cause[2] < 0 and "−" or "") .. hours(math.abs(cause[2])) end
  end
  return #parts > 0 and ": " .. table.concat(parts, ", ") or ""
end

local function saved_lines(plan)
  local lines = {}
  for _, saving in ipairs(plan.gpu_hours_saved or {}) do
    local without, baseline = plan.gpu_hours + saving.total, format.schedule(saving.baseline)
    local share = format.percent(without > 0 and math.abs(saving.total) / without or 0)
    local line = string.format(saving.total >= 0 and "%s GPU-hours against %s (%s)%s" or "nothing: %s GPU-hours more than %s (%s)%s",
                               hours(math.abs(saving.total)), baseline, share, by_cause(saving))
    if saving.baseline_fits == false then line = line .. "; " .. baseline .. " does not fit" end
    lines[#lines + 1] = line
  end
  if #lines == 0 and plan.parallelism.pipeline > 1 then return { "nothing: the plan is the baseline, 1F1B" } end
  return lines
end

-- Faster schedules in two sentences: those that are clearly so, and ties.
local function dominated_lines(plan)
  local lines = {}
  for _, tie in ipairs { false, true } do
    local names, change = {}, nil
    for _, other in ipairs(plan.dominated_by or {}) do
      if other.tie == tie then
        names[#names + 1] = format.schedule(other.schedule) .. " by " .. format.percent(other.gain_fraction)
        change = change or other.change
      end
    end
    if #names > 0 then
      lines[#lines + 1] = "in simulation " .. table.concat(names, ", ")
        .. (tie and (#names > 1 and ": ties" or ": a tie") .. ", within what a model can tell" or "") .. (change and "; " .. change or "")
    end
  end
  return lines
end

local loosening = { disable = "disabled", change = "changed", set = "set" }

local function loosened_lines(plan)
  local lines = {}
  for _, entry in ipairs(plan.loosened) do
    local place = entry.file and entry.file .. (entry.line and ":" .. entry.line or "") or entry.layer
    lines[#lines + 1] = string.format("%s %s by %s: %s%s [%s]", entry.id, loosening[entry.kind] or entry.kind, entry.layer, entry.reason,
                                      entry.expires and ", until " .. entry.expires or "", place)
  end
  return lines
end

local function warning_lines(plan, severity)
  local lines = {}
  for _, warning in ipairs(plan.warnings) do
    if (warning.severity == "note") == (severity == "note") then lines[#lines + 1] = warning.id .. ": " .. warning.message end
  end
  return lines
end

local function wanted_line(plan)
  if not plan.schedule_wanted then return nil end
  local wanted = format.schedule(plan.schedule_wanted) .. (plan.decision and " (row " .. plan.decision .. ")" or "")
  if plan.schedule_wanted == plan.schedule or plan.schedule_wanted == plan.schedule_family then return wanted .. ", and planned" end
  return wanted .. ", replaced by " .. format.schedule(plan.schedule)
end

-- --------------------------------------------------------------------------------------------------------------- run and layout

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

local function run_lines(plan)
  local model, cluster, training = plan.model, plan.cluster, plan.training
  local lines = {
    string.format("%s: %s, %s, %s parameters%s", model.name, model.architecture == "moe" and "MoE" or "dense",
                  plural(model.layers, "layer"), format.count(model.total_parameters),
                  model.architecture == "moe" and ", " .. format.count(model.active_parameters) .. " active" or ""),
    string.format("%s × %s, %d a node%s", format.integer(cluster.gpus), cluster.accelerator, cluster.gpus_per_node, links(cluster)),
  }
  local recipe = string.format("%s tokens; sequences of %s; %s", format.count(training.tokens), format.integer(training.sequence_length),
                               training.precision)
  if #training.recompute > 0 then recipe = recipe .. "; recompute " .. table.concat(training.recompute, ", ") end
  lines[#lines + 1] = recipe
  if plan.global_batch_size then
    lines[#lines + 1] = string.format("batch %s (%s tokens) = M %s × DP %s × micro-batch %d; M/P %s",
      format.integer(plan.global_batch_size), format.count(plan.tokens_per_step), format.integer(plan.microbatches),
      format.integer(plan.parallelism.data), plan.micro_batch_size, format.digits(plan.microbatches_per_rank))
  end
  return lines
end

local function ramp_lines(plan)
  local ramp = plan.training.batch_ramp
  if not ramp then return nil end
  local parts = {}
  for _, segment in ipairs(ramp) do
    parts[#parts + 1] = string.format("from %s: %s%s", format.count(segment.first_token), format.integer(segment.global_batch_size),
                                      segment.microbatches and " (M " .. segment.microbatches .. ")" or "")
  end
  return { "legality at the smallest batch, totals over the whole ramp: " .. table.concat(parts, ", ") }
end

local function stage_lines(plan)
  if not plan.layers_per_stage then return nil end
  local parts = {}
  for _, run in ipairs(runs(plan.layers_per_stage)) do
    local n = run.last - run.first + 1
    parts[#parts + 1] = n == 1 and tostring(run.value) or n .. " times " .. run.value
  end
  local line = "layers a stage, first to last: " .. table.concat(parts, ", ")
  if plan.placement and #plan.placement > 0 then
    local both = true
    for _, ranks in ipairs(plan.placement) do both = both and #ranks == 2 end
    if both then
      line = line .. "; rank r holds slices r and " .. (#plan.placement - 1) .. " − r, embedding and head meet on rank 0"
    elseif plan.schedule == "zb_v" or plan.schedule == "dualpipev" then
      line = line .. "; placed as a V, embedding and head meet on rank 0"
    end
  end
  local lines = { line }
  if plan.megatron_layout then lines[2] = "--pipeline-model-parallel-layout '" .. plan.megatron_layout .. "'" end
  if plan.microbatch_group_size and plan.microbatch_group_size ~= plan.parallelism.pipeline then
    lines[#lines + 1] = "--microbatch-group-size-per-virtual-pipeline-stage " .. plan.microbatch_group_size
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

local function memory_section(plan)
  if not plan.memory then return nil end
  local rows, others = memory_rows(plan.memory.ranks)
  local title = others > 0 and string.format("GiB, %d more", others) or "GiB"
  return {
    label = "memory", group = "sizes", weight = 17, keep = #rows, rows = rows,
    columns = { { title, true }, { "weights" }, { "grads" }, { "optimizer" }, { "activations" }, { "buffers" }, { "total" } },
  }
end

local function slowest(stages)
  local best = stages[1]
  local function work(stage) return stage.forward_seconds + stage.full_seconds end
  for _, stage in ipairs(stages) do
    if work(stage) > work(best) then best = stage end
  end
  return best
end

local function stage_time_line(plan)
  if not plan.stages or #plan.stages == 0 then return nil end
  local stage = slowest(plan.stages)
  local parts = { "F " .. format.ms(stage.forward_seconds), "I " .. format.ms(stage.input_seconds),
                  "W " .. format.ms(stage.weight_seconds) }
  if stage.pair_seconds then parts[#parts + 1] = "F&B " .. format.ms(stage.pair_seconds) end
  local ahead, back = format.ms(stage.alltoall_forward_seconds), format.ms(stage.alltoall_backward_seconds)
  if stage.alltoall_forward_seconds + stage.alltoall_backward_seconds > 0 then
    parts[#parts + 1] = ahead == back and "all-to-all " .. ahead .. " each way" or "all-to-all " .. ahead .. " of F, " .. back .. " of I"
  end
  local mean = 0
  for _, each in ipairs(plan.stages) do mean = mean + (each.forward_seconds + each.full_seconds) / #plan.stages end
  return string.format("slowest is stage %d, %s × the mean; ms a micro-batch: %s", stage.stage,
                       format.digits((stage.forward_seconds + stage.full_seconds) / mean), table.concat(parts, ", "))
end

local function step_line(plan)
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

local function total_line(plan)
  local line = string.format("%s days, %s GPU-hours, MFU %s", format.digits(plan.training_days), hours(plan.gpu_hours),
                             format.percent(plan.mfu_fraction) .. " of the bf16 peak")
  if plan.cost then line = line .. ", " .. format.count(math.floor(plan.cost + 0.5)) .. " in GPU rent" end
  if plan.expected_error then
    line = line .. string.format(" (time ±%s, memory ±%s: %s)", format.percent(plan.expected_error.time_fraction),
                                 format.percent(plan.expected_error.memory_fraction), plan.expected_error.source)
  end
  return line
end

local traffic_names = { { "pipeline", "pipeline" }, { "tensor", "TP" }, { "context", "CP" }, { "expert", "EP" }, { "data", "DP" } }

local function traffic_line(plan)
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

local function replication_line(plan)
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

-- Frameworks that run the schedule; of few, how a user asks for it there.
local function available_line(plan)
  local names = plan.available_in
  if not names then return nil end
  if #names == 0 then return "no framework that pipeplan knows" end
  if #names > 4 then return table.concat(names, ", ") end
  local parts = {}
  for i, name in ipairs(names) do
    local entry = frameworks.find(name)
    local how = entry and entry.schedules[plan.schedule] or {}
    local details = { how.flag }
    details[#details + 1] = how.state or how.since
    parts[i] = name .. (#details > 0 and " (" .. table.concat(details, "; ") .. ")" or "")
  end
  return table.concat(parts, ", ")
end

local function kernel_lines(plan)
  local kernel = plan.alltoall_kernel
  if not kernel then return nil end
  local lines = { kernel.name and kernel.name .. ": " .. kernel.why or "none: " .. kernel.why }
  if #kernel.needs > 0 then lines[2] = "needs " .. table.concat(kernel.needs, "; ") end
  return lines
end

-- ------------------------------------------------------------------------------------------------------ alternatives and the rest

local layout_names = { { "pipeline", "P" }, { "tensor", "TP" }, { "context", "CP" }, { "expert", "EP" }, { "expert_tensor", "ETP" } }

-- What differs from the plan's layout: "P 8 TP 2", or "same". DP follows from the rest. Without a plan the whole layout.
local function other_layout(other, own)
  if not own then return page.layout(other, nil, " ") end
  local parts = {}
  for _, name in ipairs(layout_names) do
    local degree = other[name[1]]
    local said = name[1] == "pipeline" and degree == 1  -- "no pipeline" stands beside it
    if degree ~= own[name[1]] and not said then parts[#parts + 1] = name[2] .. " " .. degree end
  end
  return #parts > 0 and table.concat(parts, " ") or "same"
end

local function whole_gib(bytes)
  return bytes < 999.5 * 2 ^ 30 and format.gib(bytes) or format.integer(bytes / 2 ^ 30)
end

-- "no_framework, does_not_fit" where that is too long: "no_framework + 1".
local function first_of(list)
  local first, others = list:match("^([^,]+)(.*)$")
  local _, count = (others or ""):gsub(",", "")
  return count > 0 and first .. " + " .. count or list
end

local function alternatives_section(plan)
  if not plan.alternatives or #plan.alternatives == 0 then return nil end
  local rows, elsewhere = {}, false
  for _, other in ipairs(plan.alternatives) do
    local layout = other_layout(other.parallelism, plan.parallelism)
    elsewhere = elsewhere or layout ~= "same"
    local name = format.schedule(other.schedule)
    if other.parallelism.virtual > 1 then name = name:gsub(" 1F1B$", "") .. " V " .. other.parallelism.virtual end
    rows[#rows + 1] = {
      name, layout,
      other.step_seconds and format.seconds(other.step_seconds) or "–",
      other.bubble_fraction and format.percent(other.bubble_fraction) or "–", other.peak_bytes and whole_gib(other.peak_bytes) or "–",
      table.concat(other.why_not, ", "),
    }
  end
  local columns = { { "schedule", true }, { "layout", true }, { "step" }, { "bubble" }, { "GiB" }, { "why not", true, short = first_of } }
  if not elsewhere then  -- all at the plan's layout: leave the room to the reasons
    table.remove(columns, 2)
    for _, row in ipairs(rows) do table.remove(row, 2) end
  end
  return { label = "others", group = "others", weight = 8, keep = 3, rows = rows, columns = columns }
end

local function dropped_parts(plan)
  local parts = {}
  for _, entry in ipairs(plan.dropped) do
    local text = entry.rule .. " " .. format.integer(entry.count)
    if entry.nearest then
      local near = entry.nearest
      local field = vocabulary.by_name[near.field]
      text = text .. string.format(" (legal: %s %s%s)", near.field, near.beyond and "beyond " or "",
                                   format.quantity(near.value, field and field.unit))
    end
    parts[#parts + 1] = text
  end
  if parts[1] then parts[1] = "candidates that a rule held for: " .. parts[1] end
  return parts
end

-- "micro_batch_size 1 (least memory)"
local function assumption_parts(plan)
  local parts = {}
  for i, entry in ipairs(plan.assumptions) do
    local value = format.quantity(entry.value)
    parts[i] = string.format("%s%s (%s)", entry.field:match("[^.]+$"), value ~= "" and " " .. value or "", entry.why)
  end
  return parts
end

local function policy_line(plan)
  return string.format("%s; digest %s; judged at %s; pipeplan %s", table.concat(plan.policy.layers, " + "), plan.policy.digest:sub(1, 12),
                       plan.policy.date, plan.engine_version)
end

-- ----------------------------------------------------------------------------------------------------------------- the two pages

local function adder(sections)
  return function(label, group, lines, weight, keep, inline)
    if type(lines) == "string" then lines = { lines } end
    if not lines or #lines == 0 then return end
    sections[#sections + 1] = { label = label, group = group, lines = lines, weight = weight, keep = keep or #lines, inline = inline }
  end
end

local function planned(plan)
  local sections = {}
  local add = adder(sections)
  add("fits", "verdict", fits_line(plan.memory), 99)
  add("bubble", "verdict", bubble_line(plan.bubble), 99)
  add("saves", "verdict", saved_lines(plan), 20, 1)
  add("takes", "verdict", total_line(plan), 99)
  local wanted = { wanted_line(plan) }
  for _, reason in ipairs(plan.reasons) do wanted[#wanted + 1] = reason_line(reason) end
  add("wanted", "verdict", wanted, 21, 2)
  add("faster", "verdict", dominated_lines(plan), 19, 1)
  add("loosened", "verdict", loosened_lines(plan), 22, 2)
  add("warning", "verdict", warning_lines(plan, "warning"), 18, 2)

  add("run", "run", run_lines(plan), 99)
  add("ramp", "run", ramp_lines(plan), 15, 1)
  add("stages", "run", stage_lines(plan), 12, 1)

  sections[#sections + 1] = memory_section(plan)
  add("time", "sizes", { step_line(plan), stage_time_line(plan), traffic_line(plan) }, 7, 2)
  add("copies", "sizes", replication_line(plan), 11)
  add("kernel", "sizes", kernel_lines(plan), 10, 1)
  add("run in", "sizes", available_line(plan), 13)

  sections[#sections + 1] = alternatives_section(plan)
  add("dropped", "others", dropped_parts(plan), 3, 2, true)
  add("note", "others", warning_lines(plan, "note"), 5, 1)
  add("assumed", "others", assumption_parts(plan), 2, 2, true)
  add("policy", "others", policy_line(plan), 16)
  return sections
end

local function fit_words(recommend, plan)
  if not recommend.peak_bytes then return nil end
  return string.format("%s of %s a GPU%s", format.gib(recommend.peak_bytes), format.bytes(plan.cluster.device_bytes),
                       recommend.step_seconds and ", step " .. format.seconds(recommend.step_seconds) or "")
end

local function one_gpu_line(plan)
  local one = plan.one_gpu
  if not one or not one.bytes then return nil end
  local line = string.format("the whole model takes %s with optimizer state sharded over all GPUs (%s usable)", format.bytes(one.bytes),
                             format.bytes(one.usable_bytes))
  if one.sharded_bytes then
    line = line .. "; " .. format.bytes(one.sharded_bytes) .. " with weights and gradients sharded too (ZeRO-3)"
  end
  return line
end

local function not_planned(plan)
  local sections = {}
  local add = adder(sections)
  local lines = {}
  for _, reason in ipairs(plan.reasons) do lines[#lines + 1] = reason_line(reason) end
  add("because", "verdict", lines, 30, 4)
  local recommend = plan.recommend
  if recommend then
    add("instead", "verdict", { format.schedule(recommend.schedule) .. ": "
          .. page.layout(recommend.parallelism, recommend.microbatches), fit_words(recommend, plan), recommend.why }, 99)
  end
  add("loosened", "verdict", loosened_lines(plan), 22, 2)
  add("warning", "verdict", warning_lines(plan, "warning"), 18, 2)
  add("run", "run", run_lines(plan), 99)
  add("ramp", "run", ramp_lines(plan), 15, 1)
  add("one GPU", "sizes", one_gpu_line(plan), 14)
  sections[#sections + 1] = alternatives_section(plan)
  add("dropped", "others", dropped_parts(plan), 3, 2, true)
  add("note", "others", warning_lines(plan, "note"), 5, 1)
  add("assumed", "others", assumption_parts(plan), 2, 2, true)
  add("policy", "others", policy_line(plan), 16)
  return sections
end

-- Lines of --explain and --why, grouped: { { label, lines }, … }.
local function explanation(plan)
  local known = plan.explanation
  if not known then return nil end
  local sections = {}
  local add = adder(sections)
  local answers, fired, silent, figures = {}, {}, {}, {}
  for i, entry in ipairs(known.answers) do answers[i] = entry.question .. ": " .. entry.answer end
  for _, rule in ipairs(known.rules) do
    local list = rule.holds and fired or silent
    list[#list + 1] = rule.verb .. " " .. rule.id .. ": " .. rule.because
  end
  for i, entry in ipairs(known.figures) do figures[i] = entry.figure .. " = " .. entry.formula end
  add("why", "answers", answers)
  add("decided", "decided", known.decided)
  add("fired", "fired", fired)
  add("did not", "silent", silent)
  add("figures", "figures", figures)
  return sections
end

-- → { title, subject, sections, closing, explanation }: closing is the rollback paragraph, or nil; explanation more sections, or nil.
function page.of(plan)
  if plan.status == "planned" then
    return {
      title = format.schedule(plan.schedule) .. " · " .. page.layout(plan.parallelism, plan.microbatches),
      subject = plan.model.name, sections = planned(plan), closing = plan.rollback and plan.rollback.paragraph,
      explanation = explanation(plan),
    }
  end
  return {
    title = plan.status:upper() .. (plan.recommend and " · instead: " .. format.schedule(plan.recommend.schedule) or " · no plan"),
    subject = plan.model.name, sections = not_planned(plan), explanation = explanation(plan),
  }
end

return page
