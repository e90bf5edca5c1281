-- pipeline-anyway.lua: plans a pipeline for a model that needs none, to hold the plan against runs of a small one.

site "pipeline-anyway"

disable { id = "fits_one_gpu", reason = "the runs to compare with are of a small model" }

-- SPDX-License-Identifier: Apache-2.0
