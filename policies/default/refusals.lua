-- refusals.lua: what is advised against, with what to do instead.
--
-- A refusal that names a schedule takes that schedule out of the row's list and puts its recommendation in the same place: the plan is made,
-- and says so. A refusal that names none refuses the plan (exit 1) and recommends a layout without a pipeline.
-- Order matters: of several refusals of one schedule the first's recommendation stands first. Rules of a later policy come before these.
-- `disable` and `change` work as for hard rejects.

refuse { id = "slow_interconnect", schedule = "dualpipe", expert_link = at_most "slow_link", recommend = "dualpipev",
         source = "https://github.com/deepseek-ai/DeepEP: measured at 400 Gb/s a GPU",
         message = "{expert_link} per GPU is too slow to hide the all-to-all behind two copies" }
refuse { id = "no_alltoall_kernel", schedule = "dualpipe", alltoall_kernel = false, recommend = "zero_bubble",
         source = "https://arxiv.org/abs/2412.19437, 3.2.2",
         message = "no custom all-to-all kernel for {fabric}: nothing to overlap with (DualPipeV wants the same kernel)" }
refuse { id = "short_run", tokens = under "short_run_tokens", pipeline_parallel = over(1),
         source = "https://arxiv.org/abs/2203.15556: 20 tokens a parameter; 1 B train 50 M parameters",
         recommend = "data_and_tensor_parallel", message = "{tokens} tokens are too few to be worth a pipeline" }

-- SPDX-License-Identifier: Apache-2.0
