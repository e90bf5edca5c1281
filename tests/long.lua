-- SPDX-License-Identifier: Apache-2.0
-- long.lua: is this a long run? With PIPEPLAN_LONG=1 in the environment, tests that draw at random draw more, and all mutants of policies
-- are tried, where a run of minutes takes a part. The workflow of .github runs so once a week.

return os.getenv "PIPEPLAN_LONG" == "1"
