-- aws-p5.lua: a cluster of p5 instances (8 H100, EFA). UCCL-EP in production to 64 ranks; smaller runs than usual count as large.

site "aws-p5"

set     { small_run_gpus = 64 }
kernel  { id = "uccl_ep_wide", recommend = "uccl_ep", fabric = "efa", expert_parallel = at_most(64), why = "in production here" }
disable { id = "odd_microbatches", reason = "our DualPipeV takes odd M", expires = "2027-06-30" }
row     { id = "long_context", sequence_length = at_least "128Ki", try = { "zb_v", "zb_h1" } }
change  { id = "moe_with_ep", try = { "dualpipev", "zb_h1" } }

-- SPDX-License-Identifier: Apache-2.0
