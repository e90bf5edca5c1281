-- SPDX-License-Identifier: Apache-2.0
-- luacheck: ignore 631 (policies stand as their authors wrote them)
--[[
held_back.lua: mistakes of policy authors that were written blind: on 2026-11-29, from docs/policy.md, docs/reference.md, policies/default and
examples/sites alone, before anybody looked what the program of commit 9663380 says of them, and before mistakes.lua was read. They measure
how much slips by of what nobody thought of. docs/figures.md says how many did; no case was changed or taken out because it did.
(Three were mended before they were counted, for they did not have the mistake that they are named after.)

Each has a kind; what a reviewer would want to be told, `tells`; where the mistake stands, `at`; and files: site.lua unless said otherwise.
With a test the author wrote tests, of which the mistake is known only in that light. `stack` are the layers in order (default: site.lua).
The answers at the end were written when the kinds that were silent had been mended: what catches each now, and a part of what is said.
tests/mistakes.lua runs them.
]]

local DENSE = [[
{ "cluster": { "gpus": 256, "accelerator": "H100-SXM", "network": { "fabric": "infiniband", "per_gpu": "400Gbps" } },
  "model": { "architecture": "dense", "total": "70B", "layers": 80 }, "training": { "tokens": "1T" } }
]]
local MOE = [[
{ "cluster": { "gpus": 256, "accelerator": "H100-SXM", "network": { "fabric": "infiniband", "per_gpu": "400Gbps" } },
  "model": { "architecture": "moe", "total": "235B", "active": "22B", "layers": 94 }, "training": { "tokens": "4T", "global_batch_size": 2048 } }
]]

local cases = {}

