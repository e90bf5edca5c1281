-- SPDX-License-Identifier: Apache-2.0
-- stdlib/input/topology.lua: nvidia-smi topo -m. tests/data/measured/topo-4xH200.txt is a real one; the others are written in its format,
-- with matrices that are known of those machines.

require "pipeplan"
local topology = require "pipeplan.input.topology"

local function read(text) return topology.read(text, "topo.txt") end

local function problem(text)
  local good, message = pcall(read, text)
  assert.is_false(good)
  return tostring(message)
end

-- rows: { "X NV1 …", … } under GPU0 … and the named cards.
local function matrix(rows, cards)
  local names = {}
  for i = 1, #rows do names[i] = "GPU" .. i - 1 end
  for _, card in ipairs(cards or {}) do names[#names + 1] = card end
  local lines = { "\t\27[4m" .. table.concat(names, "\t") .. "\tCPU Affinity\tNUMA Affinity\27[0m" }
  for i, row in ipairs(rows) do lines[#lines + 1] = "GPU" .. i - 1 .. "\t" .. row:gsub(" ", "\t") .. "\t0-31\t0" end
  for _, card in ipairs(cards or {}) do lines[#lines + 1] = card .. "\tSYS\tX" end
  lines[#lines + 1] = "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n"
  return table.concat(lines, "\n")
end

describe("nvidia-smi topo -m", function()
  it("of 4 × H200: all four joined by 18 links each", function()
    local file = assert(io.open(os.getenv "PIPEPLAN_SOURCE" .. "/tests/data/measured/topo-4xH200.txt"))
    local text = file:read "a"
    file:close()
    assert.is_true(topology.is(text))
    local seen = read(text)
    assert.same({ 4, 4, 18, 0 }, { seen.gpus, seen.joined, seen.links, seen.cards })
  end)

  -- HGX A100 with four GPUs: no switch, four links to each of three others (12 in all, NVIDIA A100 data sheet)
  it("adds up links where there is no switch", function()
    local seen = read(matrix { "X NV4 NV4 NV4", "NV4 X NV4 NV4", "NV4 NV4 X NV4", "NV4 NV4 NV4 X" })
    assert.same({ 4, 12 }, { seen.joined, seen.links })
  end)

  -- HGX H100 with four GPUs: no switch, six links to each of three others, 18 in all (NVIDIA H100 data sheet: 18 of 25 GB/s one way)
  it("adds up to the 18 links that a GPU has at most", function()
    local seen = read(matrix { "X NV6 NV6 NV6", "NV6 X NV6 NV6", "NV6 NV6 X NV6", "NV6 NV6 NV6 X" })
    assert.same({ 4, 18 }, { seen.joined, seen.links })
  end)

  -- HGX A100 with eight, of which a container sees three: behind the switch each cell shows all 12 links of a GPU, and 24 are more than any has
  it("takes what each cell shows where the sum is more than a GPU has", function()
    local seen = read(matrix { "X NV12 NV12", "NV12 X NV12", "NV12 NV12 X" })
    assert.same({ 3, 12 }, { seen.joined, seen.links })
  end)

  -- NVIDIA/nccl-tests#178: eight A100 with bridges between pairs
  it("finds pairs joined by a bridge", function()
    local seen = read(matrix { "X NV12 NODE NODE SYS SYS SYS SYS", "NV12 X NODE NODE SYS SYS SYS SYS", "NODE NODE X NV12 SYS SYS SYS SYS",
                               "NODE NODE NV12 X SYS SYS SYS SYS", "SYS SYS SYS SYS X NV12 NODE NODE", "SYS SYS SYS SYS NV12 X NODE NODE",
                               "SYS SYS SYS SYS NODE NODE X NV12", "SYS SYS SYS SYS NODE NODE NV12 X" })
    assert.same({ 8, 2, 12 }, { seen.gpus, seen.joined, seen.links })
  end)

  it("of a host without NVLink: nobody is joined", function()
    local seen = read(matrix { "X PHB SYS SYS", "PHB X SYS SYS", "SYS SYS X PHB", "SYS SYS PHB X" })
    assert.same({ 4, 1, 0 }, { seen.gpus, seen.joined, seen.links })
  end)

  -- NVIDIA/nccl#1357: eight H100, six cards, of which four are beside a GPU
  it("counts the cards beside a GPU, and names GPUs without one", function()
    local rows = {}
    local beside = { [0] = 1, [2] = 2, [4] = 3, [6] = 4 }
    for gpu = 0, 7 do
      local cells = {}
      for other = 0, 7 do cells[#cells + 1] = other == gpu and "X" or "NV18" end
      for card = 1, 6 do cells[#cells + 1] = beside[gpu] == card and "PIX" or "SYS" end
      rows[gpu + 1] = table.concat(cells, " ")
    end
    local seen = read(matrix(rows, { "NIC0", "NIC1", "NIC2", "NIC3", "NIC4", "NIC5" }))
    assert.same({ 8, 8, 18 }, { seen.gpus, seen.joined, seen.links })
    assert.same({ 6, 4 }, { seen.cards, seen.cards_beside })
    assert.same({ "GPU1", "GPU3", "GPU5", "GPU7" }, seen.without_card)
  end)

  it("that is damaged is refused with file and line", function()
    assert.matches("^topo.txt: no matrix", problem "nothing here")
    assert.matches("^topo.txt:2: GPU0 to GPU1 is NVX: expected X, NV#", problem(matrix { "X NVX", "NV4 X" }))
    assert.matches("^topo.txt:1: 2 columns of GPUs, but 1 rows", problem((matrix { "X NV4", "NV4 X" }:gsub("GPU1\tNV4[^\n]*\n", ""))))
    assert.matches("^topo.txt:2: GPU0 to GPU1 is missing", problem "\tGPU0\tGPU1\nGPU0\t X\n")
  end)

  -- the first was found by fuzzing: a column's name had become another word
  it("takes no matrix whose rows are of other GPUs than its columns", function()
    local whole = matrix { "X NV6 NV6", "NV6 X NV6", "NV6 NV6 X" }
    assert.equal(3, read(whole).gpus)
    assert.matches("topo.txt:3: GPU1 has a row, but no column", problem((whole:gsub("GPU1", "GPU9", 1))), 1, true)
    assert.matches("topo.txt:4: a second row of GPU1", problem((whole:gsub("\nGPU2", "\nGPU1", 1))), 1, true)
    assert.matches("topo.txt:1: two columns are GPU1", problem((whole:gsub("GPU2", "GPU1", 1))), 1, true)
  end)

  it("takes no number of links that no GPU can have", function()
    for _, links in ipairs { "NV9223372036854775807", "NV99999999999999999999", "NV-1", "NV1e3", "NV" } do
      assert.matches("topo.txt:2: GPU0 to GPU1 is " .. links .. ": expected X", problem(matrix { "X " .. links, "NV6 X" }), 1, true)
    end
  end)

  it("is read out of a quotation", function()
    local whole = matrix { "X NV6 NV6", "NV6 X NV6", "NV6 NV6 X" }
    local quoted = whole:gsub("([^\n]+)", "> %1")
    assert.same(read(whole), read(quoted))
  end)
end)
