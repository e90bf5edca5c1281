-- decision_table.lua: which schedule to try. Top to bottom, the first row that holds decides.
--
-- The first name of a row is wanted. The others may replace it when it has no plan, or only one slower than the fastest of all by more than
-- wanted_tolerance (or a row's own within = "10%", or "any"): then the fastest of them is planned, and the plan says why. A row that reads
-- a field of the candidate (expert_parallel) is a row for plans like that; it makes none.
-- A policy of your own adds rows above these with `row { id = "…", … }`, and alters one of these with `change { id = "dense", … }`.

row { id = "small_run",   gpus = under "small_run_gpus",            try = { "1f1b", "interleaved_1f1b" },
      source = "https://arxiv.org/abs/2104.04473, 2.2" }
row { id = "moe_with_ep", source = "https://arxiv.org/abs/2412.19437, 3.2.1", architecture = "moe", expert_parallel = over(1),
                                                     try = { "dualpipe", "dualpipev", "zero_bubble", "interleaved_1f1b_overlap", "interleaved_1f1b", "1f1b" } }
row { id = "dense",       gpus = under "large_dense_gpus",          try = { "zero_bubble", "interleaved_1f1b", "1f1b" },
      source = "https://arxiv.org/abs/2401.10241" }
row { id = "dense_large", gpus = at_least "large_dense_gpus", alltoall_fraction = under "heavy_alltoall_fraction",
      source = "https://github.com/deepseek-ai/DualPipe, DualPipeV",
                                                                                   try = { "dualpipev", "zero_bubble", "interleaved_1f1b", "1f1b" } }
row { id = "otherwise",                                             try = { "zero_bubble", "interleaved_1f1b", "1f1b" },
      source = "https://arxiv.org/abs/2401.10241" }

-- SPDX-License-Identifier: Apache-2.0
