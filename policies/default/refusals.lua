-- refusals.lua: what is advised against, with what to do instead.
--
-- A refusal that names a schedule takes that schedule out of the row's list and puts its recommendation in the same place: the plan is made,
-- and says so. A refusal that names none refuses the plan (exit 1) and recommends a layout without a pipeline.
-- Order matters: of several refusals of one schedule the first's recommendation stands first. Rules of a later policy come before these.
-- `disable` and `change` work as for hard rejects.

refuse { id = "slow_interconnect", source = "R15", schedule = "dualpipe", expert_link = at_most "slow_link", recommend = "dualpipev",
         message = "{expert_link} per GPU is too slow to hide the all-to-all behind two copies" }
refuse { id = "no_alltoall_kernel", source = "R16", schedule = "dualpipe", alltoall_kernel = false, recommend = "zero_bubble",
         message = "no custom all-to-all kernel for {fabric}: nothing to overlap with (DualPipeV wants the same kernel)" }
refuse { id = "short_run", source = "R17", tokens = under "short_run_tokens", pipeline_parallel = over(1),
         recommend = "data_and_tensor_parallel", message = "{tokens} tokens are too few to be worth a pipeline" }
