-- accuracy.lua: how far off the estimates may be. Assumptions, until a table of measured runs says better: absolute times depend on what
-- kernels reach; in the ratio of two schedules that error cancels, and what is left is the share of F, I, W and of the overlap.
--
-- time_fraction        of a step's seconds, and of everything counted in them
-- memory_fraction      of a rank's bytes
-- comparison_fraction  of the ratio of two schedules' step times: what is closer than this is a tie

return { time_fraction = 0.25, memory_fraction = 0.10, comparison_fraction = 0.05, source = "assumed, not yet measured" }
