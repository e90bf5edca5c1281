-- SPDX-License-Identifier: Apache-2.0
-- `simulate --times FILE.json`: what each field does, against schedules of two ranks that are worked out by hand, and what is said of a
-- file that cannot be used.

require "pipeplan"
local cjson = require "cjson"
local program = require "program"

local function simulate(arguments, file)
  local name = os.tmpname()
  local handle = assert(io.open(name, "wb"))
  handle:write(file)
  handle:close()
  local result = program.run("simulate " .. arguments .. " --times " .. name)
  os.remove(name)
  result.stderr = result.stderr:gsub(name:gsub("%p", "%%%0"), "FILE")
  return result
end

local function value_of(arguments, file)
  local result = simulate(arguments .. " --format json", file)
  assert.equal(0, result.status, result.stderr)
  return cjson.decode(result.stdout)
end

local two = "1f1b --ranks 2 --microbatches 2"   -- rank 0: F0 F1 B0 B1, rank 1: F0 B0 F1 B1

describe("a times file", function()
  it("gives the times of each stage, with or without unit", function()
    -- F 1 and 2, B 2 and 4: rank 1 works from 1 to 13, F0 waited for; rank 0's B0 7–9, its B1 13–15
    for _, file in ipairs { '{"F": [1, 2], "I": 1, "W": [1, 3]}', '{"F": ["1s", "2000ms"], "I": "1e6 us", "W": ["1 s", "0.05 min"]}',
                            '{"F": [1, 2], "I": 7, "W": 7, "B": [2, 4]}' } do
      local value = value_of(two, file)
      assert.equal(15, value.makespan_seconds)
      assert.same({ 9, 3 }, value.idle_per_rank_seconds)
      assert.is_false(value.closed_form.exact)
    end
    assert.is_true(value_of(two, '{"F": [1, 1], "I": [1, 1], "W": 1}').closed_form.exact)
  end)

  it("gives a hop by latency, bandwidth and bytes, and --p2p goes before it", function()
    -- as above with hops of 0.25 + 25 / 100 = 0.5: rank 1's F0 from 1.5, its B0 to 7.5; rank 0's B0 8–10, B1 14–16
    local file = '{"F": [1, 2], "I": 1, "W": [1, 3], "p2p": {"latency": "250ms", "bandwidth": 100, "bytes": 25}}'
    assert.equal(16, value_of(two, file).makespan_seconds)
    assert.equal(15, value_of(two .. " --p2p 0", file).makespan_seconds)
    assert.equal(16, value_of(two .. " --p2p 500ms", file).makespan_seconds)
  end)

  it("gives what the ends take beside their layers", function()
    -- F 2 and 2, B 2 and 3: rank 0 F0 0–2, F1 2–4, B0 7–9, B1 12–14; rank 1 F0 2–4, B0 4–7, F1 7–9, B1 9–12
    local value = value_of(two, '{"F": 1, "I": 1, "W": 1, "first_stage": {"F": 1}, "last_stage": {"F": 1, "I": 1}}')
    assert.equal(14, value.makespan_seconds)
    assert.same({ 8, 10 }, value.busy_per_rank_seconds)
  end)

  it("gives the speed of each rank and what an action costs to start", function()
    assert.equal(15, value_of(two, '{"F": 1, "I": 1, "W": 1, "rank_speed": [1, "50%"]}').makespan_seconds)
    -- (M + P − 1)(F + B) with F 1.5 and B 2.5
    assert.equal(12, value_of(two, '{"F": 1, "I": 1, "W": 1, "launch": 0.5}').makespan_seconds)
  end)

  it("gives the time of each pair", function()
    -- rank 0: 0F0 3F0 0F1 3B0 (3F1;0B0) 3B1 0I1 0W1 and rank 1: 2F0 1F0 2F1 1B0 (1F1;2B0) 1B1 2I1 2W1. Both are at 5 s when the pairs
    -- start; rank 0's takes FB[3][chunk 0], rank 1's FB[1][chunk 1]: 4 s and 5 s. Rank 0's I waits for 1B1, 10–12, so for 1 s.
    local value = value_of("dualpipe --ranks 2 --microbatches 4", '{"F": 1, "I": 1, "W": 1, "FB": [[9, 9], [9, 5], [9, 9], [4, 9]]}')
    assert.equal(14, value.makespan_seconds)
    assert.same({ 1, 0 }, value.idle_per_rank_seconds)
    -- of one direction alone: FB[1] is also that of stage 3
    value = value_of("dualpipe --ranks 2 --microbatches 4", '{"F": 1, "I": 1, "W": 1, "FB": [9, 4]}')
    assert.same({ 0, 0 }, value.idle_per_rank_seconds)
    assert.equal(13, value.makespan_seconds)
  end)

  it("may give the times of pairs to a schedule that has none", function()
    local value = value_of(two, '{"F": 1, "I": 1, "W": 1, "FB": [[9], [9]]}')
    assert.equal(9, value.makespan_seconds)   -- (M + P − 1)(F + B)
  end)

  it("gives one time to all pairs of very many stages", function()
    -- F of all stages, then their B, and of the second microbatch each pair: on one rank there is no wait
    local value = value_of("interleaved_1f1b_overlap --ranks 1 --microbatches 2 --virtual 40000", '{"F": 1, "I": 1, "W": 1, "FB": 3}')
    assert.equal(0, value.bubble.fraction)
    assert.equal(2 * 40000 * 3, value.makespan_seconds)
    local result = simulate("interleaved_1f1b_overlap --ranks 1 --microbatches 2 --virtual 12000", '{"F": 1, "I": 1, "W": 1, "FB": ['
      .. ("[3],"):rep(11999) .. "[3]]}")
    assert.equal(2, result.status)
    assert.is_truthy(result.stderr:find("FB by both stages of 12000 with up to 12000 a rank is too large", 1, true), result.stderr)
  end)

  it("gives the bytes of activations, whose peaks are then printed", function()
    local value = value_of(two, '{"F": 1, "I": 1, "W": 1, "activation_bytes": ["1 GiB", 3e9]}')
    assert.same({ 2 * 2 ^ 30, 3e9 }, value.peak_activation_bytes)   -- rank 0 holds two chunks, rank 1 one
    assert.equal(cjson.null, value_of(two, '{"F": 1, "I": 1, "W": 1}').peak_activation_bytes)
    -- ZB-H1, rank 1: F0 I0 F1 W0 I1 W1: while F1 is stored W0 is pending: 10 + 4; freed at I: 10
    value = value_of("zb_h1 --ranks 2 --microbatches 2", '{"F": 1, "I": 1, "W": 1, "activation_bytes": 10, "pending_bytes": 4}')
    assert.equal(14, value.peak_activation_bytes[2])
    assert.equal(10, value.peak_activation_bytes_freed_at_i[2])
    assert.matches("\n +0  0 +6 s +3 s +33%.3 %% +2 +2 GiB\n",
                   simulate(two, '{"F": 1, "I": 1, "W": 1, "activation_bytes": "1 GiB"}').stdout)
  end)

  it("that cannot be used is answered in one line that names the file and the field, exit 2", function()
    for file, message in pairs {
      ['{"F": 1, "I": 1}'] = 'FILE: W is missing: its backward for the weights, a time such as "10us"',
      ['{"F": 1, "I": 1, "W": 1, "rank_speeds": 2}'] = "FILE: no field 'rank_speeds', did you mean 'rank_speed'?",
      ['{"F": [1, 2, 3], "I": 1, "W": 1}'] = "FILE: F has 3 entries: expected 2, one per stage",
      ['{"F": 1, "I": [1, -1], "W": 1}'] = 'FILE: I[1]: expected a time such as "10us", got -1: less than nothing',
      ['{"F": 1, "I": "soon", "W": 1}'] = 'FILE: I: expected a time such as "10us", got "soon"',
      ['{"F": 1, "I": "1GiB", "W": 1}'] = 'FILE: I: expected a time such as "10us", got "1GiB": that is bytes',
      ['{"F": 1, "I": null, "W": 1}'] = 'FILE: I: expected a time such as "10us", got null',
      ['{"F": 1, "I": [], "W": 1}'] = "FILE: I: an empty list",
      ['{"F": 1, "I": 1e10, "W": 1}'] = 'FILE: I: expected a time such as "10us", 0 or from 1e-15 to 1e+09, got 10000000000; nearest: 1e+09',
      ['{"F": 1, "I": 1, "W": 1, "FB": [[3, 3], [3]]}'] = "FILE: FB[0] has 2 entries: expected 1, one per chunk of its rank",
      ['{"F": 1, "I": 1, "W": 1, "FB": [3, [3]]}'] = "FILE: FB[1]: numbers and lists in one list",
      ['{"F": 1, "I": 1, "W": 1, "rank_speed": [1, 0]}'] =
        'FILE: rank_speed[1]: expected a fraction such as "8%" or 0.08 from 0.001 to 1000, got 0; nearest: 0.001',
      ['{"F": 1, "I": 1, "W": 1, "rank_speed": [1]}'] = "FILE: rank_speed has 1 entries: expected 2, one per rank",
      ['{"F": 1, "I": 1, "W": 1, "p2p": {"bandwidth": "400Gbps"}}'] = 'FILE: p2p.bytes is missing: of a message, bytes such as "80GiB"',
      ['{"F": 1, "I": 1, "W": 1, "p2p": {"bandwidth": 0, "bytes": 1}}'] =
        'FILE: p2p.bandwidth: expected a link speed such as "400Gbps" or "160GB/s" from 1 to 1e+18, got 0; nearest: 1',
      ['{"F": 1, "I": 1, "W": 1, "p2p": {"bandwidth": 3, "bytes": 0.5}}'] =
        'FILE: p2p.bytes: expected bytes such as "80GiB", 0 or from 1 to 1e+18, got 0.5; nearest: 1',
      ['{"F": 1, "I": 1, "W": 1, "first_stage": 3}'] = "FILE: first_stage: expected an object of times",
      ['{"F": 1, "I": 1, "W": 1, "pending_bytes": 3}'] = "FILE: pending_bytes without activation_bytes",
      ["[1, 1, 1]"] = "FILE: expected an object of times",
      ['{"F": 1'] = "FILE:1:8: expected ',' or '}', but the text ends",
      [""] = "FILE: empty file, expected JSON",
    } do
      local result = simulate(two, file)
      assert.equal(2, result.status, file)
      assert.equal("", result.stdout)
      assert.equal("pipeplan: " .. message .. "\n", result.stderr)
    end
    assert.equal("pipeplan: none.json: cannot be read: No such file or directory\n", program.run("simulate " .. two .. " --times none.json").stderr)
    -- both directions of DualPipe hold the same slices: a list is as long as one, or as both
    assert.equal("pipeplan: FILE: F has 3 entries: expected 2, one per stage (or 4, both directions)\n",
                 simulate("dualpipe --ranks 2 --microbatches 4", '{"F": [1, 1, 1], "I": 1, "W": 1}').stderr)
  end)

  it("has a JSON Schema that tells good files from bad", function()
    local script = [==[
import json, sys
from jsonschema import Draft202012Validator as Validator
schema = json.load(sys.stdin)
Validator.check_schema(schema)
one = {"F": 1, "I": "2ms", "W": [1, 2]}
for more in ({}, {"FB": [[1, 2], ["2s", 1]]}, {"p2p": 1}, {"p2p": {"bandwidth": "400Gbps", "bytes": 1}}, {"rank_speed": [1, 0.5]},
             {"first_stage": {"F": 1}}, {"activation_bytes": "1GiB"}):
    Validator(schema).validate(one | more)
for bad in ({}, {"F": 1}, one | {"F": -1}, one | {"F": "soon"}, one | {"f": 1}, one | {"rank_speed": 0}, one | {"p2p": {"bytes": 1}}, one | {"FB": []}):
    assert list(Validator(schema).iter_errors(bad)), bad
print("good")]==]
    local pipe = assert(io.popen(string.format("'%s' facts schema times | env -u LD_PRELOAD python3 -c '%s' 2>&1", os.getenv "PIPEPLAN", script)))
    local output = pipe:read("a")
    pipe:close()
    assert.equal("good\n", output)
  end)
end)
