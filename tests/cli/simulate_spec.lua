-- SPDX-License-Identifier: Apache-2.0
-- `pipeplan simulate` as a user runs it: what is on stdout, on stderr, and the exit status.

require "pipeplan"
local cjson = require "cjson"

local program = assert(os.getenv("PIPEPLAN"))

local function simulate(arguments, sink)
  local out, err = os.tmpname(), os.tmpname()
  local _, _, status = os.execute(string.format("%s simulate %s >%s 2>%s", program, arguments, sink or out, err))
  local function read_and_remove(name)
    local file = assert(io.open(name, "rb"))
    local text = file:read("a")
    file:close()
    os.remove(name)
    return text
  end
  return { out = read_and_remove(out), err = read_and_remove(err), status = status }
end

local function has(text, part)
  assert.is_truthy(text:find(part, 1, true), "no '" .. part .. "' in:\n" .. text)
end

describe("pipeplan simulate", function()
  -- the figure in DeepSeek's DualPipe README
  it("prints makespan 66, idle 6 and peak 9 for DualPipe on 8 ranks with 20 microbatches", function()
    local result = simulate "dualpipe --ranks 8 --microbatches 20 --times 1,1,1,3"
    assert.equal(0, result.status)
    assert.equal("", result.err)
    has(result.out, "makespan         66 s")
    has(result.out, "idle             6 s on every rank")
    has(result.out, "closed form      6 s, exact here")
    for rank = 0, 7 do assert.matches("\n +" .. rank .. "  %d+,%d+ +60 s +6 s +9%.09 %% +9 +9\n", result.out) end
    has(result.out, "rank 0 FFFFFFFfiwfiwfiwf7&3...4&08&45&19&56&2b6.7&3b7.8&4b8.9&5b9IWIWIWIW\n")
  end)

  -- Qi et al. 2024, arXiv 2401.10241, section 3.1: 2p is the limit of ZB-2p. The table of sail-sg's Hugging Face space on V schedules (Qi et al.
  -- 2024, arXiv 2405.15362): V-Half holds (p + 2) // 2 microbatches, V-Min (p + 4) // 3, of two chunks each.
  it("says how many chunks a rank may hold where that is what a schedule is planned under", function()
    has(simulate("zb_auto --ranks 4 --microbatches 8").out, "ZB auto, 4 ranks, 8 microbatches, at most 8 chunks held; per chunk")
    has(simulate("zb_auto --ranks 4 --microbatches 8 --limit 4").out, "at most 4 chunks held;")
    local function limit_of(arguments) return cjson.decode(simulate(arguments .. " --format json").out).limit end
    assert.equal(6, limit_of "zb_auto --ranks 4 --microbatches 8 --limit 6")
    assert.equal(cjson.null, limit_of "zb_h2 --ranks 4 --microbatches 8")
    for ranks = 3, 8 do
      assert.equal(2 * ((ranks + 2) // 2), limit_of("v_half --microbatches 16 --ranks " .. ranks))
      assert.equal(2 * ((ranks + 4) // 3), limit_of("v_min --microbatches 16 --ranks " .. ranks))
    end
  end)

  it("draws the 1F1B timeline of 4 ranks and 8 microbatches as textbooks do", function()
    local result = simulate "1f1b --ranks 4 --microbatches 8"
    has(result.out, "rank 0 F0F1F2F3............B0--F4B1--F5B2--F6B3--F7B4--..B5--..B6--..B7--\n")
    has(result.out, "rank 3 ......F0B0--F1B1--F2B2--F3B3--F4B4--F5B5--F6B6--F7B7--............\n")
    has(result.out, "1 − Σ busy / (P × makespan)")
  end)

  it("shows a bubble of 3/35 for 1F1B on 4 ranks with 32 microbatches", function()
    has(simulate("1f1b --ranks 4 --microbatches 32").out, "bubble           8.57 %")
    local value = cjson.decode(simulate("1f1b --ranks 4 --microbatches 32 --format json").out)
    assert.is_true(math.abs(value.bubble.fraction - 3 / 35) < 1e-12)
  end)

  it("writes the documented JSON", function()
    local result = simulate "dualpipe --ranks 8 --microbatches 20 --times 1,1,1,2.5 --format json"
    assert.equal(0, result.status)
    local value = cjson.decode(result.out)
    local names = {}
    for name in pairs(value) do names[#names + 1] = name end
    table.sort(names)
    assert.same({ "$schema", "bubble", "busy_per_rank_seconds", "closed_form", "communication", "finding", "held_bytes",
                  "host_wait_per_rank_seconds", "hosts_ahead_seconds", "idle_per_rank_seconds",
                  "legal", "limit", "makespan_seconds", "max_idle_seconds", "max_span_seconds", "microbatches", "min_idle_seconds", "pairs",
                  "peak_activation_bytes", "peak_activation_bytes_freed_at_i", "peak_activations", "peak_activations_freed_at_i",
                  "peak_bytes", "peak_bytes_unknown", "profile", "queues", "ranks", "receive_buffers", "runtime", "schedule",
                  "span_per_rank_seconds", "step_seconds", "times", "virtual" }, names)
    for _, name in ipairs { "communication", "held_bytes", "pairs", "peak_bytes", "peak_bytes_unknown", "profile", "queues", "step_seconds" } do
      assert.equal(cjson.null, value[name])
    end
    assert.is_true(value.legal)
    assert.same({ 3.5, 4, 4.5, 4.5, 4.5, 4.5, 4, 3.5 }, value.idle_per_rank_seconds)
    assert.equal("mean_idle", value.bubble.definition)
    assert.equal(4.5, value.closed_form.seconds)
    assert.is_true(value.closed_form.exact)
    assert.same({ F = 1, I = 1, W = 1, FB = 2.5, p2p = 0 }, value.times)
    assert.same({ 9, 9, 9, 9, 9, 9, 9, 9 }, value.peak_activations)
  end)

  -- Two ranks by hand in tests/unit/runtime_test.c: a forward waits for the send of a backward that it is posted with.
  it("has the order of messages of a framework's runtime", function()
    local two = "1f1b --ranks 2 --microbatches 2 --p2p 0.5 --format json"
    local value = cjson.decode(simulate(two .. " --runtime torch-single").out)
    assert.equal(10.5, value.makespan_seconds)
    assert.equal("torch-single", value.runtime)
    assert.is_false(value.closed_form.exact)
    assert.equal(10, cjson.decode(simulate(two).out).makespan_seconds)
    local result = simulate "zb_h1 --ranks 2 --microbatches 2 --runtime torch-single"
    assert.equal(1, result.status)
    assert.is_truthy(result.err:find("engine.runtime: torch-single runs gpipe and 1f1b, not zb_h1", 1, true))
    result = simulate "1f1b --ranks 2 --microbatches 2 --runtime torch"
    assert.equal(2, result.status)
    assert.is_truthy(result.err:find("--runtime", 1, true))
  end)

  -- 1F1B at F 1, B 2: rank r starts at r and ends 2r before rank 0, which ends at (M + P − 1)(F + B) = 33
  it("writes the bubble by its three definitions, and what each rank does", function()
    local value = cjson.decode(simulate("1f1b --ranks 4 --microbatches 8 --format json").out)
    assert.same({ 24, 24, 24, 24 }, value.busy_per_rank_seconds)
    assert.same({ 33, 30, 27, 24 }, value.span_per_rank_seconds)
    assert.same({ definition = "mean_idle", fraction = 9 / 33, max_idle_fraction = 9 / 33, mean_idle_seconds = 9, max_idle_seconds = 9,
                  span_seconds = 9 }, value.bubble)
    -- zero bubble by the papers' definition, (P − 1) F by the clock (Qi et al. 2401.10241, ZB-H2 at F = I = W)
    value = cjson.decode(simulate("zb_h2 --ranks 4 --microbatches 8 --format json").out)
    assert.equal(0, value.bubble.span_seconds)
    assert.equal(3, value.bubble.max_idle_seconds)
  end)

  it("writes PyTorch's compute-only CSV, one row a rank, pairs kept", function()
    local result = simulate "dualpipev --ranks 2 --microbatches 4 --format csv"
    assert.equal("0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,(3F3;0B1)OVERLAP_F_B,3B3,0I2,0W2,0I3,0W3\n"
      .. "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,(2F3;1B1)OVERLAP_F_B,2B2,1B2,2I3,1I3,2W3,1W3\n", result.out)
  end)

  it("answers an illegal request with the rule and the nearest legal value, exit 1", function()
    local result = simulate "dualpipe --ranks 8 --microbatches 14"
    assert.equal(1, result.status)
    assert.equal("", result.out)
    has(result.err, "engine.too_few_microbatches")
    has(result.err, "nearest legal microbatches: 16")
    result = simulate "dualpipe --ranks 7 --microbatches 20 --format json"
    assert.equal(1, result.status)
    has(result.err, "engine.odd_depth")
    has(result.err, "nearest legal ranks: 6")
    local value = cjson.decode(result.out)
    assert.is_false(value.legal)
    assert.equal("engine.odd_depth", value.finding.id)
    assert.equal(cjson.null, value.makespan_seconds)
    assert.equal(1, simulate("zb_v --ranks 4 --microbatches 8 --virtual 3").status)
    assert.equal(1, simulate("interleaved_1f1b --ranks 4 --microbatches 10 --group 3").status)
    assert.equal(1, simulate("gpipe --ranks 4 --microbatches 1000000000").status)
  end)

  it("answers bad usage with one line and exit 2", function()
    for arguments, part in pairs {
      ["dualpip --ranks 8 --microbatches 20"] = "did you mean 'dualpipe'?",
      ["1f1b --microbatches 20"] = "--ranks",
      ["1f1b --ranks 0 --microbatches 20"] = "--ranks must be an integer from 1 to 2147483647, got '0'; nearest: 1",
      ["1f1b --ranks 4.5 --microbatches 20"] = "got '4.5'",
      ["1f1b --ranks four --microbatches 20"] = "got 'four'",
      ["1f1b --ranks 4 --microbatches -3"] = "'-3'",
      ["1f1b --ranks 4 --microbatches 99999999999999999999"] = "--microbatches",
      ["1f1b --ranks 4 --microbatches 8 --times 1,2"] = "--times: expected F,I,W or F,I,W,FB or a JSON file, got '1,2'",
      ["1f1b --ranks 4 --microbatches 8 --times 1,nan,1"] = '--times: expected a time such as "10us", got "nan"',
      ["1f1b --ranks 4 --microbatches 8 --times 1,-1,1"] = "got -1: less than nothing",
      ["1f1b --ranks 4 --microbatches 8 --times 1,1,,1"] = 'got ""',
      ["1f1b --ranks 4 --microbatches 8 --p2p 1e999"] = "--p2p",
      ["1f1b --ranks 4 --microbatches 8 --format gif"] = "--format",
      ["1f1b --ranks 4 --microbatches 8 --color sometimes"] = "--color",
      ["1f1b --ranks 4 --microbatches 8 --times 1,1e10,1"] = "0 or from 1e-15 to 1e+09, got 1e10; nearest: 1e+09",
      -- the error has the number that was given, and no other
      ["1f1b --ranks 4 --microbatches 2147483648"] = "--microbatches must be an integer from 1 to 2147483647, got '2147483648'; nearest: 2147483647",
      ["1f1b --ranks 9223372036854775807 --microbatches 8"] = "--ranks must be an integer from 1 to 2147483647, got '9223372036854775807'; nearest: 2147483647",
      ["1f1b --ranks 4 --microbatches 9223372036854775808"]
        = "--microbatches must be an integer from 1 to 2147483647, got '9223372036854775808'; nearest: 2147483647",
      ["1f1b --ranks 4 --microbatches 0"] = "--microbatches must be an integer from 1 to 2147483647, got '0'; nearest: 1",
      ["1f1b --ranks 4 --microbatches 8 --colour"] = "--colour",
    } do
      local result = simulate(arguments)
      assert.equal(2, result.status, arguments)
      assert.equal("", result.out, arguments)
      has(result.err, part)
      assert.matches("^pipeplan: [^\n]+\n$", result.err)
    end
  end)

  it("says that a closed form does not hold for hops that take time", function()
    local result = simulate "zb_h1 --ranks 4 --microbatches 8 --times 2,1,1 --p2p 0.1"
    has(result.out, "not exact here")
    assert.is_false(cjson.decode(simulate("zb_h1 --ranks 4 --microbatches 8 --p2p 0.1 --format json").out).closed_form.exact)
  end)

  it("gives the interval where DualPipe's closed form is not exact", function()
    local result = simulate "dualpipe --ranks 8 --microbatches 20 --times 2,3,1,5"
    has((result.out:gsub("%s+", " ")), "closed form 18 s, not exact here; the true value is 15 s to 18 s")
  end)

  it("draws any size into 100 columns", function()
    for _, arguments in ipairs { "zb_v --ranks 64 --microbatches 200", "gpipe --ranks 1 --microbatches 1", "1f1b --ranks 100 --microbatches 3",
                                 "1f1b --ranks 4 --microbatches 8 --times 0,0,0", "dualpipev --ranks 64 --microbatches 4096" } do
      local result = simulate(arguments)
      assert.equal(0, result.status, result.err)
      for line in result.out:gmatch("[^\n]+") do assert.is_true(utf8.len(line) <= 100, line) end
    end
  end)

  -- Bubbles of Narayanan et al. 2021, sections 2.2.1 and 2.2.2: (P − 1)(F + B), over V when interleaved; of Qi et al. 2401.10241:
  -- (P − 1)(F + I − W), and none in the span of ZB-H2. Held: M, P, P (1 + (P − 1) / (P V)) (Megatron), P and 2P − 1.
  it("puts several schedules side by side, at equal work of a rank", function()
    local result = simulate "gpipe,1f1b,interleaved_1f1b,zb_h1,zb_h2 --ranks 4 --microbatches 8 --virtual 2"
    assert.equal("", result.err)
    assert.equal(0, result.status)
    for _, row in ipairs { "GPipe +1 +33 s +27.3 %% +9 s +9 s +8 +8 +1", "1F1B +1 +33 s +27.3 %% +9 s +9 s +4 +4 +1",
                           "interleaved 1F1B +2 +28.5 s +15.8 %% +4.5 s +4.5 s +5.5 +5.5 +1", "ZB%-H1 +1 +27 s +11.1 %% +3 s +3 s +4 +4 +1",
                           "ZB%-H2 +1 +27 s +11.1 %% +3 s +0 s +7 +7 +1" } do
      assert.matches("\n" .. row .. "\n", result.out)
    end
    local value = cjson.decode(simulate("1f1b,zb_v --ranks 4 --microbatches 8 --times 2,2,2 --format json").out)
    assert.equal(1, value.simulations[2].times.F)   -- of one of its two chunks
    assert.equal("zb_v", value.simulations[2].schedule)
  end)

  it("says which of several schedules is not legal, exit 1", function()
    local result = simulate "gpipe,dualpipe --ranks 3 --microbatches 8"
    assert.equal(1, result.status)
    assert.matches("\nGPipe +1 +30 s ", result.out)
    assert.matches("\nDualPipe +not legal: engine.odd_depth\n$", result.out)
    assert.matches("nearest legal ranks: 2\n$", result.err)
    local value = cjson.decode(simulate("gpipe,dualpipe --ranks 3 --microbatches 8 --format json").out)
    assert.is_true(value.simulations[1].legal)
    assert.is_false(value.simulations[2].legal)
    assert.equal(2, simulate("gpipe,1f1b --ranks 3 --microbatches 8 --format svg").status)
    assert.equal(2, simulate("gpipe,1fb --ranks 3 --microbatches 8").status)
  end)

  it("writes to a file, whole or not at all", function()
    local name = os.tmpname()
    local result = simulate("1f1b --ranks 2 --microbatches 2 --format csv -o " .. name)
    assert.equal(0, result.status)
    assert.equal("", result.out .. result.err)
    local file = assert(io.open(name))
    assert.equal("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", file:read("a"))
    file:close()
    assert.equal(1, simulate("dualpipe --ranks 7 --microbatches 20 -o " .. name).status)
    os.remove(name)
    result = simulate "1f1b --ranks 2 --microbatches 2 -o /no/where.txt"
    assert.equal(2, result.status)
    assert.equal("pipeplan: cannot write /no/where.txt: No such file or directory\n", result.err)
    result = simulate "1f1b --ranks 2 --microbatches 2 -o /dev/full"  -- a device is written, not replaced
    assert.equal(2, result.status)
    assert.equal("pipeplan: cannot write /dev/full: No space left on device\n", result.err)
    result = simulate("1f1b --ranks 2 --microbatches 2", "/dev/full")
    assert.equal(2, result.status)
    assert.equal("pipeplan: cannot write to standard output: No space left on device\n", result.err)
  end)

  it("explains itself", function()
    local result = simulate "--help"
    assert.equal(0, result.status)
    has(result.out, "--microbatches")
  end)
end)
