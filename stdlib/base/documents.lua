-- SPDX-License-Identifier: Apache-2.0
-- documents.lua: the kinds of JSON that pipeplan writes and reads, with the version of each. A document says in "$schema" what it is, a
-- JSON Schema in "$id"; a version goes up when a field is renamed, leaves or means something else, not when one is added.

local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"

local documents = {}

documents.versions = {
  calibration = 1, -- what plan --keep writes and plan --calibration reads
  changes = 1,     -- policy diff
  comparison = 1,  -- plan --compare
  decision = 1,    -- a line of plan --record
  evaluation = 1,  -- policy eval
  facts = 1,       -- facts TOPIC
  kernels = 1,     -- what plan --kernels reads
  findings = 1,    -- policy check
  lint = 1,        -- lint
  monitoring = 1,  -- monitor
  mutants = 1,     -- policy mutate
  phases = 1,      -- plan --phases
  plan = 1,
  policy = 1,      -- policy show
  profile = 1,
  simulation = 1,  -- simulate
  spec = 1,
  tests = 1,       -- policy test
  values = 1,      -- policy eval -e
  times = 1,       -- what simulate --times reads
  verification = 1,  -- plan --verify
}

-- "urn:pipeplan:plan:1"
function documents.id(kind)
  return string.format("urn:pipeplan:%s:%d", kind, assert(documents.versions[kind], kind))
end

-- The JSON text of an object as a document of that kind. Options as json.encode.
function documents.encode(kind, object, options)
  return json.encode(lists.with(object, { ["$schema"] = documents.id(kind) }), options)
end

-- Fails for a document that says in "$schema" that it is of another kind or version. One that says nothing, or names another's schema
-- for an editor, may be what it is taken for.
function documents.check(object, kind, place)
  local named = type(object) == "table" and object["$schema"]
  local other, version = (type(named) == "string" and named or ""):match "^urn:pipeplan:([^:]+):([^:]+)$"
  if not other or named == documents.id(kind) then return end
  if other == kind then
    failure.usage("%s: $schema is %s: this pipeplan reads version %d of a %s, not %s", place, named, documents.versions[kind], kind,
                  version)
  end
  failure.usage("%s: $schema is %s: expected a %s (%s)", place, named, kind, documents.id(kind))
end

return documents
