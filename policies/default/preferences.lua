-- preferences.lua: what to choose where several plans are about as good. Applied in order; a later policy's come first.
--
-- within = a fraction  applied among the plans that come that close to the fastest; what is still left goes to the smaller P
-- within = "any"       applied to all survivors first, whatever their speed: those that match stay, when there are any. The plan says what
--                      that costs. None is so here.
-- Override with `change { id = "expert_parallel_for_moe", within = "5%" }`, take one out with `disable { id = "…" }`.

prefer { id = "expert_parallel_for_moe", architecture = "moe", expert_parallel = over(1), within = "wanted_tolerance",
         source = "https://github.com/NVIDIA/Megatron-LM, megatron/core/transformer/moe/README.md",
         why = "experts that are spread out need less memory than experts that are cut" }
prefer { id = "tensor_parallel_in_scale_up", tensor_parallel = at_most "scale_up_gpus", within = "wanted_tolerance",
         source = "https://arxiv.org/abs/2104.04473, takeaway 1",
         why = "tensor parallelism communicates in every layer and belongs on the fastest links" }
prefer { id = "frontier_moe_depth", architecture = "moe", total_parameters = at_least "frontier_parameters",
         source = "P 16 in https://arxiv.org/abs/2412.19437 (3.1) and https://arxiv.org/abs/2507.20534 (2.4)",
         pipeline_parallel = between("frontier_depth_low", "frontier_depth_high"), within = "tie_fraction" }
prefer { id = "shallow_on_small_cluster", gpus = under "small_run_gpus",
         source = "https://arxiv.org/abs/2104.04473, takeaway 1: tensor parallelism in a node first",
         pipeline_parallel = at_most "small_cluster_depth", within = "tie_fraction" }

-- SPDX-License-Identifier: Apache-2.0
