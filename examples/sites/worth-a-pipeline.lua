-- SPDX-License-Identifier: Apache-2.0
-- worth-a-pipeline.lua: a site whose teams run sharded data parallelism, and take a pipeline only where it is faster: its schedules, its
-- uneven stages and its checkpoints are work that has to pay.

site "worth-a-pipeline"

refuse { id = "not_worth_a_pipeline", pipeline_avoidable_seconds = at_least(0), owner = "training systems",
         why = "days of an engineer for every new layout", recommend = "data_and_tensor_parallel",
         message = "without a pipeline a step is {pipeline_avoidable_fraction} shorter" }
