-- SPDX-License-Identifier: Apache-2.0
-- policy.lua: few schedules, and a pipeline for models that need none, so that a plan takes milliseconds under a fuzzer.

site "fuzz"

disable { id = "fits_one_gpu", reason = "the models that are fuzzed are small" }
set { schedules = { "gpipe", "1f1b", "zb_h1" }, reason = "a plan per input" }
