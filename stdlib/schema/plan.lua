-- SPDX-License-Identifier: Apache-2.0
-- plan.lua: the JSON Schema of a plan (draft 2020-12), as a Lua table. It is the contract with everything that reads plans, and
-- base/json.lua fills in from it what a plan leaves out: every declared property is there, null where it does not apply.
-- Names carry units: _seconds, _bytes, _fraction.
-- luacheck: no max line length

local documents = require "pipeplan.base.documents"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"
local schedules = require("pipeplan.vocabulary").schedules

local function text(description) return { type = "string", description = description } end
local function number(description) return { type = "number", description = description } end
local function fraction(description) return { type = "number", description = description } end
local function bytes(description) return { type = "number", minimum = 0, description = description } end
local function seconds(description) return { type = "number", description = description } end
local function boolean(description) return { type = "boolean", description = description } end
local function whole(description, minimum) return { type = "integer", minimum = minimum or 1, description = description } end
local function one_of(values, description) return { type = "string", enum = values, description = description } end
local function list(items, description) return { type = "array", items = items, description = description } end
local function reference(name) return { ["$ref"] = "#/$defs/" .. name } end

-- A scalar that may be null.
local function optional(schema)
  if schema["$ref"] or schema.type == "object" or schema.type == "array" then
    return { anyOf = { schema, { type = "null" } }, description = schema.description }
  end
  schema.type = { schema.type, "null" }
  if schema.enum then
    local values = { table.unpack(schema.enum) }
    values[#values + 1] = json.null
    schema.enum = values
  end
  return schema
end

-- All properties are required: what does not apply is null, never missing.
local function object(properties, description)
  return { type = "object", properties = properties, required = lists.sorted_keys(properties), additionalProperties = false,
           description = description }
end

local fits = { "fits", "tight", "does_not_fit" }
local shardings = require("pipeplan.vocabulary").shardings

local assumption = object({
  field = text "spec field", value = { description = "what was assumed" }, why = text "why",
}, "one assumption")
local warning = object({
  id = text "rule or engine id", severity = one_of({ "warning", "note" }, "how much it matters"), message = text "what",
}, "one warning")

local definitions = {
  parallelism = object({
    data = whole "data parallel degree", tensor = whole "tensor parallel degree", expert = whole "expert parallel degree",
    expert_tensor = whole "tensor parallel degree of experts", context = whole "context parallel degree",
    pipeline = whole "P: pipeline depth", virtual = whole "V: chunks per rank of an interleaved schedule, otherwise 1",
  }, "how the model is spread over the GPUs"),

  reason = object({
    id = text "the rule's id", message = text "what it says about this plan",
    source = optional(text "where the rule comes from"), layer = optional(text "the policy layer that states it"),
    file = optional(text "its file"), line = optional(whole "its line"),
  }, "a rule that decided"),

  alternative = object({
    schedule = one_of(schedules, "none: without a pipeline"), parallelism = reference "parallelism",
    microbatches = optional(whole "M per pipeline and step"),
    fit = optional(one_of(fits, "does it fit the memory?")),
    step_seconds = optional(seconds "one training step"), bubble_fraction = optional(fraction "mean idle share"),
    peak_bytes = optional(bytes "memory of the fullest rank"),
    slower_fraction = optional(number "its step over the plan's, less one; negative: it is faster"),
    tie = optional(boolean "is that under 5 %, faster or slower?"),
    allowed = boolean "does it fit, and does no rule forbid it?",
    error_fraction = optional(fraction "how far off the comparison of its step with the plan's may be"),
    why_not = list(text "a rule's id, or a comparison with the plan", "why it is not the plan"),
  }, "another schedule on the same devices, at the plan's layout where that is legal, else at its own best"),

  rank = object({
    rank = whole("pipeline rank", 0), stages = list(whole("stage", 0), "slices of the model it holds, first to last"),
    parameters_bytes = bytes "weights, all copies", gradients_bytes = bytes "accumulated gradients, all copies",
    optimizer_bytes = bytes "master weights and moments, sharded", activations_bytes = bytes "peak of what is kept between F and W",
    transient_bytes = bytes "largest temporary of an action, and gradients before they are accumulated",
    overhead_bytes = bytes "context, workspaces, communicators: assumed", buffers_bytes = bytes "these two together",
    total_bytes = bytes "parameters, gradients, optimizer, activations and buffers", host_bytes = bytes "in host memory, for one GPU",
    tower_bytes = optional(bytes "of parameters, gradients and optimizer: what a tower of images takes"),
  }, "memory of one rank"),

  traffic = object({
    seconds = seconds "on the slowest rank, per step",
    exposed_seconds = optional(seconds "the part that no compute hides; null where it is not told apart"),
    runs_beside = text "what hides the rest of it",
  }, "one kind of communication"),

  stage = object({
    stage = whole("slice of the model, first to last", 0), rank = whole("pipeline rank that runs it", 0),
    layers = whole("decoder layers", 0),
    forward_seconds = seconds "F of one microbatch", input_seconds = seconds "I: backward for the input, recompute included",
    weight_seconds = seconds "W: backward for the weights", full_seconds = seconds "B: the whole backward in one action",
    pair_seconds = optional(seconds "F&B: a forward overlapped with a backward; null where the schedule has none"),
    alltoall_forward_seconds = seconds "all-to-all in F, before overlap", alltoall_backward_seconds = seconds "all-to-all in B, before overlap",
    host_forward_seconds = seconds "of F, what the card waits for its host's launches",
    host_backward_seconds = seconds "of B, what the card waits for its host's launches",
  }, "seconds of one stage"),

  price = object({
    compute_seconds = seconds "what no other term has: products, attention, element-wise kernels, the host", recompute_seconds = seconds "computed again",
    tensor_seconds = seconds "collectives of TP", context_seconds = seconds "CP's ring, what attention does not hide",
    expert_seconds = seconds "all-to-all that nothing hides", pipeline_seconds = seconds "hand-overs between stages, waited for",
    bubble_seconds = seconds "idle of the mean rank, without those", data_seconds = seconds "gradients and parameters on their way",
    optimizer_seconds = seconds "the update",
  }, "what a step is made of, by what a run can teach; the terms sum to it"),

  layout_to_measure = object({
    schedule = one_of(schedules, "none: without a pipeline"), parallelism = reference "parallelism",
    layers_per_stage = list(whole("decoder layers", 0), "by slice of the model, first to last"), microbatches = whole "M per pipeline and step",
    micro_batch_size = whole "sequences of a microbatch", recompute = list(text "a module", "what is computed again in the backward"),
    sharding = one_of(shardings, "what data parallelism shards"), gpus_used = whole "GPUs of the layout",
    step_seconds = seconds "predicted", slower_fraction = number "its step over the plan's, less one; negative: it is faster",
    error_fraction = fraction "how far off that may be: nine of ten pairs of measured runs; 0 for the plan", peak_bytes = bytes "of the fullest rank",
    fit = one_of(fits, "does it fit?"), price = reference "price", term = optional(text "the term of the price that differs most from the plan's"),
    teaches = text "what a run of it tells", options = text "the changes as options of the command line",
    changes = { type = "object", description = "path of a spec → value: laid over the spec, they plan this layout" },
  }, "a layout that is worth a run"),

  phases = object({
    warm_up_seconds = seconds "from the start until every rank has begun a backward, or an F&B pair where the schedule has them",
    steady_seconds = seconds "from there until the first rank has no forward left, or no pair; 0: there is no such phase",
    cool_down_seconds = seconds "the rest of the pipeline",
    actions = whole "what all ranks run in a step",
  }, "the phases of one step's pipeline, as simulated"),

  saving = object({
    baseline = one_of(schedules, "what it is compared with, at the same P, M, layout and cost model without overlap"),
    bubble = number "GPU-hours that the schedule alone saves", overlap = number "GPU-hours that hiding the all-to-all saves",
    total = number "their sum: baseline less plan",
    cost = optional(number "of that total, where the spec gives a price"),
    error_fraction = fraction "how far off the ratio of both steps may be: nine of ten pairs of measured runs", baseline_fits = optional(boolean "would the baseline fit the memory?"),
  }, "GPU-hours over the whole token budget"),
}

local properties = {
  status = one_of({ "planned", "refused", "rejected" }, "outcome"),
  reasons = list(reference "reason", "rules that decided: why not planned, or why not the wanted schedule"),
  recommend = optional(object({
    framework_flags = optional(list(text "what the framework has to be told beside the layout")),
    schedule = one_of(schedules, "none: without a pipeline"), parallelism = reference "parallelism",
    microbatches = optional(whole "M per pipeline and step"), micro_batch_size = optional(whole "sequences of a microbatch"),
    peak_bytes = optional(bytes "memory of the fullest rank"), fit = optional(one_of(fits, "does it fit?")),
    step_seconds = optional(seconds "one training step"), why = text "why this instead",
    recompute = text "what it recomputes: none, selective, modules or full", gpus_used = whole "GPUs of the layout",
    sharding = one_of(shardings, "what data parallelism shards there"),
    optimizer_offload = optional(fraction "of the optimizer's state in host memory, where that is more than the spec says"),
  }, "what to do instead; null when planned as wanted")),
  model = object({
    name = text "the model", architecture = one_of({ "dense", "moe" }, "dense, or mixture of experts"), layers = whole "decoder layers",
    total_parameters = whole "main model, MTP left out", active_parameters = whole "per token, embedding and head counted",
    active_parameters_without_embedding = whole "per token, input embedding not counted",
    tower_parameters = optional(whole "of a tower of images with its projector, on the first stage; no part of the others"),
    shape = optional { type = "object", additionalProperties = true,
                       description = "in the words of a spec's inline model: hidden, heads, kv_heads, ffn, vocab, experts, …" },
  }, "the model"),
  framework = optional(text "what will run the plan, where the spec names it"),
  cluster = object({
    gpus = whole "GPUs", gpus_per_node = whole "GPUs of a node", accelerator = text "catalogue name",
    device_bytes = bytes "memory of one GPU", fabric = optional(text "network between scale-up domains"),
    network_bytes_per_second = optional(number "between domains, one direction, per GPU"),
    scale_up_gpus = whole "GPUs of a scale-up domain", scale_up_bytes_per_second = optional(number "inside it, one direction, per GPU"),
    price_per_gpu_hour = optional(number "what an hour of one GPU costs, in the spec's currency"),
  }, "the cluster"),
  training = object({
    tokens = number "training volume", sequence_length = whole "tokens of a sequence", precision = text "of matrix products",
    tower = optional(one_of({ "trained", "frozen" }, "the tower of images, where the model has one")),
    recompute = list(text "a module", "what is computed again in the backward"),
    padding = optional(fraction "of a sequence that fills it up, and trains none of `tokens`"),
    batch_ramp = optional(list(object({
      first_token = number "where it begins", global_batch_size = whole "sequences of a step", microbatches = optional(whole "M"),
      step_seconds = optional(seconds "one step"), bubble_fraction = optional(fraction "mean idle share"),
      gpu_hours = optional(number "of this segment"),
      extra_gpu_hours = optional(number "of these, what its batch costs: its tokens at the full batch take so many less"),
    }, "one segment"), "segments of a batch that grows; null when it is constant")),
  }, "the run"),
  gpus_needed = optional(whole "when nothing fits: the smallest count of GPUs, of those tried, that would work"),
  minimum = optional(object({
    gpus = whole "the fewest GPUs, of those tried, that the run fits",
    state_bytes = bytes "weights, gradients and optimizer of one copy", state_gpus = whole "GPUs that could hold no less than that",
    fewer = list(object({
      gpus = whole("GPUs", 0), id = text "a rule's id; state: fewer than state_gpus; contradiction: the spec fixes what this count does not allow",
      message = text "why not so few", rank = optional(whole("the fullest rank", 0)), missing_bytes = optional(bytes "that it lacks"),
    }, "one count"), "what keeps it from fewer: the largest count below that was tried, and the largest that is short of memory"),
  }, "the answer to gpus: minimum; null where the spec gives a number, or no count fits")),
  ways_to_fit = optional(list(object({
    change = text "fields of the spec and their values, or what is left free", schedule = one_of(schedules, "none: without a pipeline"),
    parallelism = reference "parallelism", microbatches = optional(whole "M per pipeline and step"),
    peak_bytes = bytes "memory of the fullest rank", fit = one_of(fits, "does it fit?"), step_seconds = seconds "one training step",
  }, "one way"), "when nothing fits: what could be otherwise so that it does, the fastest step first; empty: nothing that was tried")),
  advice = list(object({
    id = text "what it is about: dominated, runner_up, rollback, without_pipeline, recommend, to_fit, gpus, nearest, or a rule's id",
    message = text "what else there is to do",
    changes = { type = "object", description = "path of a spec → value: laid over the spec they give the outcome" },
    options = text "the changes as options of plan",
    outcome = object({
      status = one_of({ "planned" }, "what the changed spec is answered with"), schedule = one_of(schedules, "none: without a pipeline"),
      parallelism = reference "parallelism", microbatches = whole "M per pipeline and step",
      micro_batch_size = whole "sequences of a microbatch", global_batch_size = whole "sequences of a step", gpus = whole "GPUs of the layout",
      step_seconds = seconds "one training step", peak_bytes = bytes "memory of the fullest rank", fit = one_of(fits, "does it fit?"),
    }, "the plan of the changed spec"),
    saved_fraction = optional(number "of the GPU time of a token; negative: it takes more; null where there is no plan"),
  }, "one suggestion"), "what else there is to do, each planned before it is told"),
  one_gpu = object({
    bytes = optional(bytes "weights, gradients, optimizer sharded over all GPUs, one microbatch: what the whole model takes on one GPU"),
    usable_bytes = bytes "device memory less the headroom", fits = boolean "is it at most usable_bytes?",
    sharded_bytes = optional(bytes "the same with weights and gradients sharded too (ZeRO-3): shown, does not decide"),
  }, "would the model fit one GPU?"),
  assumptions = list(assumption, "what the spec did not say"),
  warnings = list(warning, "what the plan's reader should know"),
  loosened = list(object({
    id = text "rule or parameter", kind = text "what was done to it", layer = text "by which layer", file = optional(text "in which file"),
    line = optional(whole "on which line"), reason = text "why", expires = optional(text "until when"),
  }, "one loosened rule"), "rules that some layer disabled, narrowed, or moved in their loosening direction"),
  dropped = list(object({
    rule = text "rule id", count = whole("candidates that it dropped", 0),
    at_least = optional(boolean "true: of a plan, for rules about bytes and seconds are asked only of candidates that came up before it"),
    nearest = optional(object({ field = text "vocabulary field", value = { description = "nearest value at which it would not hold" },
                                beyond = optional(boolean "true: only beyond that value") },
                              "nearest legal value")),
  }, "one rule"), "which rule dropped how many candidates"),
  policy = object({
    layers = list(text "layer", "in order"), digest = text "of everything loaded", date = text "YYYY-MM-DD that expiry was judged at",
    stack = optional(text "digest of the layers alone: what --policy-digest demands"),
    found = optional(list(text "path", "policies of the machine, which nobody named")),
    left_out = optional(list(text "path", "those that --no-site left out")),
  }, "the policy that decided"),
  spec = object({
    digest = text "of every field that the spec says, and of the model and the profile that it names",
    files = list(text "path", "spec files, in the order in which they were laid over each other"),
    run = optional(text "name of the run, where the spec gives one"),
    fields = list(object({
      field = text "path in the spec", value = { description = "as it was written; a file's path as planning could open it" },
      origin = text "the file that says it, or the command line",
    }, "one field"), "what the spec says, files and options laid over each other, without what is read from its inventory: plan --verify plans it again"),
    read = optional(object({
      assumptions = list(assumption, "of what no field of a spec says, or the launch leaves to be chosen"), warnings = list(warning, "about its keys"),
    }, "what reading launch configurations gave beside fields; null of specs alone")),
  }, "the spec that was planned"),
  engine_version = text "version of pipeplan",

  parallelism = optional(reference "parallelism"),
  layers_per_stage = optional(list(whole("decoder layers", 0), "by slice of the model, first to last")),
  even_split = optional(object({
    layers_per_stage = list(whole("decoder layers", 0), "by slice of the model, first to last"), step_seconds = seconds "one step with it",
    slower_fraction = number "its step over the plan's, less one; negative: it is faster", peak_bytes = bytes "on its fullest rank",
    fit = one_of(fits, "tight: fits, with less than another headroom free"),
  }, "the same plan with as many layers on each stage; null where that is the plan, and without a pipeline")),
  placement = optional(list(list(whole("rank", 0), "ranks that hold the slice"), "by slice of the model, first to last")),
  activation_limit_chunks = optional(whole "zb_auto: most chunks' activations that a rank may hold at once; it was planned under this limit"),
  microbatch_group_size = optional(whole "interleaved: microbatches that a chunk runs before the next one's turn; Megatron's default is P"),
  layout_flags = optional(list(text "what says layers and groups of microbatches to the framework; of none in particular, to Megatron-LM")),
  framework_flags = optional(list(text "what the framework has to be told beside the layout: left out it is legal and means something else")),
  overlap_alone = optional(boolean "without a pipeline: does the all-to-all run beside the next microbatch's compute?"),
  megatron_layout = optional(text "--pipeline-model-parallel-layout, where Megatron can run the placement"),
  microbatches = optional(whole "M per pipeline and step; for DualPipe over both directions"),
  microbatches_per_rank = optional(number "M/P"),
  micro_batch_size = optional(whole "sequences of a microbatch"),
  recompute = optional(list(text "a module", "what is computed again in the backward")),
  sharding = optional(one_of(shardings, "what data parallelism shards")),
  gpus_used = optional(whole "GPUs of the layout; the others of the cluster stay idle"),
  policy_cost = optional(object({
    fraction = fraction "of the fastest survivor's step, that the plan takes longer",
    statements = list(object({
      id = text "the row or preference", file = text "its policy file", line = whole "its line", fraction = fraction "of that, what it costs",
    }, "a statement that kept a slower plan"), "what makes it so, in the order in which they were applied"),
  }, "what the policy's wishes cost")),
  global_batch_size = optional(whole "sequences of a step, at the end of a ramp"),
  tokens_per_step = optional(whole "tokens of a step"),
  schedule = optional(one_of(schedules, "the planned schedule")),
  schedule_family = optional(text "zero_bubble for its members, otherwise the schedule"),
  decision = optional(text "the row of the decision table that holds; null where the spec fixes the schedule"),
  schedule_wanted = optional(text "what that row wanted first"),
  dominated_by = optional(list(object({
    schedule = one_of(schedules, "a schedule that simulation says is faster"), gain_fraction = fraction "of the step",
    tie = boolean "is that under 5 %?", change = optional(text "what would make it the plan"),
  }, "one"), "schedules that beat the planned one by more than tie_fraction")),
  available_in = optional(list(text "framework", "where the planned schedule can be run")),
  bubble = optional(object({
    fraction = fraction "mean idle share: 1 − Σ busy / (P × makespan)", definition = one_of({ "mean_idle", "max_idle", "span" }, "of fraction"),
    max_idle_fraction = fraction "of the rank that idles most", idle_per_rank_seconds = list(seconds "idle", "per step"),
    closed_form_fraction = optional(fraction "idle of the most idle rank by the closed form, at mean stage times / makespan"),
    closed_form_exact = optional(boolean "do the conditions of the closed form hold?"),
    closed_form_interval = optional(list(fraction "low, high", "what the closed form promises when it is not exact, at equal stages")),
    baseline_1f1b_fraction = optional(fraction "1F1B at the same P, M and layout"),
  }, "the pipeline bubble")),
  step_seconds = optional(seconds "one training step at the full batch"),
  ideal_step_seconds = optional(seconds "the same work without bubble, exposed communication and imbalance"),
  predicted_utilisation_fraction = optional(fraction "ideal step / step"),
  mfu_fraction = optional(fraction "training FLOPs of the model / (step × bf16 peak of the GPUs)"),
  training_days = optional(number "for all tokens, at the given goodput"),
  gpu_hours = optional(number "for all tokens"),
  cost = optional(number "gpu_hours × price_per_gpu_hour, where the spec gives one"),
  gpu_hours_saved = optional(list(reference "saving", "against simpler schedules")),
  profile = optional(object({
    file = text "path", source = optional(text "where and how it was measured, by its own words"),
    temperature = one_of({ "hot", "cold", "heating", "as_measured" }, "of the times that the plan uses; heating: cold, and hotter the longer a card works"),
    runtime = one_of({ "ideal", "torch-single", "torch-multi", "deepseek", "pipeplan", "megatron" }, "that the step is simulated under"),
    host_wait_seconds = optional(seconds "of a step, that the card which waits most waits for its host alone, where the profile says what hosts take"),
    calibration = list(object({
      schedule = one_of(schedules, "schedule"), microbatches = whole "M", measured_seconds = seconds "as the profile has it",
      predicted_seconds = seconds "simulated from its stages", error_fraction = number "predicted over measured, less one",
    }, "one run"), "the profile's own steps"),
  }, "what was measured in place of what is computed")),
  power = optional(object({
    baseline = one_of(schedules, "what is compared with"), cool_gain_fraction = fraction "of the baseline's step, at the clocks of cool cards",
    gain_fraction = fraction "the same as cards heat up", taken_back_fraction = optional(fraction "of the gain, by lower clocks; null where there is none"),
    slowdown_fraction = fraction "of the plan's step, by heat",
  }, "what a power cap takes back of the plan's gain, where the profile says how cards heat up")),
  expected_error = optional(object({
    time_fraction = fraction "of step time", memory_fraction = fraction "of memory",
    comparison_fraction = fraction "of the ratio of two schedules' step times, in which errors of the cost model cancel",
    comparisons = optional(object({
      schedule = fraction "another schedule at one layout", overlap = fraction "the all-to-all hidden or not", layout = fraction "another layout",
      pipeline = fraction "a pipeline or none",
    }, "of the ratio of two steps, by what differs: nine of ten pairs of measured runs")), source = text "where these come from",
  }, "how far off the estimates may be")),
  step = optional(object({
    pipeline_seconds = seconds "makespan of the schedule", gradient_sync_seconds = seconds "exposed gradient reduction",
    parameter_sync_seconds = seconds "exposed parameter gather", optimizer_seconds = seconds "optimizer update",
    mirror_seconds = seconds "gradient sum of the two copies", replicas_seconds = seconds "gradient sum of the groups that each shard a state",
    sharding_seconds = seconds "what gathers and reductions of sharded parameters and gradients add", overhead_seconds = seconds "fixed cost of a step",
  }, "what a step is made of")),
  hop_seconds = optional(seconds "that a hand-over between two ranks is on its way while both may compute"),
  stages = optional(list(reference "stage", "by slice of the model")),
  memory = optional(object({
    device_bytes = bytes "of one GPU", headroom_bytes = bytes "what a plan must leave free",
    fit = one_of(fits, "tight: fits, but over tight_fraction of the memory less its headroom"), ranks = list(reference "rank", "by pipeline rank"),
  }, "memory")),
  host = optional(object({
    optimizer_bytes = bytes "host memory of a node that an offloaded optimizer takes: master weights, moments, a copy of the gradients",
    memory_bytes = optional(bytes "host memory of a node, where the spec gives it"),
    checkpoint_bytes = bytes "weights, master weights and moments of the whole model",
    checkpoint_seconds = optional(seconds "to write them, where the spec gives the storage's speed"),
  }, "what nodes and storage have to hold")),
  replication = optional(object({
    copies = whole "parameter copies on the devices", extra_bytes = number "on the fullest rank, beside one copy",
    resident_parameters_per_gpu = number "held, on the rank that holds most", unique_parameters_per_gpu = number "one copy spread evenly over the pipeline",
    density_fraction = fraction "unique / resident",
  }, "what a second copy costs")),
  communication = optional(object({
    pipeline = reference "traffic", expert = reference "traffic", data = reference "traffic",
    tensor = reference "traffic", context = reference "traffic",
  }, "per step, on the rank that spends most on it; tensor and context are part of F, I and W")),
  alltoall_kernel = optional(object({
    name = optional(text "kernel; null: none is needed"), why = text "why", needs = list(text "a requirement", "check before the run"),
  }, "the all-to-all kernel")),
  without_pipeline = optional(object({
    framework_flags = optional(list(text "what the framework has to be told beside the layout")),
    parallelism = reference "parallelism", sharding = one_of(shardings, "what data parallelism shards there"),
    recompute = text "none, selective, modules or full", micro_batch_size = whole "sequences of a microbatch", gpus_used = whole "GPUs of the layout",
    microbatches = whole "of one step", step_seconds = seconds "of a step", peak_bytes = optional(bytes "of the fullest GPU"),
    exposed_step_seconds = optional(seconds "of a step whose all-to-all runs beside nothing; null where it runs so anyway"),
    gain_fraction = optional(number "the plan's step over this one, less 1: above 0, it is faster"),
    tie = optional(boolean "is that under 5 %, faster or slower?"),
    error_fraction = fraction "how far off the ratio of both steps may be: nine of ten pairs of measured runs",
  }, "the best without a pipeline; null where the plan has none, or none fits")),
  frontier = optional(list(object({
    schedule = one_of(schedules, "none: without a pipeline"), parallelism = reference "parallelism", microbatches = whole "M per pipeline and step",
    micro_batch_size = whole "sequences of a microbatch", recompute = text "what is computed again", sharding = one_of(shardings, "what data parallelism shards"),
    gpus = whole "GPUs of the layout", step_seconds = seconds "one training step", peak_bytes = bytes "memory of the fullest rank",
    gpu_hours = optional(number "of the run; null with a ramp"), cost = optional(number "gpu_hours × price_per_gpu_hour"),
    fit = one_of(fits, "tight: fits, with less than another headroom free"), plan = boolean "is it the plan?",
  }, "one point"), "of --format json and --explain: survivors of which none is faster with as few bytes, the fastest first, each next one at least 3 % smaller")),
  runner_up = optional(object({
    schedule = one_of(schedules, "its schedule"), parallelism = reference "parallelism", microbatches = whole "M per pipeline and step",
    micro_batch_size = whole "sequences of a microbatch", recompute = text "none, selective, modules or full",
    sharding = one_of(shardings, "what data parallelism shards"), gpus_used = whole "GPUs of the layout",
    step_seconds = seconds "of a step", peak_bytes = bytes "of the fullest rank",
    margin_fraction = number "its step over the plan's, less 1: below 0, it is faster and the policy prefers the plan",
    error_fraction = fraction "that such a comparison can be wrong by", tie = boolean "is the margin under 5 %, faster or slower?",
  }, "the fastest of another layout or schedule; null where there is none")),
  shortlist = optional(list(reference "layout_to_measure", "of --shortlist: what a comparison cannot tell from the plan and a run could, the plan first")),
  measured = optional(object({
    runs = list(object({
      name = text "the plan, and the number in its shortlist", log = text "its file", schedule = one_of(schedules, "none: without a pipeline"),
      parallelism = reference "parallelism", layers_per_stage = list(whole("decoder layers", 0), "by slice of the model, first to last"), microbatches = whole "M per pipeline and step", micro_batch_size = whole "sequences of a microbatch",
      recompute = list(text "a module", "what is computed again in the backward"), sharding = one_of(shardings, "what data parallelism shards"),
      steps = number "that count", measured_seconds = seconds "median of a step", low_seconds = seconds "nine of ten steps take more",
      high_seconds = seconds "nine of ten take less", error_fraction = optional(fraction "standard error of the mean step"),
      predicted_seconds = seconds "with the factors that the spec has", residual_fraction = number "measured over that, less one",
      calibrated_residual_fraction = number "measured over what the factors found here predict, less one",
      planned = boolean "is it the plan of the spec?", chosen = boolean "is it what is planned now?",
      tie = boolean "can the runs not tell it from the fastest? The fastest itself too",
    }, "one layout"), "each with its log"),
    changed = boolean "is another layout planned than without the runs?", why = text "why this one",
    before = object({
      schedule = one_of(schedules, "schedule"), parallelism = reference "parallelism", layers_per_stage = list(whole("decoder layers", 0), "by slice of the model, first to last"), microbatches = whole "M per pipeline and step",
      step_seconds = seconds "predicted",
    }, "what is planned without the runs"),
    changes = { type = "object", description = "path of a spec → value: laid over the spec, they plan what was taken" },
    options = text "the same as options of the command line",
    factors = object({
      all = number "of everything", compute = optional(number "of kernels"), tensor = optional(number "of TP's collectives"),
      context = optional(number "of CP's ring"), expert = optional(number "of the all-to-all"), data = optional(number "of gradients and parameters"),
      pipeline = optional(number "of hand-overs"),
    }, "of the price, by these runs and those that were kept"), factors_why = text "why these and no others",
    off_before_fraction = number "root mean square of log(measured / computed)", off_fraction = number "the same with the factors",
    next = optional(object({
      schedule = one_of(schedules, "schedule"), parallelism = reference "parallelism", layers_per_stage = list(whole("decoder layers", 0), "by slice of the model, first to last"), microbatches = whole "M per pipeline and step",
      step_seconds = seconds "predicted with the factors", gain_fraction = fraction "of the measured step that was taken",
    }, "what the factors let plan and nobody measured; null where that is no faster")),
  }, "of --measured: what runs of layouts say")),
  rollback = optional(object({
    metric = text "what to measure", threshold_fraction = fraction "switch below it, over these steps", window_steps = whole "steps to average over",
    predicted_utilisation_fraction = fraction "the plan's own over these steps",
    warmup_steps = whole("steps left out of it", 0),
    threshold_seconds = seconds "the mean step at that utilisation: switch above it",
    fallback = optional(object({ schedule = one_of(schedules, "schedule"), pipeline = whole "P" }, "what to switch to; null: nothing simpler")),
    inside_error_band = boolean "is the gain smaller than what the estimates can tell?", paragraph = text "the trigger in words",
    batches = optional(list(object({
      global_batch_size = whole "sequences of a step", predicted_utilisation_fraction = fraction "the plan's own at this batch",
      threshold_fraction = fraction "switch below it", threshold_seconds = seconds "the mean step at that utilisation: switch above it",
      inside_error_band = boolean "is the gain at this batch smaller than what the estimates can tell?",
    }, "one batch"), "of a batch that grows, the trigger at each: what holds for the steps at that batch; null when it is constant")),
  }, "when to give up on the plan")),
  alternatives = optional(list(reference "alternative", "other schedules on the same devices, layers and tokens")),
  explanation = optional(object({
    decided = list(text "one step, from all candidates to the plan", "how the plan was decided"),
    rules = list(object({
      id = text "rule", verb = text "row, reject, …", holds = boolean "do all its conditions hold?", because = text "its conditions with their values, or the first that does not hold",
      layer = text "the policy layer that states it", file = optional(text "file"), line = optional(whole "line"),
      source = optional(text "where the rule comes from"),
    }, "one rule"), "every rule, in effective order, for the plan (or the candidate that was judged)"),
    overridden = list(object({
      id = text "rule, row or parameter", kind = one_of({ "disabled", "changed", "set" }, "what was done to it"),
      what = text "what it was; of a disabled rule, whether it would hold and why", holds = optional(boolean "of a disabled rule: would it hold?"),
      layer = text "the layer that overrides", file = optional(text "file"), line = optional(whole("line", 0)),
      reason = optional(text "why"), expires = optional(text "YYYY-MM-DD"),
    }, "one override"), "what the layers over the default hide"),
    changes = list(object({
      field = text "path in the spec", value = text "what it would be, as an option takes it", words = text "value and the spec's own, or the limit to pass",
      side = optional(one_of({ "over", "under" }, "the limit of a real number lies there, value a hair beyond")),
      status = one_of({ "planned", "refused", "rejected" }, "outcome with that value"), decision = optional(text "row that would decide"),
      rules = list(text "rule", "its reasons"), effect = text "what would be otherwise",
      step_seconds = optional(seconds "one step of the plan with that value"), peak_bytes = optional(bytes "on its fullest rank"),
      gpu_hours = optional(number "for all tokens of the spec with that value; null where its batch ramps up"),
    }, "one change"), "nearest changes of one stated field with another outcome, each planned; nearest first, a field once"),
    sensitivity = optional(list(object({
      words = text "what would be otherwise", changes = { type = "object", description = "path of a spec → value: laid over the spec they give that" },
      status = one_of({ "planned", "not_planned" }, "is anything planned then?"), same = optional(boolean "is it the plan's schedule and layout?"),
      schedule = optional(one_of(schedules, "what is planned then")), parallelism = optional(reference "parallelism"),
      step_seconds = optional(seconds "one training step"),
    }, "one figure at another value"), "where the choice turns: links, overlap, memory and batch at other values; null where nothing is planned")),
    figures = list(object({
      figure = text "path in the plan, or several", name = text "of the formula", formula = text "in words", inputs = text "what went into it here",
      source = text "of the formula, or of the measurement",
    }, "one figure"), "where figures come from"),
    answers = list(object({
      question = text "field=value", verdict = one_of({ "chosen", "dropped", "lost", "none", "fixed" }, "what became of that choice"),
      answer = text "why", candidate = optional(reference "alternative"),
    }, "one answer"), "of --why: candidate is the best with that value; fixed: the spec fixes another, candidate is the plan with this one"),
    phases = optional(reference "phases"),
    spec = list(object({
      field = text "path in the spec", value = { description = "as it was written" }, origin = text "the file that says it, or the command line",
    }, "one field"), "what the spec says, files and options laid over each other"),
  }, "only with --explain or --why")),
}

properties["$schema"] = { const = documents.id "plan", description = "what this is, and in which version" }

local schema = object(properties, "What pipeplan answers: a plan, or why there is none and what to do instead")
schema["$schema"], schema["$id"] = "https://json-schema.org/draft/2020-12/schema", documents.id "plan"
schema.title = "pipeplan plan"
schema["$defs"] = definitions
return schema
