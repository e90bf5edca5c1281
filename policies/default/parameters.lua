-- parameters.lua: every number and list that the default rules refer to by name.
--
-- Override one with `set { small_run_gpus = 64 }` in a policy of your own, or with `--set small_run_gpus=64` on the command line.
-- `loosens` is the direction in which moving the value lets more plans through: such a move needs a reason, and the plan says so in its
-- first lines. "none": a matter of taste. A value may be written with its unit ("200Gbps", "8%", "1B"). `at_least` and `at_most` say what it can
-- be, where that is not what its unit says: a fraction is from 0 to 1, other numbers are at least 0, and what is counted is whole.

-- the decision table
parameter { id = "small_run_gpus",            value = 100,       unit = "gpu",      loosens = "none", meaning = "under this many GPUs a run is small" }
parameter { id = "large_dense_gpus",          value = 500,       unit = "gpu",      loosens = "none", meaning = "from this many GPUs on a dense run is large" }
parameter { id = "heavy_alltoall_fraction",   value = "10%",     unit = "fraction", loosens = "none", at_most = "1000%", meaning = "all-to-all seconds / ideal step, from which the all-to-all is heavy" }
parameter { id = "wanted_tolerance",          value = "5%",      unit = "fraction", loosens = "none", at_most = "1000%", meaning = "how much slower than the fastest plan the wanted schedule, and what is preferred, may be" }
parameter { id = "schedules",                 value = { "gpipe", "1f1b", "interleaved_1f1b", "interleaved_1f1b_overlap", "zb_h1", "zb_h2", "zb_v", "zb_auto",
                                                                           "dualpipe", "dualpipev", "interleaved_zero_bubble", "looped_bfs" },
                                                                 unit = "schedule", loosens = "none", meaning = "what may be planned at all; a site cuts this down to what its framework runs" }
parameter { id = "zero_bubble_members",       value = { "zb_h1", "zb_v", "zb_h2", "zb_auto" },
                                                                 unit = "schedule", loosens = "none", meaning = "what zero_bubble stands for: the fastest that fits, in a tie the earlier" }

-- rejects and refusals
parameter { id = "max_pipeline_depth",        value = 64,        unit = "rank",     loosens = "up",   at_least = 1, meaning = "deeper pipelines are rejected" }
parameter { id = "min_microbatches_per_rank", value = 2,         unit = "1",        loosens = "down", meaning = "M / P that DualPipe and DualPipeV need: their steady phase" }
parameter { id = "slow_link",                 value = "200Gbps", unit = "byte/s",   loosens = "down", meaning = "at or below this, per GPU, DualPipe is refused" }
parameter { id = "short_run_tokens",          value = "1B",      unit = "token",    loosens = "down", meaning = "below this a run is too short to plan a pipeline for" }
parameter { id = "memory_headroom",           value = "8%",      unit = "fraction", loosens = "down", meaning = "share of the device's memory that a plan must leave free" }
parameter { id = "tight_fraction",            value = "95%",     unit = "fraction", loosens = "none", meaning = "of the memory that a plan may fill: from there on it fits tightly" }

-- preferences and warnings
parameter { id = "tie_fraction",              value = "1%",      unit = "fraction", loosens = "none", at_most = "1000%", meaning = "step times this close are equal" }
parameter { id = "small_cluster_depth",       value = 4,         unit = "rank",     loosens = "none", at_least = 1, meaning = "usual depth on a small cluster" }
parameter { id = "frontier_depth_low",        value = 16,        unit = "rank",     loosens = "none", at_least = 1, meaning = "usual depth of a frontier MoE, from" }
parameter { id = "frontier_depth_high",       value = 32,        unit = "rank",     loosens = "none", at_least = 1, meaning = "usual depth of a frontier MoE, to" }
parameter { id = "frontier_parameters",       value = "200B",    unit = "1",        loosens = "none", meaning = "an MoE of this size is a frontier one" }
parameter { id = "microbatch_ratio_low",      value = 8,         unit = "1",        loosens = "none", meaning = "M / P: warn below" }
parameter { id = "microbatch_ratio_high",     value = 16,        unit = "1",        loosens = "none", meaning = "M / P: note above" }

-- how layers are split over stages
parameter { id = "split_tie_fraction",        value = "0.5%",    unit = "fraction", loosens = "none", meaning = "splits whose steps are this close are equal, and the one that takes less memory is taken" }
parameter { id = "split_gain_fraction",       value = "1%",      unit = "fraction", loosens = "none", meaning = "of a step, that layers on early ranks must win for the memory they cost there" }
parameter { id = "split_overfull_fraction",   value = "15%",     unit = "fraction", loosens = "none", at_most = "1000%", meaning = "over its usable memory, up to which layers are moved off a rank to make it fit" }

-- what the spec leaves out
parameter { id = "default_batch_tokens",      value = "16Mi",    unit = "token",    loosens = "none", at_least = 1, meaning = "tokens of one step when the spec gives no batch" }
parameter { id = "context_rank_tokens",       value = 4096,      unit = "token",    loosens = "none", at_least = 1, meaning = "context parallelism that the spec leaves free cuts no sequence into shorter pieces" }

-- of the recipe, where the spec leaves it out: in the order in which equals are preferred
parameter { id = "micro_batch_choices",       value = { 1, 2, 4, 8 },
                                                                 unit = "microbatch", loosens = "none", meaning = "sequences of a microbatch that are tried" }
parameter { id = "recompute_choices",         value = { "none", "selective", "modules", "full" },
                                                                 unit = "recompute", loosens = "none", meaning = "sets of what is computed again that are tried; modules: norms, activations and MLA's up-projection" }
parameter { id = "sharding_choices",          value = { "optimizer", "gradients", "parameters" },
                                                                 unit = "sharding", loosens = "none", meaning = "what data parallelism shards that is tried, as far as the framework does" }
parameter { id = "idle_gpus",                 value = "50%",     unit = "fraction", loosens = "none", meaning = "of all GPUs, that may be left idle where fewer are faster" }

-- the runs of a shortlist (docs/measuring.md)
parameter { id = "measured_warmup_steps",     value = 10,        unit = "step",     loosens = "none", at_most = 999999, meaning = "first steps of a measured run that are left out" }
parameter { id = "measured_least_steps",      value = 10,        unit = "step",     loosens = "none", at_least = 3, at_most = 1000000, meaning = "steps behind them, of fewer no run says anything" }

-- the rollback paragraph
parameter { id = "rollback_window_steps",     value = 1000,      unit = "step",     loosens = "none", at_least = 1, at_most = 1000000, meaning = "steps over which utilisation is averaged" }
parameter { id = "rollback_warmup_steps",     value = 50,        unit = "step",     loosens = "none", at_most = 999999, meaning = "first steps left out of that window" }
parameter { id = "rollback_fallback",         value = { "zero_bubble", "interleaved_1f1b", "1f1b" },
                                                                 unit = "schedule", loosens = "none", meaning = "simpler schedules to roll back to: the first that fits" }

-- SPDX-License-Identifier: Apache-2.0
