-- SPDX-License-Identifier: Apache-2.0
-- zero_bubble.lua: what Qi et al. measured and calculated ("Zero Bubble Pipeline Parallelism", arXiv 2401.10241: its tables of
-- models, throughput and memory, bubble rates and profiled times). A100-80 SXM, eight a node, RoCE between nodes.
--
-- p, v              ranks; chunks a rank of the interleaved schedule, which has one layer a chunk
-- b                 samples a microbatch
-- m                 microbatches of the three runs; all lists have one entry a run
-- F, I, W, hop      profiled milliseconds of one stage, and of one message
-- samples           measured samples a second and GPU
-- zb_2p_rate        bubble rate of their scheduler at a limit of 2P: idle share of the longest stage's time. (Those of the
--                   handmade schedules are in tests/unit/simulate_test.c, to the last digit.)
--
-- few: fewer microbatches than ranks, by microbatches: measured samples of 1F1B and of ZB-1p at about equal memory.

return {
  { name = "1.5B", p = 8, v = 3, b = 6, m = { 24, 32, 64 },
    few = { [2] = { 3.56, 4.25 }, [4] = { 5.74, 6.92 }, [8] = { 8.26, 9.90 } },
    F = { 18.522, 18.513, 18.546 }, I = { 18.086, 18.086, 18.097 }, W = { 9.337, 9.331, 9.321 }, hop = { .601, .626, .762 },
    samples = { ["1f1b"] = { 11.8, 12.5, 13.6 }, interleaved = { 13.1, 13.4, 13.9 },
                zb_1p = { 12.9, 13.4, 14.2 }, zb_2p = { 14.5, 14.8, 14.9 } },
    zb_2p_rate = { .0433, .0039, .0026 } },
  { name = "6.2B", p = 8, v = 4, b = 3, m = { 24, 32, 64 },
    few = { [2] = { 1.04, 1.33 }, [4] = { 1.69, 2.16 }, [8] = { 2.45, 3.07 } },
    F = { 29.718, 29.802, 29.935 }, I = { 29.444, 29.428, 29.621 }, W = { 19.927, 19.530, 19.388 }, hop = { .527, .577, .535 },
    samples = { ["1f1b"] = { 3.50, 3.70, 4.03 }, interleaved = { 4.01, 4.08, 4.19 },
                zb_1p = { 3.88, 4.00, 4.20 }, zb_2p = { 4.32, 4.35, 4.39 } },
    zb_2p_rate = { .0029, .0022, .0010 } },
  { name = "14.6B", p = 16, v = 3, b = 1, m = { 48, 64, 128 },
    few = { [4] = { .39, .52 }, [8] = { .65, .85 }, [16] = { .95, 1.25 } },
    F = { 11.347, 11.307, 11.325 }, I = { 11.248, 11.254, 11.308 }, W = { 8.132, 8.101, 8.109 }, hop = { .377, .379, .378 },
    samples = { ["1f1b"] = { 1.40, 1.49, 1.64 }, interleaved = { 1.54, 1.59, 1.66 },
                zb_1p = { 1.61, 1.67, 1.76 }, zb_2p = { 1.81, 1.83, 1.85 } },
    zb_2p_rate = { .0066, .0054, .0028 } },
  { name = "28.3B", p = 32, v = 2, b = 1, m = { 96, 128, 256 },
    few = {},
    F = { 10.419, 10.408, 10.402 }, I = { 10.207, 10.204, 10.248 }, W = { 7.715, 7.703, 7.698 }, hop = { .408, .408, .460 },
    samples = { ["1f1b"] = { .76, .80, .88 }, interleaved = { .82, .85, .90 },
                zb_1p = { .87, .90, .96 }, zb_2p = { .99, 1.00, 1.00 } },
    zb_2p_rate = { .0038, .0029, .0018 } },
}
