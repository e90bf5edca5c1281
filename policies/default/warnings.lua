-- warnings.lua: what a plan is told about itself. Warnings never change what is planned.
--
-- severity = "note" for what is worth knowing and needs no action. Override with `change`, take out with `disable`, add your own with `warn`.

warn { id = "few_microbatches", source = "R5", microbatches_per_rank = under "microbatch_ratio_low",
       message = "M/P is {microbatches_per_rank}; usual is {microbatch_ratio_low} to {microbatch_ratio_high}. It moves with batch × TP × CP / (GPUs × micro-batch), not with P" }
warn { id = "many_microbatches", source = "R5", severity = "note", microbatches_per_rank = over "microbatch_ratio_high",
       message = "M/P is {microbatches_per_rank}; usual is {microbatch_ratio_low} to {microbatch_ratio_high}: room for a larger micro-batch or more GPUs" }
warn { id = "host_memory_short", host_bytes = over "host_memory",
       message = "the offloaded optimizer takes {host_bytes} of a host that has {host_memory}" }
warn { id = "pipeline_avoidable", source = "R21", pipeline_avoidable_seconds = over(0),
       message = "without a pipeline (P = 1, TP {avoidable_tensor_parallel}) a step is {pipeline_avoidable_seconds} faster" }
