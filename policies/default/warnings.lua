-- warnings.lua: what a plan is told about itself. Warnings never change what is planned.
--
-- severity = "note" for what is worth knowing and needs no action. Override with `change`, take out with `disable`, add your own with `warn`.

warn { id = "few_microbatches", microbatches_per_rank = under "microbatch_ratio_low",
       source = "https://arxiv.org/abs/2104.04473, 2.2.1: a bubble of (P-1)/(M+P-1), 11 % at 8 and 6 % at 16",
       message = "M/P is {microbatches_per_rank}; usual is {microbatch_ratio_low} to {microbatch_ratio_high}. It moves with batch × TP × CP / (GPUs × microbatch size), not with P" }
warn { id = "many_microbatches", severity = "note", microbatches_per_rank = over "microbatch_ratio_high",
       source = "https://arxiv.org/abs/2104.04473, 2.2.1: a bubble of (P-1)/(M+P-1), 11 % at 8 and 6 % at 16",
       message = "M/P is {microbatches_per_rank}; usual is {microbatch_ratio_low} to {microbatch_ratio_high}: room for a larger microbatch or more GPUs" }
warn { id = "host_memory_short", source = "https://arxiv.org/abs/2101.06840, 4.1", host_optimizer_bytes = over "host_memory",
       message = "the offloaded optimizer takes {host_optimizer_bytes} of a node that has {host_memory}" }
warn { id = "pipeline_avoidable", status = "planned", pipeline_avoidable_seconds = over(0),
       source = "https://arxiv.org/abs/2311.05610: the least model parallelism that fits is usually the fastest",
       message = "without a pipeline (P = 1, TP {avoidable_tensor_parallel}, sharded: {avoidable_sharding}) a step is {pipeline_avoidable_seconds} faster ({pipeline_avoidable_fraction} ± {pipeline_avoidable_error})" }

-- SPDX-License-Identifier: Apache-2.0
