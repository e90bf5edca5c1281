-- SPDX-License-Identifier: Apache-2.0
-- Readers of logs and counters: what each takes of a line. Samples are our own, made from the descriptions of the formats that are cited with
-- each; so are the expected values, by hand.

require "pipeplan"
local metrics = require "pipeplan.input.metrics.init"

-- What a text tells: steps, counters, marks, and the file's own counts.
local function read(text, input, columns)
  local told = { steps = {}, unnumbered = {}, counters = {}, marks = {} }
  local handle = assert(io.tmpfile())
  handle:write(text)
  handle:seek "set"
  told.file = metrics.read_handle(handle, "x", {
    step = function(sample) table.insert(told.steps, sample) end,
    unnumbered_step = function(seconds) table.insert(told.unnumbered, seconds) end,
    mark = function(what) table.insert(told.marks, what) end,
    counter = function(kind, who, fraction) table.insert(told.counters, { kind, who.host or "-", who.gpu or "-", who.slice or "-", fraction }) end,
  }, input, columns)
  handle:close()
  return told
end

-- NVIDIA/Megatron-LM megatron/training/training.py, training_log
describe("Megatron-LM's line", function()
  local line = " [2026-11-27 10:15:02.412345] iteration      120/   50000 | consumed samples:        61440 | elapsed time per iteration (ms): "
    .. "8123.4 | throughput per GPU (TFLOP/s/GPU): 412.6 | learning rate: 1.200000E-04 | global batch size:   512 | lm loss: 2.345678E+00 | "
    .. "loss scale: 1.0 | grad norm: 0.512 | number of skipped iterations:   0 | number of nan iterations:   0 |"

  it("gives iteration, seconds and batch", function()
    local step = read(line .. "\n").steps[1]
    assert.same({ iteration = 120, seconds = 8.1234, batch = 512, undefined = 0, skipped = 0 }, step)
  end)

  it("is read without microseconds, without a time, behind a launcher's prefix, in colour, and with CRLF", function()
    local bare = line:match "iteration.*"
    for _, text in ipairs { " [2026-11-27 10:15:02] " .. bare, bare, "[default7]: " .. line, "7: [rank7]:" .. line, "\27[32m" .. line .. "\27[0m",
                            line .. "\r", " 35%|███▌  | 3/9\r" .. line, "==> " .. bare } do
      assert.same({ 120, 8.1234 }, { read(text .. "\n").steps[1].iteration, read(text .. "\n").steps[1].seconds }, text)
    end
  end)

  it("may have more fields, and fewer", function()
    assert.equal(2.5, read "iteration 7/ 9 | elapsed time per iteration (ms): 2500.0 |\n".steps[1].seconds)
    local more = line:gsub("| learning", "| energy per GPU (J/iter/GPU): 5321.0 | power per GPU (W/GPU): 655.1 | mtp_1 loss: 3.1E+00 | learning")
    assert.equal(8.1234, read(more .. "\n").steps[1].seconds)
  end)

  -- AMD-AGI/Primus: this iteration's value before the slash, the running mean behind it
  it("of Primus gives this iteration's time, in its older and newer form", function()
    for _, text in ipairs {
      "iteration 4/ 20 | consumed samples: 64 | elapsed time per iteration (ms): 654.5/735.1 | throughput per GPU (TFLOP/s/GPU): 290.3/262.8 | "
        .. "tokens per GPU (tokens/s/GPU): 2503.8/2228.1 | global batch size: 16 | lm loss: 1.1E+01 |\n",
      "iteration 4/ 20 | consumed samples: 64 | elapsed time per iteration (ms): 654.5/735.1 | hip mem usage/free/total: 1/2/3 | "
        .. "compute per GPU (TFLOP/s/GPU): 290.3 (avg 262.8) | tokens/s/GPU inst/harmonic mean: 2503.8/2228.1 | global batch size: 16 |\n",
    } do
      local step = read(text).steps[1]
      assert.same({ 4, 0.6545, 16 }, { step.iteration, step.seconds, step.batch })
    end
  end)

  -- NVIDIA-NeMo/Megatron-Bridge: the number behind "GPU utilization" is TFLOP/s
  it("of Megatron-Bridge has another before it, whose GPU utilization is no percentage", function()
    local told = read("train/0 Step Time : 9.09s GPU utilization: 66.5MODEL_TFLOP/s/GPU\n"
                      .. "Step Time: 0.50s , 32680.36 tok/s/gpu, GPU utilization: 25.1 MODEL_TFLOP/s/GPU , Peak Mem: 64.5GB\n")
    assert.same({ 9.09, 0.5 }, told.unnumbered)
    assert.same({}, told.counters)
    assert.same({}, told.steps)
  end)

  it("that is torn is not read, and does not hide the line that follows it", function()
    for cut = 1, #line - 60 do
      local told = read(line:sub(1, cut))   -- no line end: never
      assert.equal(0, #told.steps)
      assert.is_true(told.file.torn)
      for _, step in ipairs(read(line:sub(1, cut) .. line .. "\n").steps) do assert.equal(8.1234, step.seconds) end
      assert.equal(1, #read(line:sub(1, cut) .. line .. "\n").steps, cut)
    end
    assert.equal(0, #read "iteration 7/ 9 | elapsed time per iteration (ms): 25\n".steps)
  end)

  it("tells of losses that are no number, and of skipped iterations", function()
    for _, loss in ipairs { "NAN", "nan", "INF", "-inf" } do
      assert.equal(1, read((line:gsub("2%.345678E%+00", loss)) .. "\n").steps[1].undefined, loss)
    end
    assert.equal(3, read((line:gsub("nan iterations:   0", "nan iterations:   3")) .. "\n").steps[1].undefined)
    assert.equal(2, read((line:gsub("skipped iterations:   0", "skipped iterations:   2")) .. "\n").steps[1].skipped)
  end)

  -- a norm that is none loses the weights at the next update, while the loss is still a number
  it("tells of gradients that are no number, with the step of their line or the next one", function()
    local function undefined(text) return read(text).steps[1].undefined end
    for _, norm in ipairs { "grad norm: nan |", "'grad_norm': inf,", "actor/grad_norm:np.float64(nan)", "grad_norm=-Infinity", "'grad_norm': 'nan'" } do
      assert.equal(1, undefined(line .. " " .. norm .. "\n"), norm)
      assert.equal(1, undefined("{" .. norm .. "}\n" .. line .. "\n"), norm)
    end
    for _, norm in ipairs { "grad norm: 0.5 | nan", "grad_norm: 1e9", "norm: nan", "grad_norm: nano" } do
      assert.equal(0, undefined(line .. " " .. norm .. "\n"), norm)
    end
  end)

  it("whose time makes no sense is counted as unreadable", function()
    for _, time in ipairs { "nan", "0.0", "-5.0", "1e99", "8.1.2.3", "" } do
      local told = read((line:gsub("8123%.4", time)) .. "\n")
      assert.same({ 0, 1 }, { #told.steps, told.file.unreadable + (time == "" and 1 or 0) }, time)
    end
  end)
end)

-- pytorch/torchtitan torchtitan/components/metrics.py, MetricsProcessor.log
describe("torchtitan's line", function()
  it("gives step and tokens per second and device, with thousands separators", function()
    local step = read "step: 10  loss:  2.3457  grad_norm:  0.5123  memory: 61.20GiB(77.25%)  tps: 1,008,412  tflops: 412.60  mfu: 41.72%\n".steps[1]
    assert.same({ 10, 1008412, 0 }, { step.iteration, step.tokens_per_second, step.undefined })
  end)

  it("is read in colour, with mfu N/A, and behind a rank's prefix", function()
    local told = read("[rank3]:[titan] 2026-11-27 10:15:02,412 - root - INFO - \27[31mstep: 20  \27[32mloss: nan  \27[38;5;208mgrad_norm:  0.5"
                      .. "  \27[36mmemory: 61.20GiB(77.25%)  \27[34mtps: 8,412  \27[36mtflops: 412.60  \27[35mmfu: N/A\27[39m\n")
    assert.same({ iteration = 20, tokens_per_second = 8412, rank = "3", undefined = 1, skipped = 0 }, told.steps[1])
  end)

  it("of a validation is none of a step, but says that there was one", function()
    local told = read "validate step: 20  loss:  2.3457  memory: 61.20GiB(77.25%)  tps: 28,412\n"
    assert.same({ 0, "evaluation" }, { #told.steps, told.marks[1] })
  end)

  it("that is torn in its number is not read", function()
    for _, torn in ipairs { "8,4", "84", "8," } do assert.equal(0, #read("step: 10  loss: 2.3  tps: " .. torn .. "\n").steps, torn) end
    local step = read "step: 10  loss: 2.3  tps: 8[titan] step: 11  loss: 2.3  tps: 8,412  tflops: 1\n".steps[1]
    assert.same({ 11, 8412 }, { step.iteration, step.tokens_per_second })
  end)
end)

-- Megatron-LM training/training.py, training/checkpointing.py; torchtitan components/checkpoint.py, train.py
describe("lines that say why a step takes longer", function()
  it("are those of checkpoints, evaluations and starts, in the words of both", function()
    for text, mark in pairs {
      ["saving checkpoint at iteration     200 to /ckpt in torch_dist format"] = "checkpoint",
      ["  successfully saved checkpoint from iteration     200 to /ckpt [ t 1/8, p 1/4 ]"] = "checkpoint",
      ["[titan] Saving the checkpoint (or staging if async is enabled)."] = "checkpoint",
      ["[titan] Finished saving the checkpoint (or staging if async is enabled) in 5.53 seconds."] = "checkpoint",
      [" validation loss at iteration 1000 | lm loss value: 2.3E+00 | lm loss PPL: 1.0E+01 |"] = "evaluation",
      ["Evaluating on 1024 samples"] = "evaluation",
      ["[before the start of training step] datetime: 2026-11-27 10:00:00"] = "start",
      ["[titan] Training starts at step 401"] = "start",
      ["  successfully loaded checkpoint from /ckpt [ t 1/8, p 1/4 ] at iteration 400"] = false,
      ["nothing of interest"] = false,
    } do
      assert.equal(mark or nil, read(text .. "\n").marks[1], text)
    end
  end)
end)

-- docs.nvidia.com nvidia-smi --query-gpu, --format=csv
describe("nvidia-smi's CSV", function()
  local header = "timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W]\n"

  it("has units in its header and in its cells", function()
    local told = read(header .. "2026/11/27 10:15:02.412, 0, 97 %, 71234 MiB, 655.10 W\n2026/11/27 10:15:02.412, 1, 100 %, 71234 MiB, 655.10 W\n")
    assert.same({ { "gpu_utilisation", "-", "0", "-", 0.97 }, { "gpu_utilisation", "-", "1", "-", 1 } }, told.counters)
  end)

  it("may stand behind a byte order mark", function()
    assert.same({ { "gpu_utilisation", "-", "0", "-", 0.97 } }, read "\xEF\xBB\xBFutilization.gpu, index\n97, 0\n".counters)
  end)

  it("has none with nounits, and another header may follow", function()
    local told = read "index, utilization.gpu, memory.used\n0, 97, 71234\nutilization.gpu, index\n50, 1\n"
    assert.same({ { "gpu_utilisation", "-", "0", "-", 0.97 }, { "gpu_utilisation", "-", "1", "-", 0.5 } }, told.counters)
  end)

  it("without a header is read by --columns, or where one cell alone is a percentage", function()
    local names = { "index", "utilization.gpu", "memory.used", "power.draw" }
    assert.same({ { "gpu_utilisation", "-", "0", "-", 0.97 } }, read("0, 97, 71234, 655.10\n", nil, names).counters)
    assert.same({ { "gpu_utilisation", "-", "0", "-", 0.97 } }, read("0, 97 %, 71234 MiB, 655.10 W\n").counters)
    assert.same({}, read("0, 97, 71234, 655.10\n").counters)              -- which is which?
    assert.same({}, read("0, 97 %, 45 %, 655.10 W\n").counters)           -- of the GPU, or of its memory?
  end)

  it("has no value where it says so, and no row where cells are missing", function()
    local told = read(header .. "2026/11/27 10:15:02.412, 0, [N/A], 71234 MiB, [N/A]\n2026/11/27 10:15:02.412, 0, [Not Supported], 1 MiB, 2 W\n"
                      .. "2026/11/27 10:15:02.412, 0, 9\n2026/11/27 10:15:02.412, 0, 912 %, 1 MiB, 2 W\n")
    assert.same({ 0, 2, 1 }, { #told.counters, told.file.missing, told.file.unreadable })
  end)

  it("of the memory's utilisation alone says nothing of the GPU's", function()
    assert.same({}, read("index, utilization.memory [%]\n0, 45 %\n").counters)
  end)
end)

-- NVIDIA/dcgm-exporter etc/default-counters.csv; NVIDIA/DCGM dcgmlib/dcgm_fields.h, dcgm_structs.h (4.6.0)
describe("DCGM's Prometheus text", function()
  local function one(name, value, labels)
    return read(string.format("# HELP %s x\n# TYPE %s gauge\n%s{%s} %s\n", name, name, name, labels or 'gpu="3",hostname="node17"', value))
  end

  it("gives a ratio as it is and a percentage as a share, by the field's name", function()
    local told = read [[
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu="3",UUID="GPU-0a1b",pci_bus_id="00000000:5D:00.0",modelName="H100 80GB HBM3",hostname="node17"} 0.412733
DCGM_FI_DEV_GPU_UTIL{gpu="3",UUID="GPU-0a1b",hostname="node17"} 98
]]
    assert.same({ { "tensor_active", "node17", "3", "-", 0.412733 }, { "gpu_utilisation", "node17", "3", "-", 0.98 } }, told.counters)
  end)

  it("has the names of before and since DCGM 4.6; DEV_GPU_UTIL_RATIO is a percentage all the same", function()
    for name, expected in pairs {
      DCGM_FI_PROF_SM_ACTIVE = { "sm_active", "0.5", 0.5 }, DCGM_FI_PROF_SM_UTIL_RATIO = { "sm_active", "0.5", 0.5 },
      DCGM_FI_PROF_TENSOR_UTIL_RATIO = { "tensor_active", "0.5", 0.5 }, DCGM_FI_PROF_GR_ENGINE_ACTIVE = { "gr_engine_active", "1.000000", 1 },
      DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO = { "gr_engine_active", "0.25", 0.25 }, DCGM_FI_DEV_GPU_UTIL_RATIO = { "gpu_utilisation", "98", 0.98 },
    } do
      assert.same({ { expected[1], "node17", "3", "-", expected[3] } }, one(name, expected[2]).counters, name)
    end
    assert.same({}, one("DCGM_FI_DEV_POWER_USAGE", "655.1").counters)
  end)

  it("has numbers that mean no value: none of them is one", function()
    for _, value in ipairs { "9223372036854775792", "9223372036854775793", "9223372036854775794", "9223372036854775795", "9.223372036854776e+18",
                             "140737488355328", "140737488355331", "140737488355328.000000", "2147483632", "2147483635", "NaN" } do
      local told = one("DCGM_FI_PROF_SM_ACTIVE", value)
      assert.same({ 0, 1, 0 }, { #told.counters, told.file.missing, told.file.unreadable }, value)
    end
    assert.equal(1, one("DCGM_FI_PROF_SM_ACTIVE", "98").file.unreadable)    -- a ratio is none of 98
    assert.equal(1, one("DCGM_FI_DEV_GPU_UTIL", "-1").file.unreadable)
    assert.equal(1, one("DCGM_FI_DEV_GPU_UTIL", "+Inf").file.unreadable)
  end)

  it("calls the host Hostname or hostname, orders labels as it likes, and escapes quotes", function()
    for _, labels in ipairs { 'Hostname="n1",gpu="3"', 'gpu="3",hostname="n1"', 'modelName="a \\"b\\", c",pod="",hostname="n1",gpu="3",' } do
      assert.same({ "sm_active", "n1", "3", "-", 0.5 }, one("DCGM_FI_PROF_SM_ACTIVE", "0.5 1732700000000", labels).counters[1], labels)
    end
  end)

  it("has slices of a GPU", function()
    assert.same({ "sm_active", "n1", "3", "7", 0.5 },
                one("DCGM_FI_PROF_SM_ACTIVE", "0.5", 'gpu="3",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7",hostname="n1"').counters[1])
  end)

  it("that is torn is unreadable or passed over", function()
    local line = 'DCGM_FI_PROF_SM_ACTIVE{gpu="3",hostname="node17"} 0.412733'
    for cut = 1, #line - 9 do assert.equal(0, #read(line:sub(1, cut) .. "\n").counters, cut) end
    assert.equal(0, #read(line).counters)
  end)
end)

-- NVIDIA/DCGM, dcgmi dmon
describe("dcgmi dmon", function()
  local header = "#Entity   GRACT        SMACT        SMOCC        TENSO        DRAMA        \n"
    .. "ID                                                             \n"

  it("has headings that repeat, and N/A at first", function()
    local told = read(header .. "GPU 0     N/A          N/A          N/A          N/A          N/A          \n"
      .. "GPU 0     0.983        0.861        0.301        0.412        0.377        \n" .. header
      .. "GPU 1     0.983        0.500        0.301        0.250        0.377        \n")
    assert.same({ { "gr_engine_active", "-", "0", "-", 0.983 }, { "sm_active", "-", "0", "-", 0.861 }, { "tensor_active", "-", "0", "-", 0.412 },
                  { "gr_engine_active", "-", "1", "-", 0.983 }, { "sm_active", "-", "1", "-", 0.5 }, { "tensor_active", "-", "1", "-", 0.25 } },
                told.counters)
    assert.equal(3, told.file.missing)
  end)

  it("prints GPUTL in percent, orders columns as they were asked for, and may have another header", function()
    local told = read "# Entity  SMACT  GPUTL\nGPU 5 0.5 97\n#Entity GPUTL\nGPU-I 2 50\n"
    assert.same({ { "sm_active", "-", "5", "-", 0.5 }, { "gpu_utilisation", "-", "5", "-", 0.97 }, { "gpu_utilisation", "-", "-", "2", 0.5 } },
                told.counters)
  end)

  it("without headings is read by --columns, and otherwise not at all", function()
    assert.equal(0, #read("GPU 0 0.983 0.861\n").counters)
    assert.equal(2, #read("GPU 0 0.983 0.861\n", "dmon", { "GRACT", "SMACT" }).counters)
  end)

  it("that is torn is unreadable", function()
    local told = read(header .. "GPU 0     0.983        0.861        0.3\n")
    assert.same({ 0, 1 }, { #told.counters, told.file.unreadable })
  end)
end)

describe("a file", function()
  it("may hold several formats, and is told which", function()
    local told = read "iteration 7/ 9 | elapsed time per iteration (ms): 2500.0 |\n#Entity TENSO\nID\nGPU 0 0.4\nnoise\n"
    assert.same({ 1, 1 }, { #told.steps, #told.counters })
    assert.same({ { title = "Megatron-LM log", lines = 1 }, { title = "dcgmi dmon", lines = 2 } }, told.file.formats)
  end)

  it("is read in one format only where that is asked for", function()
    assert.equal(0, #read("iteration 7/ 9 | elapsed time per iteration (ms): 2500.0 |\n", "torchtitan").steps)
  end)

  it("may have lines of any length: those that are no log's are passed over, and what follows is read", function()
    local long = string.rep("x", 300000)
    local told = read(long .. "\niteration 7/ 9 | elapsed time per iteration (ms): 2500.0 |\n" .. long)
    assert.equal(1, #told.steps)
    assert.equal(2, told.file.long)
  end)

  it("is read alike wherever its blocks end", function()
    local line = "iteration %d/ 9 | elapsed time per iteration (ms): %d.0 |\n"
    for shift = 0, 70 do
      local told = read(string.rep("y", 65536 - 30 - shift) .. "\n" .. line:format(1, 1000) .. line:format(2, 2000))
      assert.same({ 1, 2 }, { told.steps[1].seconds, told.steps[2].seconds })
    end
  end)
end)