local function case(id)
  return function(one)
    one.id, one.at = id, one.at or "site.lua:2"
    one.files = one.files or {}
    one.files["site.lua"] = one.files["site.lua"] or one.site
    one.files["site_spec.lua"] = one.test
    one.files["dense.json"], one.files["moe.json"] = DENSE, MOE
    one.stack = one.stack or { "site.lua" }
    cases[#cases + 1] = one
  end
end

-- A test of the author: what stands in `describe`.
local function tests(body)
  return 'local site = require("pipeplan").policy "site.lua"\ndescribe("hall", function()\n' .. body .. "\nend)\n"
end

-- Units ------------------------------------------------------------------------------------------------------------------------------------

case "gbytes_for_gbits" { kind = "unit", tells = "400 GB/s is eight times the 400 Gb/s that was meant: every network is below it",
  site = [[site "hall"
reject { id = "slow_network", network_per_gpu = under "400GB/s", message = "{network_per_gpu} a GPU: this hall has 400 Gb/s" }
]] }
case "bare_bandwidth" { kind = "unit", tells = "200 is 200 bytes a second; write \"200Gbps\"",
  site = [[site "hall"
set { slow_link = 200, reason = "our links are measured" }
]] }
case "bandwidth_in_bits" { kind = "unit", tells = "400e9 is 400 GB/s, a plain number is bytes a second; 400 Gb/s is \"400Gbps\"",
  site = [[site "hall"
refuse { id = "slow_network", network_per_gpu = under(400e9), pipeline_parallel = over(1), recommend = "data_parallel", message = "{network_per_gpu} a GPU" }
]] }
case "headroom_of_five" { kind = "unit", tells = "5 is 500 %",
  site = [[site "hall"
set { memory_headroom = 5, reason = "new driver" }
]] }
case "memory_in_gib_bare" { kind = "unit", tells = "80 is 80 bytes",
  site = [[site "hall"
reject { id = "small_cards", device_bytes = under(80), message = "{device_bytes}: 80 GiB cards only" }
]] }
case "gib_for_marketing_gb" { kind = "unit", tells = "an H100 of \"80 GB\" has 79.6 GiB: all of them are under 80 GiB",
  site = [[site "hall"
reject { id = "small_cards", device_bytes = under "80GiB", message = "{device_bytes}: this hall plans for 80 GB cards" }
]] }
case "bubble_in_percent" { kind = "unit", tells = "15 is 1500 %; a fraction is at most 1",
  site = [[site "hall"
reject { id = "idle", bubble_fraction = over(15), message = "{bubble_fraction} of a step is idle" }
]] }
case "step_in_milliseconds" { kind = "unit", tells = "a step is in seconds: 30000 s are 8 hours, no step takes that",
  site = [[site "hall"
reject { id = "slow_step", step_seconds = over(30000), message = "{step_seconds} a step" }
]] }
case "tokens_without_suffix" { kind = "unit", tells = "15 tokens; \"15B\" or \"15T\"",
  site = [[site "hall"
refuse { id = "tiny_run", tokens = under(15), pipeline_parallel = over(1), recommend = "data_parallel", message = "{tokens} tokens" }
]] }
case "k_for_ki" { kind = "unit", tells = "128K is 128,000; sequences of 128Ki are 131,072, so the condition never holds for them",
  site = [[site "hall"
row { id = "long", sequence_length = "128K", try = { "1f1b" } }
]] }
case "parameters_in_billions" { kind = "unit", tells = "70 parameters; \"70B\"",
  site = [[site "hall"
row { id = "big", architecture = "dense", total_parameters = over(70), try = { "zb_h1", "1f1b" } }
]] }
case "tolerance_half_percent" { kind = "unit", tells = "0.5 is 50 %: \"0.5%\" was meant",
  site = [[site "hall"
set { wanted_tolerance = 0.5 }
]] }
case "days_as_hours" { kind = "unit", tells = "training_days is in days: 720 days are two years (30 days = 720 hours was meant)",
  site = [[site "hall"
reject { id = "too_long", training_days = over(720), message = "{training_days} days: at most 30" }
]] }
case "percent_of_percent" { kind = "unit", tells = "0.1 % where 10 % was meant: the note says nearly always",
  site = [[site "hall"
warn { id = "idle", bubble_fraction = over "0.15%", message = "over 15 % of a step is idle: {bubble_fraction}" }
]] }
case "when_in_gbits" { kind = "unit", tells = "the field is in bytes a second, never under 400",
  site = [[site "hall"
reject { id = "slow_network", message = "{network_per_gpu} a GPU", when = function(f) return f.network_per_gpu < 400 end }
]] }
case "when_in_percent" { kind = "unit", tells = "bubble_fraction is a fraction from 0 to 1: never over 15",
  site = [[site "hall"
reject { id = "idle", message = "{bubble_fraction} idle", when = function(f) return f.pipeline_parallel > 1 and f.bubble_fraction > 15 end }
]] }

-- Operators and values ----------------------------------------------------------------------------------------------------------------------

case "equal_for_over" { kind = "operator", tells = "only P 32 is rejected, 64 is not: no test tries deeper",
  site = [[site "hall"
reject { id = "deep", pipeline_parallel = 32, message = "P {pipeline_parallel}: at most 16 here" }
]],
  test = tests [[
  it("takes 16", function() assert.decided(site:plan { "dense.json", pipeline = 16 }, "planned") end)
  it("takes no more", function() assert.decided(site:plan { "dense.json", pipeline = 32 }, "rejected", "deep") end)]] }
case "equal_days" { kind = "operator", tells = "exactly 60 days: no run takes exactly that; over(60)",
  site = [[site "hall"
reject { id = "too_long", training_days = 60, message = "{training_days} days" }
]] }
case "reversed" { kind = "operator", tells = "rejects what is narrow, and takes what is wide; no test tries the other side",
  site = [[site "hall"
reject { id = "wide_experts", expert_parallel = under(64), message = "EP {expert_parallel}: at most 64 in a pod" }
]],
  test = tests [[
  it("plans a wide one", function() assert.decided(site:plan { "moe.json", expert = 64 }, "planned") end)]] }
case "reversed_between" { kind = "operator", tells = "from 32 to 16: holds for nothing",
  site = [[site "hall"
prefer { id = "depth", pipeline_parallel = between(32, 16), within = "5%" }
]] }
case "list_for_between" { kind = "operator", tells = "64 or 512, nothing between them",
  site = [[site "hall"
row { id = "middle", gpus = { 64, 512 }, try = { "zb_h1", "1f1b" } }
]],
  test = tests [[
  it("has a row for 64", function() assert.equal("middle", site:with { gpus = 64 }:plan({ "dense.json" }).decision) end)
  it("has a row for 512", function() assert.equal("middle", site:with { gpus = 512 }:plan({ "dense.json" }).decision) end)
  it("and none for 513", function() assert.is_not.equal("middle", site:with { gpus = 513 }:plan({ "dense.json" }).decision) end)]] }
case "multiple_turned_round" { kind = "operator", tells = "P is no multiple of the layers, ever: it should be layers not_multiple_of P; this drops every plan",
  site = [[site "hall"
reject { id = "uneven", pipeline_parallel = not_multiple_of "layers", message = "{layers} layers over {pipeline_parallel}" }
]] }
case "half_a_rank" { kind = "operator", tells = "7.5 ranks: a count is whole",
  site = [[site "hall"
reject { id = "deep", pipeline_parallel = over(7.5), message = "P {pipeline_parallel}" }
]] }
case "odd_in_quotes" { kind = "operator", tells = "odd is a value without quotes",
  site = [[site "hall"
reject { id = "odd_depth", pipeline_parallel = "odd", message = "P {pipeline_parallel} is odd" }
]] }
case "true_in_quotes" { kind = "operator", tells = "the field is true or false, not a text",
  site = [[site "hall"
refuse { id = "one_gpu", fits_one_gpu = "true", recommend = "data_parallel", message = "fits one GPU" }
]] }
case "parameter_of_another_unit" { kind = "operator", tells = "tokens are held against a bandwidth",
  site = [[site "hall"
refuse { id = "tiny_run", tokens = under "slow_link", pipeline_parallel = over(1), recommend = "data_parallel", message = "{tokens} tokens" }
]] }
case "warn_turned_round" { kind = "operator", tells = "says few where there are many; no test has the side without it",
  site = [[site "hall"
warn { id = "few_here", microbatches_per_rank = over(4), message = "M/P {microbatches_per_rank}: at least 4 is usual here" }
]],
  test = tests [[
  it("warns", function() assert.is_table(site:plan({ "dense.json" }).warnings) end)]] }
case "not_a_limit_but_always" { kind = "operator", tells = "a layout never uses more than all GPUs: holds for every candidate, so nothing is ever planned",
  site = [[site "hall"
reject { id = "some_idle", gpus_used = at_most "gpus", message = "{gpus_used} of {gpus}: leaves GPUs idle" }
]] }

-- Never true, shadowed, without effect ------------------------------------------------------------------------------------------------------

case "dense_experts" { kind = "never", tells = "a dense model has EP 1: never holds",
  site = [[site "hall"
reject { id = "ep_dense", architecture = "dense", expert_parallel = over(1), message = "EP {expert_parallel} of a dense model" }
]] }
case "row_after_catch_all" { kind = "shadowed", at = "site.lua:3", tells = "never decides: the row above takes everything",
  site = [[site "hall"
row { id = "ours", try = { "zb_h1", "1f1b" } }
row { id = "ours_moe", architecture = "moe", try = { "dualpipev", "1f1b" } }
]] }
case "catch_all_of_a_site" { kind = "shadowed", tells = "all rows of the default never decide any more",
  site = [[site "hall"
row { id = "ours", gpus = at_least(1), try = { "1f1b" } }
]] }
case "reject_within_reject" { kind = "never", at = "site.lua:3", tells = "what it rejects the rule above it rejects already",
  site = [[site "hall"
reject { id = "deep", pipeline_parallel = over(16), message = "P {pipeline_parallel}" }
reject { id = "deep_dense", architecture = "dense", pipeline_parallel = over(32), message = "P {pipeline_parallel} of a dense model" }
]] }
case "virtual_1f1b" { kind = "never", tells = "1F1B has V 1: interleaved_1f1b was meant",
  site = [[site "hall"
reject { id = "many_chunks", schedule = "1f1b", virtual = over(4), message = "V {virtual}" }
]] }
case "family_as_schedule" { kind = "name", tells = "zero_bubble is a family: schedule_family, or its members",
  site = [[site "hall"
reject { id = "no_zb", schedule = "zero_bubble", message = "our trainer has no {schedule}" }
]] }
case "schedule_in_capitals" { kind = "name", tells = "1F1B: the name is 1f1b",
  site = [[site "hall"
row { id = "small", gpus = under(64), try = { "1F1B" } }
]] }
case "fabric_in_capitals" { kind = "name", tells = "the fabric is ethernet, in small letters",
  site = [[site "hall"
reject { id = "deep", fabric = "Ethernet", pipeline_parallel = over(16), message = "P {pipeline_parallel}" }
]] }
case "accelerator_short" { kind = "name", tells = "no accelerator H100 in the catalogue: H100-SXM, H100-PCIe",
  site = [[site "hall"
row { id = "h100", accelerator = "H100", try = { "zb_h1", "1f1b" } }
]] }
case "family_with_hyphen" { kind = "name", tells = "model_type has an underscore: deepseek_v3",
  site = [[site "hall"
row { id = "v3", model_family = "deepseek-v3", try = { "dualpipe", "1f1b" } }
]] }
case "when_fabric_in_capitals" { kind = "name", tells = "fabric is never \"InfiniBand\": infiniband",
  site = [[site "hall"
refuse { id = "no_fabric", pipeline_parallel = over(8), recommend = "data_parallel", message = "{fabric}",
         when = function(f) return f.fabric ~= "InfiniBand" end }
]], at = "site.lua:3" }
case "labels_as_table" { kind = "name", tells = "the field of the label tier is label_tier",
  site = [[site "hall"
reject { id = "research_small", labels = { tier = "research" }, gpus = over(512), message = "{gpus} GPUs" }
]] }
case "model_type_for_field" { kind = "name", tells = "unknown field; model_family",
  site = [[site "hall"
row { id = "v3", model_type = "deepseek_v3", try = { "dualpipe", "1f1b" } }
]] }
case "parameter_misspelt" { kind = "name", tells = "unknown parameter; gpus_per_node",
  site = [[site "hall"
reject { id = "tp", tensor_parallel = over "gpus_pernode", message = "TP {tensor_parallel}" }
]] }

-- Statements --------------------------------------------------------------------------------------------------------------------------------

case "id_twice" { kind = "statement", at = "site.lua:3", tells = "the id stands twice, copied from the line above",
  site = [[site "hall"
reject { id = "deep", fabric = "ethernet", pipeline_parallel = over(16), message = "P {pipeline_parallel}" }
reject { id = "deep", fabric = "roce", pipeline_parallel = over(32), message = "P {pipeline_parallel}" }
]] }
case "default_id_again" { kind = "statement", tells = "too_deep is the default's: change it, or take another id",
  site = [[site "hall"
reject { id = "too_deep", pipeline_parallel = over(32), message = "P {pipeline_parallel}" }
]] }
case "disable_misspelt" { kind = "statement", tells = "no rule short_runs: short_run",
  site = [[site "hall"
disable { id = "short_runs", reason = "courses" }
]] }
case "change_of_a_parameter" { kind = "statement", tells = "max_pipeline_depth is a parameter: set",
  site = [[site "hall"
change { id = "max_pipeline_depth", value = 32 }
]] }
case "change_adds_condition_silently" { kind = "statement", tells = "loosens too_deep: only over Ethernet is anything too deep now; without a reason",
  site = [[site "hall"
change { id = "too_deep", fabric = "ethernet" }
]] }
case "reason_of_blanks" { kind = "statement", tells = "a reason of blanks is none",
  site = [[site "hall"
disable { id = "odd_microbatches", reason = "  ", expires = "2027-06-30" }
]] }
case "date_turned_round" { kind = "date", tells = "a date is YYYY-MM-DD",
  site = [[site "hall"
disable { id = "odd_microbatches", reason = "our DualPipeV takes odd M", expires = "30-06-2027" }
]] }
case "thirty_first_of_june" { kind = "date", tells = "June has 30 days",
  site = [[site "hall"
disable { id = "odd_microbatches", reason = "our DualPipeV takes odd M", expires = "2027-06-31" }
]] }
case "expired" { kind = "date", tells = "its day is over: odd microbatches are rejected again",
  site = [[site "hall"
disable { id = "odd_microbatches", reason = "our DualPipeV takes odd M", expires = "2026-06-30" }
]] }
case "wrong_century" { kind = "date", tells = "2207 is in two centuries: 2027",
  site = [[site "hall"
disable { id = "odd_microbatches", reason = "our DualPipeV takes odd M", expires = "2207-06-30" }
]] }
case "recommend_unknown" { kind = "statement", tells = "no such recommendation; data_parallel",
  site = [[site "hall"
refuse { id = "slow", network_per_gpu = under "100Gbps", pipeline_parallel = over(1), recommend = "ddp", message = "{network_per_gpu}" }
]] }
case "recommend_itself" { kind = "statement", tells = "recommends what it refuses",
  site = [[site "hall"
refuse { id = "no_dualpipe", schedule = "dualpipe", architecture = "moe", recommend = "dualpipe", message = "not here" }
]] }
case "recommend_not_allowed" { kind = "statement", at = "site.lua:3", tells = "recommends a schedule that the parameter schedules does not allow",
  site = [[site "hall"
set { schedules = { "interleaved_1f1b", "1f1b", "dualpipe" } }
refuse { id = "no_dualpipe", schedule = "dualpipe", expert_parallel = over(32), recommend = "dualpipev", message = "EP {expert_parallel}" }
]] }
case "placeholder_misspelt" { kind = "message", tells = "no field pipeline_paralell",
  site = [[site "hall"
reject { id = "deep", pipeline_parallel = over(16), message = "P {pipeline_paralell}" }
]] }
case "placeholder_open" { kind = "message", tells = "a brace is not closed",
  site = [[site "hall"
reject { id = "deep", pipeline_parallel = over(16), message = "P {pipeline_parallel is over 16" }
]] }
case "percent_d" { kind = "message", tells = "%d is no placeholder: {pipeline_parallel}",
  site = [[site "hall"
reject { id = "deep", pipeline_parallel = over(16), message = "P %d is over 16" }
]] }
case "message_says_another_limit" { kind = "message", tells = "the message says 16, the rule 32",
  site = [[site "hall"
reject { id = "deep", pipeline_parallel = over(32), message = "P {pipeline_parallel}: at most 16 here" }
]] }
case "try_empty" { kind = "statement", tells = "a row tries at least one schedule",
  site = [[site "hall"
row { id = "ours", gpus = under(64), try = {} }
]] }
case "prefer_within_five" { kind = "unit", tells = "5 is 500 %: \"5%\"",
  site = [[site "hall"
prefer { id = "shallow", pipeline_parallel = at_most(4), within = 5 }
]] }
case "kernel_for_all" { kind = "statement", tells = "claims to overlap on every network, with a kernel that runs on InfiniBand and RoCE: loosens, with no reason",
  site = [[site "hall"
kernel { id = "ours", recommend = "deepep" }
]] }
case "invariant_says_what_holds" { kind = "statement", tells = "an invariant says what no plan may satisfy: every plan satisfies this",
  site = [[site "hall"
invariant { id = "fits", status = "planned", peak_bytes = at_most "device_bytes" }
]] }
case "loosens_turned_round" { kind = "statement", tells = "a higher limit lets more through: loosens up",
  site = [[site "hall"
parameter { id = "widest", value = 64, unit = "rank", loosens = "down", meaning = "widest EP" }
reject { id = "wide", expert_parallel = over "widest", message = "EP {expert_parallel}" }
]] }
case "parameter_outside_its_domain" { kind = "statement", tells = "0 is under the least that it says itself",
  site = [[site "hall"
parameter { id = "widest", value = 0, unit = "rank", loosens = "up", at_least = 1, meaning = "widest EP" }
reject { id = "wide", expert_parallel = over "widest", message = "EP {expert_parallel}" }
]] }
case "parameter_not_read" { kind = "statement", tells = "no rule reads widest: the rule has a number of its own",
  site = [[site "hall"
parameter { id = "widest", value = 32, unit = "rank", loosens = "up", at_least = 1, meaning = "widest EP" }
reject { id = "wide", expert_parallel = over(64), message = "EP {expert_parallel}" }
]] }
case "fallback_not_allowed" { kind = "statement", tells = "no schedule of rollback_fallback and of no row is left: interleaved_1f1b_overlap alone, so nothing but MoE is planned as its row says",
  site = [[site "hall"
set { schedules = { "interleaved_1f1b_overlap" } }
]] }
case "rank_field_unknown" { kind = "name", tells = "a rank has bytes, idle, layers, stages",
  site = [[site "hall"
warn { id = "full", any_rank = { memory = over "70GiB" }, message = "a rank is full" }
]] }
case "any_for_every" { kind = "operator", tells = "every rank has at most so many layers: holds for nearly every plan",
  site = [[site "hall"
warn { id = "empty_rank", every_rank = { layers = at_least(0) }, message = "a rank holds no layer" }
]] }

-- Functions ---------------------------------------------------------------------------------------------------------------------------------

case "when_nil" { kind = "function", tells = "expert_link is absent at EP 1: compares nil",
  site = [[site "hall"
reject { id = "slow_experts", message = "EP {expert_parallel}", when = function(f) return f.expert_link < 25e9 end }
]] }
case "when_no_return" { kind = "function", tells = "returns nothing, so it never holds",
  site = [[site "hall"
reject { id = "deep", message = "P {pipeline_parallel}", when = function(f) local deep = f.pipeline_parallel > 16 end }
]] }
case "when_number" { kind = "function", tells = "0 is true in Lua: return a comparison",
  site = [[site "hall"
reject { id = "uneven", message = "{layers} layers over {pipeline_parallel}", when = function(f) return f.layers % f.pipeline_parallel end }
]] }
case "when_field_misspelt" { kind = "function", tells = "no field pipeline: pipeline_parallel",
  site = [[site "hall"
reject { id = "deep", message = "P {pipeline_parallel}", when = function(f) return f.pipeline > 16 end }
]] }
case "when_or_for_and" { kind = "function", tells = "says yes to nearly all: or in place of and",
  site = [[site "hall"
reject { id = "deep", message = "P {pipeline_parallel}", when = function(f) return f.fabric ~= "infiniband" or f.fabric ~= "roce" end }
]] }
case "when_clock" { kind = "function", tells = "there is no os in a policy",
  site = [[site "hall"
reject { id = "summer", message = "closed in summer", when = function(f) return os.date("%m") == "08" end }
]] }
case "when_parameter_in_function" { kind = "function", tells = "max_pipeline_depth is no field: nil in a comparison",
  site = [[site "hall"
reject { id = "deep", message = "P {pipeline_parallel}", when = function(f) return f.pipeline_parallel > max_pipeline_depth / 2 end }
]] }

-- Files -------------------------------------------------------------------------------------------------------------------------------------

case "helper_absent" { kind = "file", tells = "no file limit.lua beside site.lua: limits.lua",
  files = { ["limits.lua"] = "return { depth = 16 }\n" },
  site = [[site "hall"
local limits = require "limit"
reject { id = "deep", pipeline_parallel = over(limits.depth), message = "P {pipeline_parallel}" }
]] }
case "helper_returns_nothing" { kind = "file", tells = "limits.lua returns no table",
  files = { ["limits.lua"] = "local limits = { depth = 16 }\n" },
  site = [[site "hall"
local limits = require "limits"
reject { id = "deep", pipeline_parallel = over(limits.depth), message = "P {pipeline_parallel}" }
]], at = "site.lua:3" }
case "rules_named_as_tests" { kind = "file", at = "hall/rules_spec.lua", tells = "a *_spec.lua is a test and is not read as policy", stack = { "hall" },
  files = { ["hall/site.lua"] = 'site "hall"\nset { small_run_gpus = 64 }\n',
            ["hall/rules_spec.lua"] = 'reject { id = "deep", pipeline_parallel = over(16), message = "P {pipeline_parallel}" }\n' } }
case "rules_in_a_folder_below" { kind = "file", at = "hall/rules", tells = "a folder in the folder is not read", stack = { "hall" },
  files = { ["hall/site.lua"] = 'site "hall"\nset { small_run_gpus = 64 }\n',
            ["hall/rules/depth.lua"] = 'reject { id = "deep", pipeline_parallel = over(16), message = "P {pipeline_parallel}" }\n' } }

-- Tests -------------------------------------------------------------------------------------------------------------------------------------

local DEEP = 'site "hall"\nreject { id = "deep", pipeline_parallel = over(16), message = "P {pipeline_parallel}" }\n'

case "test_asserts_nothing" { kind = "test", at = "site_spec.lua:3", site = DEEP, tells = "the test asserts nothing",
  test = tests [[
  it("rejects deep ones", function() site:plan { "dense.json", pipeline = 32 } end)]] }
case "test_of_truth" { kind = "test", at = "site_spec.lua:3", site = DEEP, tells = "a plan is always true: what it decides is not asserted",
  test = tests [[
  it("plans 16", function() assert(site:plan { "dense.json", pipeline = 16 }) end)
  it("rejects 32", function() assert(site:plan { "dense.json", pipeline = 32 }) end)]] }
case "test_wrong_verb" { kind = "test", at = "site_spec.lua:3", site = DEEP, tells = "reject is no outcome: rejected",
  test = tests [[
  it("rejects 32", function() assert.decided(site:plan { "dense.json", pipeline = 32 }, "reject", "deep") end)]] }
case "test_not_decided_typo" { kind = "test", at = "site_spec.lua:3", site = DEEP, tells = "no rule has the id deeep: the negated assertion holds whatever happens",
  test = tests [[
  it("lets 16 through", function() assert.is_not.decided(site:plan { "dense.json", pipeline = 16 }, "rejected", "deeep") end)]] }
case "test_option_misspelt" { kind = "test", at = "site_spec.lua:3", site = DEEP, tells = "no option pipelin: pipeline",
  test = tests [[
  it("rejects 32", function() assert.decided(site:plan { "dense.json", pipelin = 32 }, "planned") end)]] }
case "test_of_the_default" { kind = "test", at = "site.lua:2", site = DEEP, tells = "the tests load the default policy: no test reaches the site's rule",
  test = [[local site = require("pipeplan").policy()
describe("hall", function()
  it("plans 16", function() assert.decided(site:plan { "dense.json", pipeline = 16 }, "planned") end)
end)
]] }
case "test_in_a_loop_over_nothing" { kind = "test", at = "site_spec.lua:3", site = DEEP, tells = "the loop has no turn: nothing is asserted",
  test = tests [[
  it("rejects deep ones", function()
    for _, depth in pairs(({ pipelines = { 32, 64 } }).pipeline or {}) do
      assert.decided(site:plan { "dense.json", pipeline = depth }, "rejected", "deep")
    end
  end)]] }
case "test_far_from_the_limit" { kind = "test", at = "site.lua:2", tells = "over(16) would pass as well: neither 16 nor 32 is tried", site = [[site "hall"
reject { id = "deep", pipeline_parallel = over(32), message = "P {pipeline_parallel}" }
]],
  test = tests [[
  it("takes 4", function() assert.decided(site:plan { "dense.json", pipeline = 4 }, "planned") end)
  it("rejects 64", function() assert.decided(site:plan { "dense.json", pipeline = 64 }, "rejected", "deep") end)]] }

-- Layers ------------------------------------------------------------------------------------------------------------------------------------

local COMPANY = 'site "company"\nreject { id = "deep", pipeline_parallel = over(16), message = "P {pipeline_parallel}", final = true }\n'

case "final_loosened" { kind = "layer", at = "team.lua:2", stack = { "company.lua", "team.lua" }, tells = "deep of the company is final",
  files = { ["company.lua"] = COMPANY, ["team.lua"] = 'site "team"\ndisable { id = "deep", reason = "our model is deep" }\n' } }
case "final_parameter_loosened" { kind = "layer", at = "team.lua:2", stack = { "company.lua", "team.lua" }, tells = "the company's setting is final",
  files = { ["company.lua"] = 'site "company"\nset { max_pipeline_depth = 16, final = true }\n',
            ["team.lua"] = 'site "team"\nset { max_pipeline_depth = 32, reason = "our model is deep" }\n' } }
case "layers_turned_round" { kind = "layer", at = "team.lua:2", stack = { "team.lua", "company.lua" }, tells = "deep is defined in no earlier layer: the company's comes after",
  files = { ["company.lua"] = 'site "company"\nreject { id = "deep", pipeline_parallel = over(16), message = "P {pipeline_parallel}" }\n',
            ["team.lua"] = 'site "team"\nchange { id = "deep", pipeline_parallel = over(8) }\n' } }
case "parameter_that_no_rule_reads_any_more" { kind = "layer", at = "team.lua:2", stack = { "company.lua", "team.lua" },
  tells = "has no effect: the company changed too_deep to a number of its own",
  files = { ["company.lua"] = 'site "company"\nchange { id = "too_deep", pipeline_parallel = over(32) }\n',
            ["team.lua"] = 'site "team"\nset { max_pipeline_depth = 8 }\n' } }
case "enable_of_what_stands" { kind = "layer", tells = "short_run is not disabled: nothing to enable",
  site = [[site "hall"
enable { id = "short_run" }
]] }
case "change_of_a_disabled_rule" { kind = "layer", at = "team.lua:2", stack = { "company.lua", "team.lua" }, tells = "the company disables short_run: the change has no effect",
  files = { ["company.lua"] = 'site "company"\ndisable { id = "short_run", reason = "courses" }\n',
            ["team.lua"] = 'site "team"\nchange { id = "short_run", tokens = under "5B" }\n' } }
case "row_under_a_row_of_the_team" { kind = "layer", at = "company.lua:2", stack = { "company.lua", "team.lua" },
  tells = "the team's row stands above the company's and takes all of it",
  files = { ["company.lua"] = 'site "company"\nrow { id = "moe_here", architecture = "moe", try = { "dualpipev", "1f1b" } }\n',
            ["team.lua"] = 'site "team"\nrow { id = "all_here", gpus = at_least(8), try = { "1f1b" } }\n' } }
case "pin_of_nothing" { kind = "layer", tells = "the digest is not that of this default",
  site = [[site "hall"
pin { default = "deadbeef" }
]] }

-- What catches each, and a part of what is said. when_nil is no mistake here: a function that only compares fields is read as conditions, and
-- a condition on what is absent does not hold.
local answers = {
  gbytes_for_gbits = { "check", '400 Gb/s is "400Gbps"' },
  bare_bandwidth = { "check", "200 bytes per second" },
  bandwidth_in_bits = { "check", '400 Gb/s is "400Gbps"' },
  headroom_of_five = { "load", "5 is 500 %" },
  memory_in_gib_bare = { "check", "80 bytes" },
  gib_for_marketing_gb = { "check", "H100-SXM has 79.6 GiB" },
  bubble_in_percent = { "load", "15 is 1500 %" },
  step_in_milliseconds = { "check", "milliseconds?" },
  tokens_without_suffix = { "check", "15 tokens" },
  k_for_ki = { "check", "exactly that value" },
  parameters_in_billions = { "check", '"70B"' },
  tolerance_half_percent = { "check", "0.5 is 50 %" },
  days_as_hours = { "check", "more than a year" },
  percent_of_percent = { 'check', 'tells nothing' },
  when_in_gbits = { "check", "400 bytes per second" },
  when_in_percent = { "load", "15 is 1500 %" },
  equal_for_over = { "mutate", "pipeline_parallel = 32 → pipeline_parallel at least 32" },
  equal_days = { "check", "exactly that value" },
  reversed = { "mutate", "expert_parallel under 64 → expert_parallel under 63" },
  reversed_between = { "check", "can never hold" },
  list_for_between = { "mutate", "between 64 and 512" },
  multiple_turned_round = { "check", "which side is which?" },
  half_a_rank = { "load", "an integer is expected" },
  odd_in_quotes = { "load", "written without quotes" },
  true_in_quotes = { "load", "written without quotes" },
  parameter_of_another_unit = { "load", "'slow_link' in byte/s" },
  warn_turned_round = { "mutate", "microbatches_per_rank over 4 → microbatches_per_rank at most 4" },
  not_a_limit_but_always = { "check", "leaves hardly anything to plan" },
  dense_experts = { "check", "can never hold" },
  row_after_catch_all = { "check", "'ours_moe' never decides" },
  catch_all_of_a_site = { "check", "never decides" },
  reject_within_reject = { "check", "'deep_dense' changes nothing" },
  virtual_1f1b = { "check", "is not interleaved" },
  family_as_schedule = { "load", "schedule_family = 'zero_bubble'" },
  schedule_in_capitals = { "load", "did you mean '1f1b'" },
  fabric_in_capitals = { "load", "did you mean 'ethernet'" },
  accelerator_short = { "check", "it calls it 'H100-SXM'" },
  family_with_hyphen = { "check", "did you mean 'deepseek_v3'" },
  when_fabric_in_capitals = { "load", "did you mean 'infiniband'" },
  labels_as_table = { "load", "label_NAME" },
  model_type_for_field = { "load", "a rule says model_family" },
  parameter_misspelt = { "load", "did you mean 'gpus_per_node'" },
  id_twice = { 'load', 'that id stands already' },
  default_id_again = { "load", "a later layer writes change" },
  disable_misspelt = { "load", "did you mean 'short_run'" },
  change_of_a_parameter = { "load", "that is a parameter" },
  change_adds_condition_silently = { "load", "lets more plans through" },
  reason_of_blanks = { "load", "it is empty" },
  date_turned_round = { "load", "a date such as" },
  thirty_first_of_june = { "load", "there is no day" },
  expired = { "check", "expired on 2026-06-30" },
  wrong_century = { "check", "more than five years" },
  recommend_unknown = { "load", "data_parallel and" },
  recommend_itself = { "load", "which it refuses" },
  recommend_not_allowed = { "check", "recommends dualpipev" },
  placeholder_misspelt = { "load", "did you mean 'pipeline_parallel'" },
  placeholder_open = { "load", "a brace that belongs to no" },
  percent_d = { "load", "would be printed as it stands" },
  message_says_another_limit = { "check", 'its message says "at most 16"' },
  try_empty = { "load", "a list of schedules is expected" },
  prefer_within_five = { "load", '5 % is "5%"' },
  kernel_for_all = { "load", "it needs why" },
  invariant_says_what_holds = { "check", "an invariant says what no plan may be" },
  loosens_turned_round = { "check", "it loosens up" },
  parameter_outside_its_domain = { "load", "at least 1" },
  parameter_not_read = { "check", "no rule reads" },
  fallback_not_allowed = { "load", "left without a schedule" },
  rank_field_unknown = { "load", "it has bytes, idle, layers, stages" },
  any_for_every = { "check", "always holds" },
  when_no_return = { "check", "returned 0 values" },
  when_number = { "check", "returned a number" },
  when_field_misspelt = { "check", "did you mean 'pipeline_parallel'" },
  when_or_for_and = { "check", "says yes to all" },
  when_clock = { "check", "os is not available" },
  when_parameter_in_function = { "check", "write f.max_pipeline_depth" },
  helper_absent = { "load", "did you mean 'limits'" },
  helper_returns_nothing = { "load", "require returns true" },
  rules_named_as_tests = { "check", "it states rules" },
  rules_in_a_folder_below = { "check", "it states rules" },
  test_asserts_nothing = { "test", "it asserts nothing" },
  test_of_truth = { "mutate", "reject deep: deleted" },
  test_wrong_verb = { "test", "did you mean 'rejected'" },
  test_not_decided_typo = { "test", "did you mean 'deep'" },
  test_option_misspelt = { "test", "site_spec.lua:3: command line: no option --pipelin" },
  test_of_the_default = { "mutate", "no test loads" },
  test_in_a_loop_over_nothing = { "test", "it asserts nothing" },
  test_far_from_the_limit = { "mutate", "pipeline_parallel over 31" },
  final_loosened = { "load", "no later layer may loosen it" },
  final_parameter_loosened = { "load", "no later layer may loosen it" },
  layers_turned_round = { "load", "name that layer first" },
  parameter_that_no_rule_reads_any_more = { "check", "no rule decides by" },
  enable_of_what_stands = { "load", "it is not disabled" },
  change_of_a_disabled_rule = { "load", "it is disabled already" },
  row_under_a_row_of_the_team = { 'check', "'all_here', 'moe_here' take all of it" },
  pin_of_nothing = { "load", "16 digits" },
}
for _, one in ipairs(cases) do one.by, one.words = table.unpack(answers[one.id] or {}) end

return cases
