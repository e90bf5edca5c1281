-- frontier-moe.lua: a site that trains large mixtures of experts and has rows of its own for them.

site "frontier-moe"

row    { id = "frontier", architecture = "moe", total_parameters = at_least "200B", expert_parallel = at_least(32),
         try = { "dualpipev", "dualpipe" }, owner = "training systems",
         why = "what our trainer runs in production", link = "https://arxiv.org/abs/2412.19437" }
row    { id = "narrow_experts", architecture = "moe", expert_parallel = at_most(4), try = { "interleaved_1f1b", "1f1b" },
         owner = "training systems", why = "there is little to hide behind two copies" }
reject { id = "experts_beyond_pod", expert_parallel = over(64), owner = "network", final = true,
         why = "a pod has 64 GPUs, and the links between pods are oversubscribed",
         message = "EP {expert_parallel}: an expert group stays in a pod of 64" }
change { id = "too_deep", final = true, owner = "training systems" }

-- SPDX-License-Identifier: Apache-2.0
