-- invariants.lua: what no planned result may ever satisfy. They guard the other files: a plan for which one of these holds is a mistake in
-- the policy, not in the spec.
--
-- `unless` names the rule that, visibly loosened, permits it. Add your own with `invariant { id = "…", status = "planned", … }`.

invariant { id = "never_over_memory",         status = "planned", peak_bytes = over "device_bytes" }
invariant { id = "never_dualpipe_without_ep", status = "planned", schedule = "dualpipe", expert_parallel = at_most(1), unless = "dualpipe_without_ep" }
invariant { id = "never_dualpipe_slow",       status = "planned", schedule = "dualpipe", expert_link = at_most "slow_link", unless = "slow_interconnect" }
invariant { id = "never_odd_microbatches",    status = "planned", schedule = { "dualpipe", "dualpipev" }, microbatches = odd, unless = "odd_microbatches" }

-- SPDX-License-Identifier: Apache-2.0
