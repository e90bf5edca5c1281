-- hard_rejects.lua: plans that are never made. A candidate for which one of these holds is dropped; a spec that leaves nothing else is
-- rejected (exit 1) with the message.
--
-- `disable { id = "odd_microbatches", reason = "…", expires = "2027-06-30" }` in a policy of your own takes one out, `change` narrows or
-- widens it. Both need a reason when they let more plans through; the plan names every such rule in its first lines.

reject { id = "dualpipe_without_ep", schedule = "dualpipe", expert_parallel = at_most(1),
         source = "https://arxiv.org/abs/2412.19437, 3.2.1: what its pairs overlap is the all-to-all of experts",
         message = "DualPipe keeps two copies of every stage; without expert-parallel traffic to hide they buy nothing" }
reject { id = "too_deep", pipeline_parallel = over "max_pipeline_depth",
         source = "https://arxiv.org/abs/2104.04473, table 1: the deepest, of 1T parameters, is 64",
         message = "P {pipeline_parallel} is over {max_pipeline_depth} (bubble {bubble_fraction})" }
reject { id = "odd_microbatches", schedule = { "dualpipe", "dualpipev" }, microbatches = odd,
         source = "https://github.com/deepseek-ai/DualPipe, dualpipe.py, step()",
         message = "{schedule} needs an even number of microbatches, M is {microbatches}" }
reject { id = "fits_one_gpu", fits_one_gpu = true, pipeline_parallel = over(1), recommend = "data_parallel",
         source = "https://arxiv.org/abs/2104.04473, 3: data parallelism where a model fits",
         message = "the model fits one GPU ({one_gpu_bytes} of {device_bytes}): use data parallelism only" }

-- what the schedule itself needs
reject { id = "too_few_microbatches", schedule = { "dualpipe", "dualpipev" },
         source = "https://github.com/deepseek-ai/DualPipe, dualpipe.py and dualpipev.py, step()",
         microbatches_per_rank = under "min_microbatches_per_rank",
         message = "{schedule} needs M ≥ {min_microbatches_per_rank} P; M is {microbatches}, P {pipeline_parallel}; M/P does not depend on P" }
reject { id = "dualpipe_odd_depth", schedule = "dualpipe", pipeline_parallel = odd,
         source = "https://github.com/deepseek-ai/DualPipe, dualpipe.py, __init__()",
         message = "DualPipe pairs rank r with rank P-1-r: P must be even, it is {pipeline_parallel}" }
reject { id = "dualpipe_virtual", source = "https://github.com/flagos-ai/FlagScale/pull/1157", schedule = "dualpipe", virtual = over(1),
         message = "DualPipe does not go together with virtual stages, V is {virtual}" }
reject { id = "dualpipe_tied_embeddings", schedule = "dualpipe", tied_embeddings = true,
         source = "https://github.com/flagos-ai/FlagScale/pull/1157",
         framework = none_of { "deepseek-dualpipe" },
         message = "DualPipe as FlagScale has it needs untied embedding and output weights; DeepSeek's own package shares them" }

-- SPDX-License-Identifier: Apache-2.0
