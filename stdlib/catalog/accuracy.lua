-- accuracy.lua: how far off the estimates may be. Of time assumptions: absolute times depend on what kernels reach; in the ratio of two
-- schedules that error cancels, and what is left is the share of F, I, W and of the overlap. Of memory from tests/oracles/table.lua: of 69
-- measured peaks all but one lie within it, half of them within 1.1 %.
--
-- time_fraction        of a step's seconds, and of everything counted in them
-- memory_fraction      of a rank's bytes
-- comparison_fraction  of the ratio of two schedules' step times: what is closer than this is a tie

return { time_fraction = 0.25, memory_fraction = 0.10, comparison_fraction = 0.05, source = "the former assumed, the latter from 69 measured peaks" }
