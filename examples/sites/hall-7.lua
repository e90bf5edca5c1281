-- hall-7.lua: a hall whose nodes are joined by Ethernet: pipelines stay at most 16 deep there.

site "hall-7"

set    { small_run_gpus = 64 }
reject { id = "deep_on_ethernet", fabric = "ethernet", pipeline_parallel = over(16),
         message = "P {pipeline_parallel}: over {fabric} at most 16 in this hall" }

-- SPDX-License-Identifier: Apache-2.0
