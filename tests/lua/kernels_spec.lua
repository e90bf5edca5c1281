-- SPDX-License-Identifier: Apache-2.0
-- plan --kernels FILE: stdlib/input/kernels.lua, from times to the forms of engine/core/kernels.h, and through whole plans. Times are made here
-- from known forms; what comes back is compared with them.

require "pipeplan"
local cjson = require "cjson"
local files = require "policy_files"
local kernels = require "pipeplan.input.kernels"
local planning = require "planning"
local program = require "program"
local spec = require "pipeplan.input.spec"

local shipped = "tests/data/gpu/kernels_2xH200.json"
local card = { flops = 1000e12, flops_bf16 = 1000e12, memory_bandwidth = 4e12, precision = "bf16" }

local function write(read) return files.write("kernels.json", cjson.encode(read)) end
local function table_of(read)
  read.device = read.device or "NVIDIA H200"
  return write(read)
end
local function fitted(read, of) return kernels.read(table_of(read), of or card) end

local function near(expected, actual, share)
  assert.is_true(math.abs(actual / expected - 1) <= (share or 1e-9), string.format("expected %.6g, got %.6g", expected, actual))
end

-- A dense product: 2 m n (k + depth) FLOPs at a rate, and a floor. change(seconds, i) → what is told.
local function products(rate, depth, floor, change, precision)
  local list = {}
  for _, m in ipairs { 512, 2048, 8192 } do
    for _, n in ipairs { 1024, 4096, 16384 } do
      for _, k in ipairs { 1024, 4096, 8192 } do
        local seconds = 2 * m * n * (k + depth) / rate + floor
        list[#list + 1] = { m = m, n = n, k = k, precision = precision or "bf16", seconds = change and change(seconds, #list + 1) or seconds }
      end
    end
  end
  return list
end

-- Grouped products: each expert's rows are padded by half a tile of 128.
local function grouped(rate, depth, floor)
  local list = {}
  for _, experts in ipairs { 4, 16 } do
    for _, rows in ipairs { 4096, 16384 } do
      for _, shape in ipairs { { 1536, 4096 }, { 4096, 1536 } } do
        local flops = 2 * (rows + experts * 64) * shape[1] * (shape[2] + depth)
        list[#list + 1] = { experts = experts, rows = rows, n = shape[1], k = shape[2], precision = "bf16", seconds = flops / rate + floor }
      end
    end
  end
  return list
end

-- Causal attention: half of 4 length² heads head_dim, slower in short sequences and where few pieces of 128 queries fill the card.
local function attention(rate, half, fill, rate_back, half_back)
  local list = {}
  for _, length in ipairs { 2048, 4096, 8192 } do
    for _, heads in ipairs { 8, 32 } do
      local flops, filled = 2 * length * length * heads * 128, 1 + fill / (heads * length / 128)
      list[#list + 1] = { length = length, heads = heads, head_dim = 128, forward = flops / rate * (1 + half / length) * filled,
                          backward = 2.5 * flops / rate_back * (1 + half_back / length) * filled }
    end
  end
  return list
end

describe("the fit of measured kernels", function()
  it("finds rate, depth and floor of products", function()
    local device = fitted({ products = products(700e12, 64, 4e-6) }).device
    near(0.7, device.gemm_efficiency)
    assert.same({ 64, 4e-6 }, { device.product_depth, device.product_floor })
    device = fitted({ products = products(350e12, 0, 12e-6) }).device
    near(0.35, device.gemm_efficiency)
    assert.same({ 0, 12e-6 }, { device.product_depth, device.product_floor })
  end)

  it("finds those of grouped products, with the depth of dense ones", function()
    local device = fitted({ products = products(700e12, 32, 4e-6), grouped = grouped(500e12, 32, 20e-6) }).device
    near(0.5, device.grouped_gemm_efficiency)
    assert.same({ 128, 20e-6 }, { device.grouped_rows, device.grouped_floor })
  end)

  it("finds those of attention, forward and backward", function()
    local device = fitted({ attention = attention(600e12, 500, 200, 540e12, 1500) }).device
    near(0.6, device.attention_efficiency)
    near(540 / 600, device.attention_backward)
    assert.same({ 500, 200, 1500 }, { device.attention_half, device.attention_fill, device.attention_half_backward })
  end)

  it("takes the median of what element-wise kernels reach", function()
    local device = fitted({ moved = { { bytes = 1e8, seconds = 1e8 / 3e12 }, { bytes = 2e8, seconds = 2e8 / 3.2e12 },
                                      { bytes = 4e8, seconds = 4e8 / 1e12 } } }).device
    near(3 / 4, device.memory_efficiency)
  end)

  it("tells how far from the form the measurements are", function()
    assert.same({ "27 products within 0 %" }, fitted({ products = products(700e12, 64, 4e-6) }).notes)
    -- every other one 8 % above the form, the rest 8 % below: the mean of |log| is (log 1.08 - log 0.92) / 2 = 0.080
    local noisy = fitted { products = products(700e12, 64, 4e-6, function(seconds, i) return seconds * (i % 2 == 0 and 1.08 or 0.92) end) }
    assert.same({ "27 products within 8 %" }, noisy.notes)
    near(0.7, noisy.device.gemm_efficiency, 0.09)
  end)

  it("takes no harm of noise: what it predicts is within that noise", function()
    local state = 1
    local function noise(seconds)
      state = state * 1103515245 + 12345 & 0x7fffffff   -- of C's rand: the same on each machine
      return seconds * (1 + 0.06 * (state / 0x7fffffff - 0.5))
    end
    local device = fitted({ products = products(700e12, 64, 4e-6, noise) }).device
    for _, shape in ipairs(products(700e12, 64, 4e-6)) do
      local flops = 2 * shape.m * shape.n * (shape.k + device.product_depth)
      near(shape.seconds, flops / (device.gemm_efficiency * card.flops) + device.product_floor, 0.06)
    end
  end)

  it("takes no harm of one wild time", function()
    for _, factor in ipairs { 30, 1 / 30 } do
      for _, wild in ipairs { 1, 14, 27 } do
        local device = fitted({ products = products(700e12, 64, 4e-6, function(seconds, i) return seconds * (i == wild and factor or 1) end) }).device
        near(0.7, device.gemm_efficiency)
        assert.same({ 64, 4e-6 }, { device.product_depth, device.product_floor })
      end
    end
  end)

  it("never claims more than the card's peak", function()
    assert.equal(1, fitted({ products = products(1400e12, 0, 0) }).device.gemm_efficiency)
  end)

  it("reads products of the precision that is trained in, and for fp16 those of bf16", function()
    local both = products(700e12, 64, 4e-6)
    for _, row in ipairs(products(1200e12, 128, 8e-6, nil, "fp8")) do both[#both + 1] = row end
    local fp8 = fitted({ products = both }, { flops = 2000e12, flops_bf16 = 1000e12, memory_bandwidth = 4e12, precision = "fp8" }).device
    near(0.6, fp8.gemm_efficiency)
    assert.same({ 128, 8e-6 }, { fp8.product_depth, fp8.product_floor })
    local fp16 = fitted({ products = both }, { flops = 1000e12, flops_bf16 = 1000e12, memory_bandwidth = 4e12, precision = "fp16" }).device
    near(0.7, fp16.gemm_efficiency)
    for _, row in ipairs(products(800e12, 32, 2e-6, nil, "fp16")) do both[#both + 1] = row end   -- its own, where there are some
    fp16 = fitted({ products = both }, { flops = 1000e12, flops_bf16 = 1000e12, memory_bandwidth = 4e12, precision = "fp16" }).device
    near(0.8, fp16.gemm_efficiency)
    local bf16 = fitted({ products = products(800e12, 32, 2e-6, nil, "fp16") }).device   -- and they for bf16
    near(0.8, bf16.gemm_efficiency)
  end)

  it("leaves alone what was not measured", function()
    local read = fitted { products = products(700e12, 64, 4e-6) }
    assert.is_nil(read.host)
    for name in pairs(read.device) do assert.matches("^gemm_efficiency$", (name:gsub("^product_.*", "gemm_efficiency"))) end
  end)
end)

local h200 = planning.merge(planning.llama, { cluster = { accelerator = "H200-SXM" } })

local function request_of(file, changes)
  return spec.from_table(planning.merge(planning.merge(h200, { cluster = { kernels = file } }), changes or {}), ".")
end

describe("a spec with measured kernels", function()
  -- Hopper's long runs keep 0.94 of what a short one measures: H200's tensor cores throttle under load (stdlib/catalog/accelerators.lua)
  it("plans with their figures, at the clocks of a long run", function()
    local device = request_of(table_of { products = products(700e12, 64, 4e-6), attention = attention(600e12, 500, 200, 540e12, 1500),
                                         grouped = grouped(500e12, 64, 20e-6), moved = { { bytes = 1e9, seconds = 1 / 3000 } } }).device
    near(0.94 * 700e12 / 989.4e12, device.gemm_efficiency, 1e-3)
    near(0.94 * 500e12 / 989.4e12, device.grouped_gemm_efficiency, 1e-3)
    near(0.94 * 600e12 / 989.4e12, device.attention_efficiency, 1e-3)
    near(3e12 / 4.8e12, device.memory_efficiency, 1e-3)   -- memory has no such clock
    assert.same({ 64, 4e-6, 20e-6, 500 }, { device.product_depth, device.product_floor, device.grouped_floor, device.attention_half })
  end)

  it("takes as long for products as the table says: at half the rate twice as long", function()
    local seconds = {}
    for i, rate in ipairs { 600e12, 300e12 } do
      local plan = planning.plan(h200, { cluster = { kernels = table_of { products = products(rate, 0, 0) } },
                                         parallelism = { tensor = 8, pipeline = 4, schedule = "1f1b" } })
      seconds[i] = plan.step_seconds
      assert.equal("planned", plan.status)
    end
    -- products are most of a step, and no more than all of it
    assert.is_true(seconds[2] > 1.5 * seconds[1] and seconds[2] < 2 * seconds[1], seconds[1] .. " " .. seconds[2])
  end)

  it("has another digest with another table, and the same wherever the same table lies", function()
    local function digest(rate, name)
      local measured = { device = "NVIDIA H200", products = rate and products(rate, 0, 0) }
      local file = rate and files.write(name or "kernels.json", cjson.encode(measured)) or nil
      return require("pipeplan.input.stated").digest(spec.from_table(planning.merge(h200, { cluster = { kernels = file } }), "."))
    end
    assert.equal(digest(600e12), digest(600e12, "elsewhere.json"))
    assert.not_equal(digest(600e12), digest(300e12))
    assert.not_equal(digest(600e12), digest())
  end)

  it("takes launches of the host by what a plain layer takes there", function()
    local function host(forward, backward)
      return require("pipeplan.input.recipe").host(request_of(forward and table_of { host = { forward = forward, backward = backward } }))
    end
    local usual, twice = host(), host(2 * 0.75e-3, 3 * 1.19e-3)   -- a plain layer of PyTorch: 0.75 and 1.19 ms (kernels_graphed_and_host_1xH200)
    for _, name in ipairs { "forward", "moe_forward", "expert_forward" } do near(2 * usual[name], twice[name]) end
    for _, name in ipairs { "backward", "moe_backward", "expert_backward" } do near(3 * usual[name], twice[name]) end
    assert.equal(usual.waiting, twice.waiting)   -- a share, no time
  end)
end)

describe("the shipped table of an H200", function()
  local read = kernels.read(shipped, { accelerator = "H200-SXM", flops = 989.4e12, flops_bf16 = 989.4e12, memory_bandwidth = 4.8e12,
                                       precision = "bf16" })
  local raw = cjson.decode(assert(io.open(shipped)):read "a")

  it("is met by the form that was found, as nearly as it says", function()
    local device, error, count = read.device, 0, 0
    for _, row in ipairs(raw.products) do
      if row.precision == "bf16" then
        local form = 2 * row.m * row.n * (row.k + device.product_depth) / (device.gemm_efficiency * 989.4e12) + device.product_floor
        error, count = error + math.abs(math.log(form / row.seconds)), count + 1
      end
    end
    assert.is_true(count > 20 and error / count < 0.12, count .. " products, " .. error / count)
    assert.equal(string.format("%d products within %.0f %%", count, 100 * error / count), read.notes[1])
  end)

  it("changes a plan's step, and stands among its assumptions with its error", function()
    local fixed = { parallelism = { tensor = 8, pipeline = 4, schedule = "1f1b" } }
    local without, with = planning.plan(h200, fixed), planning.plan(planning.merge(h200, fixed), { cluster = { kernels = shipped } })
    assert.is_nil(planning.assumption(without, "cluster.kernels"))
    assert.not_equal(without.step_seconds, with.step_seconds)
    -- the catalogue's figures come from another card of that kind: both are within a tenth
    near(without.step_seconds, with.step_seconds, 0.1)
    local told = planning.assumption(with, "cluster.kernels")
    assert.equal("NVIDIA H200, PyTorch 2.11.0+cu130, profile_kernels.py", told.value)
    assert.equal(table.concat(read.notes, ", "), told.why)
    assert.matches("products within %d+ %%, 12 grouped products within %d+ %%, 6 attentions within %d+ %% forward, %d+ %% backward$", told.why)
  end)

  it("is what the option --kernels takes", function()
    local result = program.run("plan examples/specs/llama-3.1-405b.json --accelerator H200-SXM --format json --kernels " .. shipped)
    assert.equal(0, result.status, result.stderr)
    assert.equal(raw.source, planning.assumption(cjson.decode(result.stdout), "cluster.kernels").value)
  end)

  it("is a document of the schema that is printed", function()
    local schema = program.run "facts schema kernels"
    assert.equal(0, schema.status)
    local printed = cjson.decode(schema.stdout)
    assert.equal("urn:pipeplan:kernels:1", printed["$id"])
    assert.equal("pipeplan kernels", printed.title)
    for name in pairs(raw) do assert.is_table(printed.properties[name], name) end
    for name in pairs(raw.products[1]) do assert.is_table(printed.properties.products.items.properties[name], name) end
  end)
end)

describe("a table of kernels that is wrong", function()
  local function problem(read, changes)
    local file = type(read) == "string" and read or write(read)
    local found = planning.problem(planning.merge(h200, { cluster = { kernels = file } }), changes)
    assert.equal(2, found.status, tostring(found.message))
    assert.matches(file, found.message, 1, true)
    return found.message
  end
  -- The first product changed; `seconds = cjson.null` and the like.
  local function product(changes)
    local list = products(700e12, 64, 4e-6)
    list[1] = planning.merge(list[1], changes)
    return { device = "NVIDIA H200", products = list }
  end

  it("is one of another card", function()
    local message = problem({ device = "NVIDIA A100-SXM4-80GB", products = products(200e12, 0, 0) })
    assert.matches('device is "NVIDIA A100-SXM4-80GB": expected a table of the spec\'s accelerator, H200-SXM', message, 1, true)
    -- a name inside another word is another card
    local grace = { device = "NVIDIA GB200", products = products(200e12, 0, 0) }
    assert.matches("expected a table of the spec's accelerator, B200-SXM", problem(grace, { cluster = { accelerator = "B200-SXM" } }), 1, true)
    assert.matches("expected a table of the spec's accelerator, H100-SXM", problem(shipped, { cluster = { accelerator = "H100-SXM" } }), 1, true)
  end)

  it("has times of zero or less", function()
    for _, seconds in ipairs { 0, -1e-5 } do
      assert.matches("products[0].seconds is " .. (seconds == 0 and "0" or "-1e-05") .. ": expected a number from 1e-09 to 1e+12: one product; " ..
                     "nearest: 1e-09", problem(product { seconds = seconds }), 1, true)
    end
    local list = attention(600e12, 500, 200, 540e12, 1500)
    list[6].backward = 0
    assert.matches("attention[5].backward is 0", problem { device = "NVIDIA H200", attention = list }, 1, true)
    assert.matches("moved[0].bytes is -1", problem { device = "NVIDIA H200", moved = { { bytes = -1, seconds = 1 } } }, 1, true)
    assert.matches("host.forward is 10000000", problem { device = "NVIDIA H200", host = { forward = 1e7, backward = 1 } }, 1, true)
    assert.matches("host.forward is 0", problem { device = "NVIDIA H200", host = { forward = 0, backward = 1 } }, 1, true)
  end)

  it("lacks times, shapes or the card's name", function()
    assert.matches("products[0].seconds is missing: expected a number from 1e-09 to 1e+12: one product",
                   problem(product { seconds = planning.none }), 1, true)
    assert.matches("products[0].k is missing", problem(product { k = planning.none }), 1, true)
    assert.matches("device is missing: expected a text: the card, as its driver names it", problem { products = products(700e12, 64, 4e-6) }, 1, true)
    assert.matches("products is []: expected a list", problem(files.write("kernels.json", '{"device":"NVIDIA H200","products":[]}')), 1, true)
  end)

  it("has too few shapes to tell a form", function()
    local few = products(700e12, 64, 4e-6)
    for i = #few, 6, -1 do few[i] = nil end
    assert.matches("too little: expected 6 bf16 products, attentions or grouped products at least",
                   problem { device = "NVIDIA H200", products = few }, 1, true)
    few[6] = products(700e12, 64, 4e-6)[6]
    assert.has_no.errors(function() request_of(table_of { products = few }) end)
  end)

  it("is of another precision", function()
    assert.matches("too little: expected 6 fp8 products",
                   problem({ device = "NVIDIA H200", products = products(700e12, 64, 4e-6) }, { training = { precision = "fp8" } }), 1, true)
    assert.matches('products[0].precision is "int8": expected one of bf16, fp8, fp16', problem(product { precision = "int8" }), 1, true)
  end)

  it("has a field that nobody knows", function()
    assert.matches("products[0].second is no field of such a file, did you mean 'seconds'?", problem(product { second = 1e-5 }), 1, true)
    assert.matches("atention is no field of such a file, did you mean 'attention'?", problem { device = "NVIDIA H200", atention = {} }, 1, true)
  end)

  it("is no table, or there is none", function()
    assert.matches("$schema is urn:pipeplan:profile:1", problem { ["$schema"] = "urn:pipeplan:profile:1", device = "NVIDIA H200" }, 1, true)
    problem(files.write("kernels.json", "{"))
    problem "no/such/kernels.json"
  end)

  it("ends the program with status 2", function()
    local file = write(product { seconds = 0 })
    local result = program.run("plan examples/specs/llama-3.1-405b.json --accelerator H200-SXM --kernels " .. file)
    assert.equal(2, result.status)
    assert.matches(file .. ": products[0].seconds is 0", result.stderr, 1, true)
    assert.equal("", result.stdout)
  end)
end)

teardown(files.remove)
