-- SPDX-License-Identifier: Apache-2.0
-- formats.lua: the formats in which a plan is written as a framework's launch, and the framework that each is for.

return {
  names = { "megatron", "bridge", "flagscale", "torchtitan", "deepspeed", "primus" },
  framework = { megatron = "megatron", bridge = "megatron-bridge", flagscale = "flagscale", torchtitan = "torchtitan",
                deepspeed = "deepspeed", primus = "primus" },
}
